"""What benchmarks/linking/accuracy.py works on: gold mentions and terminologies, as plain values.

Mentions of NCBI-disease, BC5CDR (diseases, chemicals) and CANTEMIST, by split, with canonical ids
(`spacy_bioclin.evaluation.linking.gold_ids`: prefixes dropped, alternative ids of the terminology
replaced). A document that stands twice in a split counts once (one in NCBI-disease's train, as in
BioSyn's preprocessing), and so does a mention. A mention without a concept has no ids: NIL.

    python -m benchmarks.linking.data

prints counts of train and dev, among them the mentions whose ids all have a name ("covered").
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from benchmarks.corpora import TASKS, read_annotated
from benchmarks.harness import data_dir, make_parser
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.pubtator import PARTS
from spacy_bioclin.evaluation.linking import LinkedMention, covered, gold_ids, split_seen
from spacy_bioclin.linking.kb.concepts import Concept, SkipReport
from spacy_bioclin.linking.readers.mesh import read_mesh_tsv
from spacy_bioclin.linking.readers.names import read_names
from spacy_bioclin.linking.readers.table import read_table
from spacy_bioclin.types import AnnotatedText, NoteAnnotation

Alternatives = Mapping[str, str]


class Corpus(NamedTuple):
    """A corpus and the terminology of its ids.

    task (str): Corpus in the catalog.
    labels (tuple[str, ...]): Labels of the mentions that count; () for all.
    terminology (str): One of `TERMINOLOGIES`.
    """

    task: str
    labels: tuple[str, ...]
    terminology: str

    @property
    def lang(self) -> str:
        """Language of the texts."""
        return TASKS[self.task].lang


class GoldMention(NamedTuple):
    """A mention of a corpus.

    doc (str): Id of its document.
    start, end (int): Characters of the document's text, from the first to the last.
    text (str): What stands there.
    label (str): Of the corpus.
    ids (tuple[str, ...]): Canonical; several for a composite mention, () for NIL.
    parts (tuple[str, ...]): The names that the corpus states for the parts of a composite mention
        ("ocular toxicity", "auditory toxicity"; BC5CDR only), one for each id that it gives; ()
        where it states none.
    """

    doc: str
    start: int
    end: int
    text: str
    label: str
    ids: tuple[str, ...]
    parts: tuple[str, ...] = ()


class Split(NamedTuple):
    """texts (dict[str, str]): Document id -> text, of all documents.
    mentions (list[GoldMention]): In order of the files."""

    texts: dict[str, str]
    mentions: list[GoldMention]


CORPORA = {
    "ncbi-disease": Corpus("ncbi-disease", (), "medic"),
    "bc5cdr-disease": Corpus("bc5cdr", ("Disease",), "diseases"),
    "bc5cdr-chemical": Corpus("bc5cdr", ("Chemical",), "mesh"),
    "cantemist": Corpus("cantemist", (), "icd-o"),
}

# -- mentions --------------------------------------------------------------------------------------


def load_split(corpus: str, split: str, alternatives: Alternatives | None = None) -> Split:
    """Load the gold mentions of one split.

    corpus (str): One of `CORPORA`.
    split (str): "train", "dev" or "test".
    alternatives (Alternatives | None): Of the corpus's terminology, see `alternative_ids`.
    RETURNS (Split): Texts and mentions.
    """
    task, labels, _ = CORPORA[corpus]
    texts: dict[str, str] = {}
    mentions: list[GoldMention] = []
    for document in read_annotated(task, *TASKS[task].splits[split]):
        if document.id not in texts:
            texts[document.id] = document.text
            mentions += dict.fromkeys(_mentions(document, labels, alternatives))
    return Split(texts, mentions)


def _mentions(
    document: AnnotatedText, labels: tuple[str, ...], alternatives: Alternatives | None
) -> Iterator[GoldMention]:
    parts = {
        note.target: tuple(note.text.split("|"))
        for note in document.annotations
        if isinstance(note, NoteAnnotation) and note.kind == PARTS
    }
    for span in spans_of(document):
        if labels and span.label not in labels:
            continue
        start, end = min(span.fragments)[0], max(end for _, end in span.fragments)
        # BioSyn takes the parts where there are as many as ids (preprocess/bc5cdr_preprocess.py).
        own = parts.get(span.id, ())
        yield GoldMention(
            document.id,
            start,
            end,
            document.text[start:end],
            span.label,
            gold_ids(span.concept_ids, alternatives),
            own if len(own) == len(span.concept_ids) else (),
        )


def to_linked(mention: GoldMention, *rankings: list[str], nil: bool = False) -> LinkedMention:
    """Add a system's candidates to a mention, for `score_linking`."""
    return LinkedMention(mention.doc, mention.text, mention.ids, rankings, nil)


# -- terminologies ---------------------------------------------------------------------------------

MESH = "mesh/mesh2024_descriptor_terms.tsv.xz"
TREES = "mesh/mesh2024_tree_numbers.tsv.xz"
SUPPLEMENTARY = "mesh/mesh_disease_scr.tsv"
# Trees of MEDIC: diseases and mental disorders (Davis et al. 2012).
DISEASE_TREES = ("C", "F03")


def _medic() -> Iterator[Concept]:
    """Where an OMIM number and a MeSH id stand in one row, the concept is MeSH's, as in MEDIC."""
    for concept in read_names(data_dir() / "medic/medic_06Jul2012.txt", SkipReport()):
        ids = sorted((concept.id, *concept.alternative_ids), key=str.isdigit)
        yield concept._replace(id=ids[0], alternative_ids=tuple(ids[1:]))


def _mesh() -> Iterator[Concept]:
    """Descriptors with their tree numbers as types."""
    for name in (MESH, TREES):
        yield from read_mesh_tsv(data_dir() / name, SkipReport())


def _diseases() -> Iterator[Concept]:
    """MEDIC, and from MeSH 2024 the disease descriptors and disease supplementary records."""
    trees = {
        concept.id
        for concept in read_mesh_tsv(data_dir() / TREES, SkipReport())
        if any(type.startswith(DISEASE_TREES) for type in concept.types)
    }
    yield from _medic()
    yield from (concept for concept in _mesh() if concept.id in trees)
    yield from read_mesh_tsv(data_dir() / SUPPLEMENTARY, SkipReport())


def _icd_o() -> Iterator[Concept]:
    """Spanish ICD-O morphology: the 7-character table, in which every row of the 6-character one
    stands too, and the task's list of codes, most of which have no name (all that end in "/H")."""
    folder = data_dir() / "cantemist" / "terminology"
    yield from read_table(folder / "icdo3_morphology_es_7chars.tsv", SkipReport())
    for line in (folder / "valid-codes.tsv").read_text(encoding="utf-8").splitlines():
        yield Concept(line.split("\t")[0].strip())


# Name -> records, those of one id to be joined; some have no name.
TERMINOLOGIES: dict[str, Callable[[], Iterator[Concept]]] = {
    "medic": _medic,
    "mesh": _mesh,
    "diseases": _diseases,
    "icd-o": _icd_o,
}


def alternative_ids(concepts: Iterable[Concept]) -> dict[str, str]:
    """Map alternative ids to the id of their concept, the first if several claim it.

    Alternative ids that are ids of concepts themselves are left out.
    """
    ids: set[str] = set()
    alternatives: dict[str, str] = {}
    for concept in concepts:
        ids.add(concept.id)
        for id in concept.alternative_ids:
            alternatives.setdefault(id, concept.id)
    return {id: own for id, own in alternatives.items() if id not in ids}


def named_ids(concepts: Iterable[Concept]) -> set[str]:
    """Collect the ids of concepts that have a name: those that can be found."""
    return {concept.id for concept in concepts if concept.name or concept.aliases}


def training_names(mentions: Iterable[GoldMention]) -> Iterator[tuple[str, str]]:
    """Names that BioSyn adds to its dictionary for testing: those of the train and dev mentions
    (preprocess/dictionary_preprocess.py, `--additional_data_dir`).

    mentions (Iterable[GoldMention]): Of the splits that may be learned from.
    YIELDS (tuple[str, str]): Id and name of every mention with one id, and of every part of a
        composite one whose parts are stated.
    """
    for mention in mentions:
        names = mention.parts or (mention.text,)
        if len(names) == len(mention.ids):
            yield from zip(mention.ids, names, strict=True)


# -- counts ----------------------------------------------------------------------------------------


def main() -> None:
    make_parser(__doc__).parse_args()
    for name, corpus in CORPORA.items():
        concepts = list(TERMINOLOGIES[corpus.terminology]())
        ids, alternatives = named_ids(concepts), alternative_ids(concepts)
        train = load_split(name, "train", alternatives).mentions
        seen_ids = {id for mention in train for id in mention.ids}
        for split in ("train", "dev"):
            gold = load_split(name, split, alternatives)
            linked = [to_linked(mention) for mention in gold.mentions]
            known = split_seen(linked, seen_ids, [mention.text for mention in train])
            counts = {
                "docs": len(gold.texts),
                "mentions": len(linked),
                "nil": sum(not mention.gold for mention in linked),
                "several_ids": sum(len(mention.gold) > 1 for mention in linked),
                "parts": sum(bool(mention.parts) for mention in gold.mentions),
                "covered": len(covered(linked, ids)),
                **({key: len(part) for key, part in known.items()} if split == "dev" else {}),
            }
            print(name, split, json.dumps(counts))


if __name__ == "__main__":
    main()
