"""The names and mentions of benchmarks/linking/candidates.py, made from the shared data.

Names: real ones first (MeSH 2024 descriptors, MEDIC, MeSH disease supplementary records, HPO and
DOID in English and Spanish), then the same concepts with a qualifier on every name, as a large
terminology has them ("…, left", "family history of …"), drawn with a fixed seed. Each size is the
beginning of the next. Mentions: those of BC5CDR and NCBI-disease, train and dev, in running order.
"""

import csv
import json
import lzma
import random
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import data_dir
from spacy_bioclin.corpora.pubtator import read_pubtator

Names = dict[str, list[tuple[str, str]]]  # concept id -> (name, language) in order
# English and Spanish form of each qualifier; "*" is the name.
QUALIFIERS = (
    ("*, left", "*, izquierda"),
    ("*, right", "*, derecha"),
    ("*, bilateral", "*, bilateral"),
    ("*, unilateral", "*, unilateral"),
    ("*, not otherwise specified", "*, sin otra especificación"),
    ("*, unspecified", "*, no especificada"),
    ("suspected *", "sospecha de *"),
    ("family history of *", "antecedentes familiares de *"),
    ("personal history of *", "antecedentes personales de *"),
    ("*, stage I", "*, estadio I"),
    ("*, stage II", "*, estadio II"),
    ("*, stage III", "*, estadio III"),
    ("*, stage IV", "*, estadio IV"),
    ("*, mild", "*, leve"),
    ("*, moderate", "*, moderada"),
    ("*, severe", "*, grave"),
    ("acute *", "* aguda"),
    ("chronic *", "* crónica"),
    ("recurrent *", "* recurrente"),
    ("history of *, resolved", "historia de *, resuelta"),
    ("screening for *", "cribado de *"),
    ("*, initial encounter", "*, contacto inicial"),
    ("*, subsequent encounter", "*, contacto sucesivo"),
    ("*, sequela", "*, secuela"),
)
SYNONYM = re.compile(r'synonym: "((?:[^"\\]|\\.)*)"')


def _tsv(path: Path) -> Iterator[list[str]]:
    """Read the rows after the header."""
    open_text = lzma.open if path.suffix == ".xz" else open
    with open_text(path, "rt", encoding="utf8", newline="") as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_MINIMAL)
        next(rows)
        yield from rows


def _obo(path: Path) -> Iterator[tuple[str, str]]:
    """Read ids and names, also of obsolete terms."""
    concept = ""
    with lzma.open(path, "rt", encoding="utf8") as lines:
        for line in lines:
            if line.startswith("id: "):
                concept = line[4:].strip()
            elif line.startswith("name: ") and concept:
                yield concept, line[6:].strip()
            elif found := SYNONYM.match(line):
                yield concept, found[1].replace('\\"', '"').strip()


def _sources() -> Iterator[tuple[str, str, str]]:
    """Read concept ids, names and languages."""
    data = data_dir()
    for row in _tsv(data / "mesh" / "mesh2024_descriptor_terms.tsv.xz"):
        yield row[0], row[1], "en"
        yield row[0], row[4], "en"
    for line in (data / "medic" / "medic_06Jul2012.txt").read_text(encoding="utf8").splitlines():
        ids, *_, names = line.split("||")
        for name in names.split("|"):
            yield ids, name, "en"
    for row in _tsv(data / "mesh" / "mesh_disease_scr.tsv"):
        yield row[0], row[1], "en"
    for folder, name in (("hpo", "hp-2017-04-13.obo.xz"), ("doid", "HumanDO-2015-11-11.obo.xz")):
        for concept, text in _obo(data / folder / name):
            yield concept, text, "en"
    for row in _tsv(data / "hpo" / "layperson-synonyms.tsv"):
        yield row[0].strip("<>").rsplit("/", 1)[-1].replace("_", ":"), row[2], "en"
    for row in _tsv(data / "doid" / "HumanDO_hierarchy.tsv"):
        yield row[0], row[1], "en"
    for row in _tsv(data / "hpo" / "hp-es.babelon.tsv"):
        yield row[2], row[5], "es"
    for row in _tsv(data / "doid" / "doid-es-translated.tsv"):
        if row[1] != "IAO:0000115":  # definitions
            yield row[0], row[3], "es"


def real_names() -> Names:
    """Collect the names of each concept with their language, no name twice."""
    found: dict[str, dict[str, str]] = {}
    for concept, name, lang in _sources():
        if name and concept:
            found.setdefault(concept, {}).setdefault(" ".join(name.split()), lang)
    return {concept: list(names.items()) for concept, names in found.items()}


def qualified(real: Names) -> Iterator[tuple[str, list[str]]]:
    """Yield concepts with a qualifier on every name.

    Each concept has its own order of qualifiers; the concepts are shuffled before each turn.
    """
    chance = random.Random(0)
    order = list(real)
    choices = {concept: chance.sample(range(len(QUALIFIERS)), len(QUALIFIERS)) for concept in order}
    for turn in range(len(QUALIFIERS)):
        chance.shuffle(order)
        for concept in order:
            which = choices[concept][turn]
            english, spanish = QUALIFIERS[which]
            forms = {"en": english, "es": spanish}
            names = [forms[lang].replace("*", name) for name, lang in real[concept]]
            yield f"{concept}-{which}", names


def write_names(folder: Path, sizes: list[int]) -> dict[str, int]:
    """Write names-SIZE.jsonl for each size, in scispaCy's format: concept_id, canonical_name,
    aliases; SIZE counts different strings.

    RETURNS (dict): How many names and concepts are real.
    """
    real = real_names()
    n_real = len({name for names in real.values() for name, _ in names})
    counts = {"real_names": n_real, "real_concepts": len(real)}
    missing = [size for size in sizes if not names_path(folder, size).exists()]
    for size in missing:
        seen: set[str] = set()
        partial = folder / "names.partial"
        with partial.open("w", encoding="utf8") as out:
            plain = ((concept, [name for name, _ in names]) for concept, names in real.items())
            for source in (plain, qualified(real)):
                for concept, names in source:
                    if len(seen) >= size:
                        break
                    names = names[: size - len(seen)]
                    seen.update(names)
                    record = {"concept_id": concept, "canonical_name": names[0]}
                    out.write(json.dumps({**record, "aliases": names[1:]}) + "\n")
        if len(seen) != size:
            raise ValueError(f"{size} names asked for, but only {len(seen)} can be made")
        partial.rename(names_path(folder, size))
    return counts


def names_path(folder: Path, size: int) -> Path:
    return folder / f"names-{size}.jsonl"


def read_names(folder: Path, size: int) -> list[str]:
    """Read the different names, in order."""
    found: dict[str, None] = {}
    with names_path(folder, size).open(encoding="utf8") as lines:
        for line in lines:
            record = json.loads(line)
            found[record["canonical_name"]] = None
            found.update(dict.fromkeys(record["aliases"]))
    return list(found)


def read_mentions() -> list[str]:
    """Read the strings of all mentions, in order of the text."""
    corpora = data_dir()
    paths = (
        corpora / "bc5cdr" / "pubtator" / "CDR_TrainingSet.PubTator.txt",
        corpora / "bc5cdr" / "pubtator" / "CDR_DevelopmentSet.PubTator.txt",
        corpora / "ncbi-disease" / "original" / "NCBItrainset_corpus.txt",
        corpora / "ncbi-disease" / "original" / "NCBIdevelopset_corpus.txt",
    )
    return [
        " ".join(doc.text[start:end] for start, end in annotation.fragments)
        for path in paths
        for doc in read_pubtator(path)
        for annotation in doc.annotations
        if hasattr(annotation, "fragments")
    ]
