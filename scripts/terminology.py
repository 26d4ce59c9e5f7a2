"""Build the open terminology that our pipelines link to: Disease Ontology, HPO and MeSH, joined.

    python scripts/terminology.py --lang es --data "$BIOCLIN_DATA" -o assets/terminology/es

Two concepts of different sources become one if the preferred name of each is a name of the other,
or that of one is and they refer to each other or to the same UMLS id. The id is that of the Disease
Ontology, else of HPO, else of MeSH; the other ids are cross references, by which `kb.concept` finds
it, too. The folder is compact: some arrays are computed when it is opened.

With --lang es, names are in Spanish and English: MeSH has no Spanish names here, but names of drugs
and species are nearly the same, and many English names of diseases have the same stems. Procedures
and anatomy of MeSH are left out, because their names differ.
"""

import argparse
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from scripts.short_names import (
    MAX_SHORT,
    ShortNames,
    is_clinical,
    preferred_names,
    rare_words,
    read_short_names,
)
from spacy_bioclin.catalog.tasks import DOWNLOADS
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import BROADER, Alias, Concept, SkipReport
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.names.normalize import name_key, normalize
from spacy_bioclin.linking.readers import read_concepts
from spacy_bioclin.linking.readers.sources import Source

CC0 = "CC0 1.0, Disease Ontology (https://disease-ontology.org), release 2026-07-31"
DO_2015 = "CC BY 3.0 (CC0 1.0 since), Disease Ontology, release 2015-11-11"
HPO = (
    "HPO licence (https://hpo.jax.org/license: free with attribution, content unaltered), "
    "Human Phenotype Ontology Consortium, "
)
NLM = (
    "NLM terms (free; courtesy of the U.S. National Library of Medicine), MeSH 2024, a selection "
    "of its terms, changed as scripts/terminology.py describes"
)


class File(NamedTuple):
    """A file of a terminology.

    path (str): In the folder of the data.
    format (str): Of `bioclin kb build`.
    licence (str): Goes into the knowledge base, and from there into the card of a pipeline.
    columns (dict[str, str] | None): Of a table.
    lang (str): Of names for which the file states none.
    """

    path: str
    format: str
    licence: str
    columns: dict[str, str] | None = None
    lang: str = "en"


# Our own Spanish names of frequent concepts and their abbreviations.
OURS = File(
    str(Path(__file__).with_name("terminology_es.tsv")),
    "table",
    "MIT, spacy-bioclin",
    {"id": "id", "alias": "alias"},
    "es",
)
# Brand names of drugs, which count as English, so that they are not shown as preferred names.
BRANDS_EN, BRANDS_ES = (
    OURS._replace(path=str(Path(__file__).with_name(f"brands_{lang}.tsv")), lang="en")
    for lang in ("en", "es")
)
BRANDS = {"es": (BRANDS_ES, BRANDS_EN), "en": (BRANDS_EN,)}
# Codes of frequent concepts, by the index of ICD-10-CM; they replace those of the sources.
ICD10CM = File(
    str(Path(__file__).with_name("icd10cm.tsv")),
    "table",
    "MIT, spacy-bioclin; codes of ICD-10-CM, which is in the public domain (NCHS)",
    {"id": "id", "xref": "xref"},
)
# The first file of each names the ids that exist; the others add to them.
DOID = (
    File(
        "doid/HumanDO_hierarchy.tsv",
        "table",
        CC0,
        {"id": "id", "name": "label", "parent": "subClassOf"},
    ),
    File("doid/MESHinDO.tsv", "table", CC0, {"id": "id", "xref": "xrefs"}),
    File("doid/DO_cancer_slim.obo", "obo", CC0),
    File("doid/DO_rare_slim.obo", "obo", CC0),
    File("doid/HumanDO-2015-11-11.obo.xz", "obo", DO_2015),
)
DOID_ES = File("doid/doid-es-translated.tsv", "babelon", CC0)
HP_ES = File("hpo/hp-es.babelon.tsv", "babelon", f"{HPO}hpo-translations, commit 62f1d254f93e")
HP = (
    HP_ES,
    File("hpo/hp-2017-04-13.obo.xz", "obo", f"{HPO}release 2017-04-13"),
    File(
        "hpo/layperson-synonyms.tsv",
        "table",
        f"{HPO}layperson synonyms, commit af70204caaaa",
        {"id": "?term", "alias": "?layperson"},
    ),
)
MESH = (
    File("mesh/mesh2024_descriptor_terms.tsv.xz", "mesh-tsv", NLM),
    File("mesh/mesh2024_tree_numbers.tsv.xz", "mesh-tsv", NLM),
)
MESH_DISEASES = File("mesh/mesh_disease_scr.tsv", "mesh-tsv", NLM)
# Branches of MeSH: diseases, mental disorders and behaviour, chemicals and drugs, organisms (not
# plants), genes. Procedures and anatomy (not of animals, plants, bacteria or viruses).
BRANCHES = re.compile(r"C|F01\.145|F03|D|B0(1\.050|1\.300|3|4)|G05\.360\.340\.024\.340")
ENGLISH_BRANCHES = re.compile(r"E0[1-6]|A(0[1-9]|1[0-24-7])")
# HPO's terms of inheritance, onset, course, frequency and severity are no findings.
FINDINGS = "HP:0000118"
# Registers whose bare ids are passed on, as the open terminologies publish them.
REGISTERS = {"MESH": "MESH", "MSH": "MESH", "DOID": "DOID", "HP": "HP", "UMLS_CUI": "UMLS"}
REGISTERS |= {"UMLS": "UMLS", "ICD10CM": "ICD10CM", "ORDO": "ORPHA", "MIM": "OMIM", "OMIM": "OMIM"}
REGISTERS |= {"SNOMEDCT": "SNOMEDCT", "SNOMEDCT_US": "SNOMEDCT", "Orphanet": "ORPHA"}
RELEASE = re.compile(r"_20\d\d(_\d\d)*$")  # of a register: SNOMEDCT_US_2025_09_01
# Systematic names and codes of chemicals: brackets, several numbers, or many letters.
SYSTEMATIC = re.compile(r"[()\[\]]|\d\D+\d\D+\d|.{51}")
# Spanish has neither double consonants nor z before e and i.
DOUBLE, SOFT_Z = re.compile(r"(?<=[a-z])([bdfglmnpst])\1"), re.compile("z(?=[ei])")
RANK = ("DOID", "HP", "MESH")
# How the pipelines link to it: labels that are linked, and the types that each may mean. Types are
# doid, hp, and of MeSH the letter and two digits of the branch.
TYPES = {
    "DISEASE": ["doid", "hp", "C*", "F*"],
    "SYMPTOM": ["hp", "doid", "C*", "F*"],
    "TUMOR_MORPHOLOGY": ["doid", "hp", "C04"],
    "DRUG": ["D*"],
    "PROTEIN": ["D*"],
    "GENE": ["D*", "G05"],
    "SPECIES": ["B*"],
}
ENGLISH_TYPES = {"PROCEDURE": ["E*"], "TEST": ["E*"], "ANATOMY": ["A*"]}
# Lowest probability of a link, chosen by benchmarks/linking/open_terminology.py.
THRESHOLD = 0.55


def read_source(data: Path, files: Iterable[File], report: SkipReport) -> dict[str, Concept]:
    """Read the files of a source, and join the records of each id.

    References to a register are those of the first file that has any: the newest one.
    data (Path): Folder with the files.
    RETURNS (dict[str, Concept]): Id -> concept, of the ids in the first file.
    """
    found: dict[str, Concept] = {}
    known: frozenset[str] | None = None
    for file in files:
        for record in read(data, file, report):
            if file.format == "mesh-tsv":
                record = _mesh_record(record)
            before = found[record.id].xrefs if record.id in found else ()
            there = {_source(xref) for xref in before}
            kept = (xref for xref in references(record) if _source(xref) not in there)
            record = record._replace(xrefs=tuple(kept))
            if known is None or record.id in known:
                found[record.id] = add(found.get(record.id), record)
            elif record.name:
                report.skip(f"id that {file.path} has alone", record.id)
        known = known or frozenset(found)
    return found


def read(data: Path, file: File, report: SkipReport) -> Iterator[Concept]:
    """Read the records of a file. See `read_concepts`."""
    return read_concepts(
        data / file.path, report, format=file.format, lang=file.lang, columns=file.columns
    )


def _mesh_record(record: Concept) -> Concept:
    parents = tuple(f"MESH:{parent}" for parent in record.parents)
    return record._replace(id=f"MESH:{record.id}", parents=parents)


def add(concept: Concept | None, more: Concept) -> Concept:
    """Add a record of a concept to those before; the first preferred name stays one."""
    if concept is None:
        return more
    names = ((Alias(more.name, more.lang),) if more.name else ()) + more.aliases
    if not concept.name and more.name:
        concept, names = concept._replace(name=more.name, lang=more.lang), more.aliases
    return concept._replace(
        aliases=concept.aliases + names,
        types=concept.types + more.types,
        parents=concept.parents + more.parents,
        xrefs=concept.xrefs + more.xrefs,
        alternative_ids=concept.alternative_ids + more.alternative_ids,
    )


def references(concept: Concept) -> list[str]:
    """List the cross references that are passed on, in one spelling of their prefixes."""
    found: dict[str, None] = {}
    for one in (one for xref in concept.xrefs for one in xref.split(",")):
        prefix, _, id = one.strip().partition(":")
        prefix = RELEASE.sub("", prefix)
        if prefix in REGISTERS and id:
            found[f"{REGISTERS[prefix]}:{id}"] = None
    return sorted(found)


def findings(concepts: dict[str, Concept]) -> Iterator[str]:
    """Yield the ids of HPO that are phenotypic abnormalities, and those newer than its tree."""
    children = defaultdict(list)
    for concept in concepts.values():
        for parent in concept.parents:
            children[parent].append(concept.id)
    below, stack = set(), [FINDINGS]
    while stack:
        new = [child for child in children[stack.pop()] if child not in below]
        below.update(new)
        stack += new
    for id, concept in concepts.items():
        if id in below or (not concept.parents and id not in children):
            yield id


def select_mesh(concepts: dict[str, Concept], lang: str) -> Iterator[Concept]:
    """Yield the concepts of MeSH in the wanted branches, with the branches as types."""
    for concept in concepts.values():
        types = [
            tree[:3]
            for tree in concept.types
            if BRANCHES.match(tree) or (lang == "en" and ENGLISH_BRANCHES.match(tree))
        ]
        if "SCR_Disease" in concept.types:
            types = ["C"]
        elif any(tree.startswith("C22") for tree in concept.types):  # of animals
            continue
        concept = concept._replace(types=tuple(sorted(set(types))))
        if lang == "es" and not is_clinical(concept):
            concept = concept._replace(aliases=(*concept.aliases, *spanish_spellings(concept)))
        if types:
            yield concept


def spanish_spellings(concept: Concept) -> Iterator[Alias]:
    """Yield names of one word as Spanish spells them: "amoxicilin" of amoxicillin, whose stem is
    that of amoxicilina. They count as English, so that they are not shown as preferred names."""
    for name in _names(concept):
        spelled = DOUBLE.sub(r"\1", SOFT_Z.sub("c", name))
        if " " not in name and name_key(spelled) != name_key(name):
            yield Alias(spelled, "en")


def join(concepts: Iterable[Concept]) -> list[Concept]:
    """Join the concepts of different sources that mean the same, see the module's description.

    concepts (Iterable[Concept]): With ids "PREFIX:id", xrefs as `references` lists them.
    RETURNS (list[Concept]): Sorted by id.
    """
    by_id = {concept.id: concept for concept in concepts}
    group = {id: {_source(id): id} for id in by_id}
    for _, one, other in sorted(_same(by_id)):
        ours, theirs = group[one], group[other]
        if not ours.keys() & theirs.keys():  # at most one of each source
            ours |= theirs
            for id in theirs.values():
                group[id] = ours
    joined = []
    for id, members in group.items():
        first, *others = sorted(members.values(), key=_rank)
        if id != first:
            continue
        concept = by_id[id]
        for other in others:
            xrefs = agree(concept.xrefs, by_id[other].xrefs)
            concept = add(concept, by_id[other])._replace(xrefs=xrefs)
        if "HP" in members:  # its labels are the only translated ones, so they come first
            concept = concept._replace(aliases=by_id[members["HP"]].aliases + concept.aliases)
        joined.append(
            concept._replace(
                types=tuple(sorted(set(concept.types))),
                xrefs=tuple(sorted({*concept.xrefs, *others} - {id})),
                alternative_ids=tuple(dict.fromkeys((*others, *concept.alternative_ids))),
            )
        )
    return sorted(joined, key=lambda concept: concept.id)


def agree(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, ...]:
    """Join the references of two sources: of a register that both have, those of both if any."""
    common = {_source(xref) for xref in set(ours) & set(theirs)}
    return tuple(
        xref
        for xref in dict.fromkeys((*ours, *theirs))
        if _source(xref) not in common or (xref in ours and xref in theirs)
    )


def _same(by_id: Mapping[str, Concept]) -> Iterator[tuple[float, str, str]]:
    """Yield pairs of ids that mean the same, and how unsure that is.

    The preferred name of each is a name of the other, or that of one is and they refer to each
    other or to the same UMLS id.
    """
    keys = {
        id: {name_key(text) for text in _names(by_id[id])} for id in by_id if is_clinical(by_id[id])
    }
    first = {id: name_key(by_id[id].name) for id in keys}
    sharing = defaultdict(list)
    for id, own in keys.items():
        for key in own:
            sharing[key].append(id)
    pairs = {pair for ids in sharing.values() for pair in combinations(sorted(ids, key=_rank), 2)}
    for one, other in pairs:
        if _source(one) == _source(other):
            continue
        ours, theirs = by_id[one], by_id[other]
        if rare_words(ours.name) != rare_words(theirs.name):
            continue  # a synonym of the rare form may be the name of the common one
        equal = first[one] == first[other]
        # The references of a narrow concept are often to a broader one, which does not have to be
        # called like it: so the later source's preferred name must be among the other's names.
        contains, contained = first[other] in keys[one], first[one] in keys[other]
        refers = one in theirs.xrefs or other in ours.xrefs
        umls = any(x in theirs.xrefs for x in ours.xrefs if x.startswith("UMLS:"))
        if (contains and (contained or refers)) or (umls and (contains or contained)):
            exact = normalize(ours.name) == normalize(theirs.name)
            shared = len(keys[one] & keys[other]) / len(keys[one] | keys[other])
            yield -(2 * exact + equal + refers + umls + shared), one, other


def mark_broader(concepts: Sequence[Concept]) -> Iterator[Concept]:
    """Mark references to what means more than the concept.

    That is a range of codes, the heading of another code of the concept, or the id of another
    concept. What several concepts refer to is that of the one with the fewest codes of the
    register, of several the one that is an ancestor of the others; for all others it is broader.
    """
    ids = {concept.id: concept.id for concept in concepts}
    ids |= {id: concept.id for concept in concepts for id in concept.alternative_ids}
    named = {concept.name: concept.id for concept in concepts if "doid" in concept.types}
    parents = {
        concept.id: {ids.get(parent) or named.get(parent, "") for parent in concept.parents}
        for concept in concepts
    }
    above = cache(lambda id: _find_above(id, parents))
    owners: dict[str, dict[str, int]] = defaultdict(dict)
    for concept in concepts:
        counts = Counter(_source(xref) for xref in concept.xrefs if not _is_heading(xref, concept))
        for xref in concept.xrefs:
            owners[xref][concept.id] = counts[_source(xref)]

    def is_own(xref: str, concept: Concept) -> bool:
        if _is_heading(xref, concept):
            return False
        if ids.get(xref, xref) != xref:  # joined with another concept, or with this one
            return ids[xref] == concept.id
        fewest = min(owners[xref].values())
        closest = {id for id, n in owners[xref].items() if n == fewest}
        return [id for id in closest if not above(id) & closest] == [concept.id]

    for concept in concepts:
        xrefs = (xref if is_own(xref, concept) else BROADER + xref for xref in concept.xrefs)
        yield concept._replace(xrefs=tuple(xrefs))


def _is_heading(xref: str, concept: Concept) -> bool:
    """Check whether a code of ICD is a range, or the heading of another code of the concept."""
    if not xref.startswith("ICD"):
        return False
    codes = [one for one in concept.xrefs if "-" not in one and one != xref]
    return "-" in xref or any(one.startswith(xref) for one in codes)


def _find_above(id: str, parents: Mapping[str, Collection[str]]) -> set[str]:
    """Find all ancestors of a concept."""
    found: set[str] = set()
    stack = [id]
    while stack:
        new = set(parents.get(stack.pop(), ())) - found
        found |= new
        stack += new
    return found - {id}


def resolve(
    concepts: Iterable[Concept],
    ours: Mapping[str, Concept],
    shorts: ShortNames,
    report: SkipReport,
) -> Iterator[Concept]:
    """Leave out aliases that are the preferred name of another concept: "stroke" is not every
    cerebrovascular disease. Our own names, and HPO's Spanish labels, are preferred names, too. An
    alias of several concepts stays with the one of most sources.

    ours (Mapping[str, Concept]): Id -> our own names, which are added.
    shorts (ShortNames): What short names may mean.
    """
    concepts = [
        concept._replace(aliases=ours[concept.id].aliases + concept.aliases)
        if concept.id in ours
        else concept
        for concept in concepts
    ]
    given = {spelling(a.text): id for id, more in ours.items() for a in more.aliases}
    owner = dict(given)
    by_id = {concept.id: concept for concept in concepts}
    for id in ours.keys() - by_id.keys():
        report.skip("id of our own names that no source has", id)
    for concept in filter(is_clinical, concepts):
        for name in preferred_names(concept):
            owner.setdefault(spelling(name), concept.id)
    for name, id in _find_main(filter(is_clinical, concepts)).items():
        owner.setdefault(name, id)

    def is_kept(concept: Concept, name: str) -> bool:
        own = owner.get(spelling(name), concept.id)
        if own == concept.id:
            return spelling(name) in given or shorts.allows(concept, name)
        # Labels tell a disease and a chemical of one name apart.
        return own in by_id and is_clinical(by_id[own]) != is_clinical(concept)

    for concept in concepts:
        kept = tuple(alias for alias in concept.aliases if is_kept(concept, alias.text))
        if n := len(concept.aliases) - len(kept):
            report.skip("alias that is rather the name of another concept", concept.id, n)
        yield concept._replace(aliases=kept)


def _find_main(concepts: Iterable[Concept]) -> dict[str, str]:
    """Find the concept that an alias of several most probably means: the one with the stems of the
    alias in its preferred name, else the only one that most sources have.

    RETURNS (dict[str, str]): Spelling of an alias -> id of the concept.
    """
    having: dict[str, dict[str, tuple[bool, int]]] = defaultdict(dict)
    for concept in concepts:
        keys = {name_key(name) for name in preferred_names(concept)}
        ids = (concept.id, *concept.alternative_ids)
        n_sources = len({_source(id) for id in ids} & set(RANK))
        for alias in concept.aliases:
            weight = (name_key(alias.text) in keys, n_sources)
            having[spelling(alias.text)][concept.id] = weight
    found = {}
    for name, weights in having.items():
        best = max(weights.values())
        main = [id for id, weight in weights.items() if weight == best]
        if len(weights) > len(main) == 1:
            found[name] = main[0]
    return found


def spelling(name: str) -> str:
    """Normalise a name so that number and order do not matter ("Neoplasms, Abdominal"). A short
    form keeps its "s": "MIS" is surgery, "MI" an infarction."""
    words = normalize(name).split(" ")
    return " ".join(sorted({w.removesuffix("s") if len(w) > MAX_SHORT else w for w in words}))


def _names(concept: Concept) -> list[str]:
    return [concept.name, *(alias.text for alias in concept.aliases)]


def _source(id: str) -> str:
    return id.partition(":")[0]


def _rank(id: str) -> tuple[int, str]:
    return RANK.index(_source(id)), id


def thin(concept: Concept, lang: str) -> Concept:
    """Leave out what a linker does not need: definitions, parents, systematic names of chemicals,
    Spanish names in an English terminology, and names that differ from another one in number
    or order only
    ("Neoplasm, Abdominal"). The preferred name is the first one in the language."""
    names = [Alias(concept.name, concept.lang), *concept.aliases]
    if lang == "en":
        names = [name for name in names if name.lang == lang]
    names.sort(key=lambda name: (name.lang != lang, lang == "es" and name.text.isupper()))
    kept: dict[str, Alias] = {}
    for name in names:
        if name is names[0] or is_clinical(concept) or not SYSTEMATIC.search(name.text):
            kept.setdefault(spelling(name.text), name)
    first, *aliases = kept.values()
    return concept._replace(
        name=first.text, lang=first.lang, aliases=tuple(aliases), definition="", parents=()
    )


def read_terminology(data: Path, lang: str, report: SkipReport) -> list[Concept]:
    """Read all sources, and join their concepts."""
    do = read_source(data, (*DOID, DOID_ES), report)
    hp = read_source(data, HP, report)
    mesh = read_source(data, (*MESH,), report) | read_source(data, (MESH_DISEASES,), report)
    chosen = [concept._replace(types=("doid",)) for concept in do.values()]
    chosen += [hp[id]._replace(types=("hp",)) for id in findings(hp)]
    chosen += select_mesh(mesh, lang)
    ours = {record.id: record for record in read(data, OURS, report)} if lang == "es" else {}
    joined = join(chosen)
    for file in BRANDS[lang]:
        for record in read(data, file, report):
            ours[record.id] = add(ours.get(record.id), record)
    shorts = read_short_names(joined, lang)
    given = {spelling(alias.text) for record in ours.values() for alias in record.aliases}
    for id, names in shorts.first.items():
        more = tuple(name for name in names if spelling(name.text) not in given)
        ours[id] = add(ours.get(id), Concept(id, "", lang, more))
    resolved = mark_broader(list(resolve(joined, ours, shorts, report)))
    codes = {record.id: record.xrefs for record in read(data, ICD10CM, report)}
    return [thin(replace_codes(concept, codes), lang) for concept in resolved]


def replace_codes(concept: Concept, codes: Mapping[str, tuple[str, ...]]) -> Concept:
    """Replace the ICD-10-CM codes of a concept by ours: id -> codes."""
    if concept.id not in codes:
        return concept
    others = (xref for xref in concept.xrefs if not xref.removeprefix(BROADER).startswith("ICD"))
    return concept._replace(xrefs=(*others, *codes[concept.id]))


def describe(data: Path, lang: str) -> list[dict[str, str | int]]:
    """Describe the files that are read, with their licences."""
    files = [*DOID, DOID_ES, *HP, *MESH, MESH_DISEASES, *([OURS] if lang == "es" else [])]
    files += (*BRANDS[lang], ICD10CM)
    found = []
    for file in files:
        found += Source(data / file.path, file.format, (data / file.path,)).describe(file.licence)
    return found


def linker_settings(lang: str) -> dict[str, Any]:
    """Get the settings of `bioclin_linker` for a pipeline that links to the terminology."""
    types = TYPES | ENGLISH_TYPES if lang == "en" else TYPES
    return {"labels": list(types), "types": types, "threshold": THRESHOLD}


def build(data: Path, lang: str, path: Path) -> KnowledgeBase:
    """Build the knowledge base, and write it completely or not at all."""
    report = SkipReport()
    concepts = read_terminology(data, lang, report)
    version = "DO 2026-07, HPO 2017-04 with current labels, MeSH 2024"
    meta = {
        "name": f"open-{lang}",
        "version": version,
        "sources": describe(data, lang),
        "compact": True,
    }
    return build_kb(concepts, path, meta=meta, report=report)


def main() -> None:
    """Read the options and build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lang", required=True, choices=["es", "en"])
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("BIOCLIN_DATA", DOWNLOADS),
        help="folder with doid, hpo and mesh; default: $BIOCLIN_DATA, else %(default)s",
    )
    parser.add_argument("-o", "--output", required=True, type=Path, help="folder to write")
    args = parser.parse_args()
    kb = build(args.data, args.lang, args.output)
    print(f"{args.output}: {len(kb):,} concepts, {len(kb.names):,} names, hash {kb.hash}")


if __name__ == "__main__":
    main()
