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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NamedTuple

from spacy_bioclin.catalog.tasks import DOWNLOADS
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.names.normalize import name_key, normalize
from spacy_bioclin.linking.readers import read_concepts
from spacy_bioclin.linking.readers.sources import Source
from spacy_bioclin.tokenization.short_forms import load_short_forms

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
# The first file of each names the ids that exist; the others add to them.
DOID = (
    File("doid/HumanDO_hierarchy.tsv", "table", CC0, {"id": "id", "name": "label"}),
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
CLINICAL = re.compile("doid|hp|C|F")
# HPO's terms of inheritance, onset, course, frequency and severity are no findings.
FINDINGS = "HP:0000118"
# Registers whose bare ids are passed on. SNOMED CT's are left out, because it is licensed.
REGISTERS = {"MESH": "MESH", "MSH": "MESH", "DOID": "DOID", "HP": "HP", "UMLS_CUI": "UMLS"}
REGISTERS |= {"UMLS": "UMLS", "ICD10CM": "ICD10CM", "ORDO": "ORPHA", "MIM": "OMIM", "OMIM": "OMIM"}
# Systematic names and codes of chemicals: brackets, several numbers, or many letters.
SYSTEMATIC = re.compile(r"[()\[\]]|\d\D+\d\D+\d|.{51}")
# Spanish has neither double consonants nor z before e and i.
DOUBLE, SOFT_Z = re.compile(r"(?<=[a-z])([bdfglmnpst])\1"), re.compile("z(?=[ei])")
LINKED_KINDS = ("disease", "symptom", "procedure", "test", "drug", "anatomy")
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
MAX_SHORT = 4  # letters of a short form that may end in "s"


def read_source(data: Path, files: Iterable[File], report: SkipReport) -> dict[str, Concept]:
    """Read the files of a source, and join the records of each id.

    data (Path): Folder with the files.
    RETURNS (dict[str, Concept]): Id -> concept, of the ids in the first file.
    """
    found: dict[str, Concept] = {}
    known: frozenset[str] | None = None
    for file in files:
        for record in read(data, file, report):
            if file.format == "mesh-tsv":
                record = _mesh_record(record)
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
        if lang == "es" and not _clinical(concept):
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
            concept = add(concept, by_id[other])
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


def _same(by_id: Mapping[str, Concept]) -> Iterator[tuple[float, str, str]]:
    """Yield pairs of ids that mean the same, and how unsure that is.

    The preferred name of each is a name of the other, or that of one is and they refer to each
    other or to the same UMLS id.
    """
    keys = {
        id: {name_key(text) for text in _names(by_id[id])} for id in by_id if _clinical(by_id[id])
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


def resolve(
    concepts: Iterable[Concept], ours: Mapping[str, Concept], report: SkipReport
) -> Iterator[Concept]:
    """Leave out aliases that are the preferred name of another concept: "stroke" is not every
    cerebrovascular disease. Our own names, and HPO's Spanish labels, are preferred names, too.

    ours (Mapping[str, Concept]): Id -> our own names, which are added.
    """
    concepts = [
        concept._replace(aliases=ours[concept.id].aliases + concept.aliases)
        if concept.id in ours
        else concept
        for concept in concepts
    ]
    owner = {spelling(a.text): id for id, more in ours.items() for a in more.aliases}
    for id in ours.keys() - {concept.id for concept in concepts}:
        report.skip(f"id that {Path(OURS.path).name} has alone", id)
    for concept in filter(_clinical, concepts):
        # The first Spanish name is HPO's label; the Disease Ontology has Spanish synonyms only.
        spanish = (alias.text for alias in concept.aliases if alias.lang == "es")
        labels = islice(spanish, 1) if "hp" in concept.types else ()
        for name in (concept.name, *labels):
            owner.setdefault(spelling(name), concept.id)
    for concept in concepts:
        kept = tuple(
            alias
            for alias in concept.aliases
            if not _clinical(concept) or owner.get(spelling(alias.text), concept.id) == concept.id
        )
        if n := len(concept.aliases) - len(kept):
            report.skip("alias that is the preferred name of another concept", concept.id, n)
        yield concept._replace(aliases=kept)


def spelling(name: str) -> str:
    """Normalise a name so that number and order do not matter ("Neoplasms, Abdominal"). A short
    form keeps its "s": "MIS" is surgery, "MI" an infarction."""
    words = normalize(name).split(" ")
    return " ".join(sorted({w.removesuffix("s") if len(w) > MAX_SHORT else w for w in words}))


def _names(concept: Concept) -> list[str]:
    return [concept.name, *(alias.text for alias in concept.aliases)]


def _clinical(concept: Concept) -> bool:
    return any(CLINICAL.match(type) for type in concept.types)


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
    names.sort(key=lambda name: name.lang != lang)
    kept: dict[str, Alias] = {}
    for name in names:
        if name is names[0] or _clinical(concept) or not SYSTEMATIC.search(name.text):
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
    chosen = [concept._replace(xrefs=tuple(references(concept))) for concept in chosen]
    ours = {record.id: record for record in read(data, OURS, report)} if lang == "es" else {}
    joined = join(chosen)
    for id, shorts in find_short_forms(joined, lang).items():
        ours[id] = add(ours.get(id), Concept(id, "", lang, shorts))
    return [thin(concept, lang) for concept in resolve(joined, ours, report)]


def find_short_forms(concepts: Iterable[Concept], lang: str) -> dict[str, tuple[Alias, ...]]:
    """Find the short forms of our lexicon by their long forms: "T2DM", "IRC".

    Of a short form of several meanings, only the first counts, which is right without a cue.

    RETURNS (dict[str, tuple[Alias, ...]]): Id of a concept -> its short forms.
    """
    named: dict[str, str] = {}
    for wants_preferred in (True, False):
        for concept in concepts:
            for name in [concept.name] if wants_preferred else _names(concept):
                named.setdefault(name_key(name), concept.id)
    found: dict[str, dict[str, Alias]] = defaultdict(dict)
    for meanings in load_short_forms(lang).values():
        form = meanings[0]
        if form.kind in LINKED_KINDS and len(form.short) > 1:
            keys = [name_key(name) for name in (form.english, *form.long) if name]
            if id := next((named[key] for key in keys if key in named), None):
                found[id][form.short] = Alias(form.short, lang)
    return {id: tuple(aliases.values()) for id, aliases in found.items()}


def describe(data: Path, lang: str) -> list[dict[str, str | int]]:
    """Describe the files that are read, with their licences."""
    files = [*DOID, DOID_ES, *HP, *MESH, MESH_DISEASES, *([OURS] if lang == "es" else [])]
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
