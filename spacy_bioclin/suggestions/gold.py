"""Find gold spans with which a pipeline disagrees although it is sure of itself.

The pipeline must not have seen the gold spans in training: what it learned by heart, it does not
doubt. Ranking what disagrees with a model by the model's confidence finds wrong labels (Northcutt,
Jiang and Chuang 2021, "Confident Learning: Estimating Uncertainty in Dataset Labels").
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..evaluation.confusion import ErrorExample, LayerDoc, align, error_kind
from ..types import CharSpan

# Kind of an error of the pipeline -> what may be wrong with the gold spans.
KINDS = {
    "spurious": "missed",
    "missed": "extra",
    "label": "label",
    "boundary": "boundary",
    "both": "both",
}
MEANINGS = {
    "missed": "gold has no span here",
    "extra": "gold has a span where the pipeline has none",
    "label": "the pipeline has another label",
    "boundary": "the pipeline has other boundaries",
    "both": "the pipeline has an overlapping span with another label",
}


class Doubt(NamedTuple):
    """A place where gold spans look wrong.

    layer (str): Layer of the spans.
    kind (str): One of `MEANINGS`.
    confidence (float): Probability of what the pipeline says, from 0 to 1: that of its span, or
        that no token of the gold span belongs to an entity.
    example (ErrorExample): The document, the gold span and that of the pipeline.
    """

    layer: str
    kind: str
    confidence: float
    example: ErrorExample


class JudgedDoc(NamedTuple):
    """A gold document and what a pipeline says of it.

    doc (LayerDoc): Gold and predicted spans of a layer.
    probabilities (Mapping[CharSpan, float | None]): Of the predicted spans; None for those of
        rules.
    absence (Callable[[int, int], float] | None): Probability that no token of some characters
        belongs to an entity; None if it is not known.
    """

    doc: LayerDoc
    probabilities: Mapping[CharSpan, float | None]
    absence: Callable[[int, int], float] | None


def find_doubts(layer: str, docs: Iterable[JudgedDoc]) -> list[Doubt]:
    """Find the gold spans that look wrong.

    layer (str): Layer of the spans.
    docs (Iterable[JudgedDoc]): Documents.
    RETURNS (list[Doubt]): All disagreements with a known confidence, the most confident first.
    """
    doubts = []
    for judged in docs:
        for gold, predicted in align(judged.doc.reference, judged.doc.predicted):
            kind = error_kind((gold, predicted))
            if kind is None:
                continue
            confidence: float | None = None
            if predicted is not None:
                confidence = judged.probabilities.get(predicted)
            elif gold is not None and judged.absence is not None:
                confidence = judged.absence(gold[0], gold[1])
            if confidence is not None:
                example = ErrorExample(judged.doc, (gold, predicted))
                doubts.append(Doubt(layer, KINDS[kind.kind], confidence, example))
    return sort_doubts(doubts)


def sort_doubts(doubts: Iterable[Doubt]) -> list[Doubt]:
    """Sort doubts, the most confident first; equal ones as they come."""
    return sorted(doubts, key=lambda doubt: -doubt.confidence)
