"""Invented corpora of each kind of task, for trials of a few updates."""

from pathlib import Path

from spacy.tokens import Doc, Span

from spacy_bioclin.annotations.pairs import SCORE, make_pair
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.types import GOLD_KEY
from tests.training.several import blank

NOTES = [
    ("aspirina alivia dolor", "ALIVIA"),
    ("heparina causa sangrado", "CAUSA"),
    ("metformina causa diarrea", "CAUSA"),
    ("amoxicilina alivia fiebre", "ALIVIA"),
    ("digoxina causa náuseas", "CAUSA"),
    ("morfina alivia disnea", "ALIVIA"),
]


def make_docs(kind: str, *, graded: bool = False, layer: str = "ents") -> list[Doc]:
    """Make gold Docs of a kind of task.

    graded (bool): Pairs have a number instead of a class.
    layer (str): Where entities are.
    """
    nlp = blank()
    docs = []
    for index, (text, label) in enumerate(NOTES):
        yes = label == "CAUSA"
        if kind == "pairs":
            doc = make_pair(nlp, text, NOTES[index - 1][0])
            doc.cats = (
                {SCORE: 0.5 * index} if graded else {"true": float(yes), "false": float(not yes)}
            )
        elif kind == "texts":
            doc = nlp(text)
            doc.cats = {"yes": float(yes), "no": float(not yes)}
        else:
            doc = _annotate(nlp(text), label, layer, with_relations=kind == "relations")
        gold = doc.user_data.get(GOLD_KEY, {"layers": {}})
        doc.user_data[GOLD_KEY] = {**gold, "id": f"{index}-0", "task": ""}
        docs.append(doc)
    return docs


def _annotate(doc: Doc, label: str, layer: str, *, with_relations: bool) -> Doc:
    """Annotate a drug and a sign, and the relation between them."""
    spans = [Span(doc, 0, 1, label="DRUG"), Span(doc, 2, 3, label="SIGN")]
    if layer == "ents":
        doc.set_ents(spans, default="outside")
    if layer != "ents" or with_relations:
        doc.spans[layer] = spans
    arguments = [[span.start_char, span.end_char, span.label_] for span in spans]
    gold = {"layers": {layer: [[*own, ""] for own in arguments]}}
    if with_relations:
        gold["relations"] = [[label, *arguments]]  # type: ignore[assignment]
    doc.user_data[GOLD_KEY] = gold
    return doc


def write_corpus(folder: Path, kind: str, *, graded: bool = False, layer: str = "ents") -> Path:
    """Write the three splits of a corpus, which are the same."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        docs = make_docs(kind, graded=graded, layer=layer)
        write_docs(docs, folder / f"{split}.spacy")
    return folder
