"""Score spans on character offsets, strictly and relaxed; also the scorer for training.

The spans of a document are a set: a span that is annotated or predicted twice with the same offsets
and label counts once, as in the scripts of the shared tasks.

strict: offsets and label are equal.
relaxed: labels are equal and the spans share at least one character. Each span is matched at most
once, so splitting a mention in two earns one match and one false positive. The largest of all such
matchings counts, so the scores do not depend on any order and are never below the strict ones.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Set
from functools import partial
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import ENT_IOB
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import BioclinError
from ..spans import get_char_spans, is_annotated, keep_annotated
from ..types import GOLD_KEY, CharSpan


class Counts(NamedTuple):
    """Numbers of true positives, false positives and false negatives. In scores, 0/0 is 0."""

    tp: int
    fp: int
    fn: int

    @property
    def precision(self) -> float:
        """Share of the predictions that are right, from 0 to 1."""
        return self.tp / max(self.tp + self.fp, 1)

    @property
    def recall(self) -> float:
        """Share of the references that are found, from 0 to 1."""
        return self.tp / max(self.tp + self.fn, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.tp / max(2 * self.tp + self.fp + self.fn, 1)

    def prf(self) -> dict[str, float]:
        """Compute precision, recall and F1 under spaCy's keys "p", "r" and "f"."""
        return {"p": self.precision, "r": self.recall, "f": self.f1}

    @staticmethod
    def total(counts: Iterable["Counts"]) -> "Counts":
        """Add up counts."""
        return Counts(*(sum(column) for column in zip((0, 0, 0), *counts, strict=True)))

    @staticmethod
    def of_sets(reference: Set[Any], predicted: Set[Any]) -> "Counts":
        """Count what two sets have in common."""
        tp = len(reference & predicted)
        return Counts(tp, len(predicted) - tp, len(reference) - tp)


NOTHING = Counts(0, 0, 0)


class SpanScores(NamedTuple):
    """Counts of a corpus.

    per_doc (list[dict[str, Counts]]): For each document, label -> counts.
    """

    per_doc: list[dict[str, Counts]]

    @property
    def per_label(self) -> dict[str, Counts]:
        """Counts of each label of the reference or the prediction, sorted by label."""
        labels = sorted({label for doc in self.per_doc for label in doc})
        return {label: Counts.total(self.of_docs(label)) for label in labels}

    @property
    def micro(self) -> Counts:
        """Counts of all labels together."""
        return Counts.total(self.of_docs())

    def of_docs(self, label: str | None = None) -> list[Counts]:
        """Count per document, for one label or (None) for all labels together."""
        if label is None:
            return [Counts.total(doc.values()) for doc in self.per_doc]
        return [doc.get(label, NOTHING) for doc in self.per_doc]

    @property
    def macro(self) -> dict[str, float]:
        """Mean of "p", "r" and "f" over the labels of the reference.

        A label that is only predicted has no recall. It lowers the micro precision, not this mean.
        """
        present = [counts.prf() for counts in self.per_label.values() if counts.tp + counts.fn]
        return {key: sum(prf[key] for prf in present) / max(len(present), 1) for key in "prf"}


# Counts how many of the reference and the predicted spans of a label match in a document.
Match = Callable[[set[CharSpan], set[CharSpan]], int]


def strict_match(reference: set[CharSpan], predicted: set[CharSpan]) -> int:
    """Count the spans with equal offsets."""
    return len(reference & predicted)


def relaxed_match(reference: set[CharSpan], predicted: set[CharSpan]) -> int:
    """Find the size of the largest one-to-one matching of overlapping spans.

    The algorithm is greedy by end. All partners of the span that ends first cover its last
    character. The partner that ends first overlaps with nothing that the others do not overlap
    with, so it is safe to match it.
    """
    events = sorted(
        (position, begins, side, span)
        for side, spans in enumerate((reference, predicted))
        for span in spans
        if span[0] < span[1]
        for begins, position in enumerate((span[1], span[0]))  # what touches does not overlap
    )
    begun: tuple[list[tuple[int, CharSpan]], ...] = ([], [])  # per side, the first to end on top
    gone: tuple[set[CharSpan], ...] = (set(), set())
    matched = 0
    for _, begins, side, span in events:
        if begins:
            heappush(begun[side], (span[1], span))
        elif span not in gone[side]:
            gone[side].add(span)
            others, passed = begun[1 - side], gone[1 - side]
            while others and others[0][1] in passed:
                heappop(others)
            if others:
                matched += 1
                passed.add(heappop(others)[1])
    return matched


def score_spans(
    docs: Iterable[tuple[Collection[CharSpan], Collection[CharSpan]]],
    match: Match = strict_match,
) -> SpanScores:
    """Score documents, each given as (reference spans, predicted spans).

    docs (Iterable[tuple]): Character offsets of the whole, untouched text.
    match (Match): `strict_match` or `relaxed_match`.
    RETURNS (SpanScores): Counts per document and label.
    """
    per_doc = []
    for reference, predicted in docs:
        of_label = _by_label(reference), _by_label(predicted)
        counts = {}
        for label in of_label[0].keys() | of_label[1].keys():
            gold, system = of_label[0][label], of_label[1][label]
            tp = match(gold, system)
            counts[label] = Counts(tp, len(system) - tp, len(gold) - tp)
        per_doc.append(counts)
    return SpanScores(per_doc)


def _by_label(spans: Collection[CharSpan]) -> dict[str, set[CharSpan]]:
    of_label: dict[str, set[CharSpan]] = defaultdict(set)
    for span in spans:
        of_label[span[2]].add(span)
    return of_label


def reference_spans(doc: Doc, spans_key: str | None) -> set[CharSpan] | None:
    """Read the gold spans of a Doc, with the offsets of the corpus file if the Doc has them.

    Spans of labels that the Doc was not annotated for are left out.

    doc (Doc): A gold Doc.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    RETURNS (set[CharSpan] | None): None if the Doc is not annotated for this layer.
    """
    layers = doc.user_data.get(GOLD_KEY, {}).get("layers", {})
    layer = layers.get("ents" if spans_key is None else spans_key)
    if layer is not None:
        spans = {(start, end, label) for start, end, label, *_ in layer}
    elif is_annotated(doc, spans_key):
        spans = get_char_spans(doc, spans_key)
    else:
        return None
    return set(keep_annotated(spans, doc, spans_key))


def compare(eg: Example, spans_key: str | None) -> tuple[set[CharSpan], set[CharSpan]] | None:
    """Read the reference and the predicted spans of an Example.

    Predictions of labels that the reference was not annotated for are ignored. If only a part of
    `doc.ents` is annotated (other tokens have ENT_IOB 0), a prediction on an unannotated token is
    ignored, unless the reference has exactly that span.

    eg (Example): The Example, which is not changed.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    RETURNS (tuple | None): Reference and predicted spans; None if the reference is not annotated
        for this layer.
    RAISES (BioclinError): The predicted Doc has another text than the reference.
    """
    reference = reference_spans(eg.reference, spans_key)
    if reference is None:
        return None
    if eg.predicted.text != eg.reference.text:
        name = eg.reference.user_data.get(GOLD_KEY, {}).get("id", "without id")
        raise BioclinError(
            f"Cannot score document {name}: predicted and reference Doc hold different texts, so"
            " their character offsets do not compare. Make the predicted Doc with"
            " nlp.make_doc(reference.text)."
        )
    found = get_char_spans(eg.predicted, spans_key)
    predicted = set(keep_annotated(found, eg.reference, spans_key))
    if spans_key is None:
        starts, ends = _find_unannotated(eg.reference)
        predicted = {
            span
            for span in predicted
            if span in reference or bisect_right(ends, span[0]) >= bisect_left(starts, span[1])
        }
    return reference, predicted


def _find_unannotated(doc: Doc) -> tuple[list[int], list[int]]:
    """Find where the tokens without ENT_IOB start and end; none if no token has it."""
    missing: list[int] = np.flatnonzero(doc.to_array(ENT_IOB) == 0).tolist()
    if len(missing) == len(doc):
        return [], []
    return [doc[i].idx for i in missing], [doc[i].idx + len(doc[i]) for i in missing]


def span_score(
    examples: Iterable[Example], *, spans_key: str | None, **kwargs: Any
) -> dict[str, Any]:
    """Compute strict scores under spaCy's keys.

    examples (Iterable[Example]): The Examples, which are not changed.
    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    RETURNS (dict[str, Any]): `ents_p`, `ents_r`, `ents_f`, `ents_per_type`, or `spans_{key}_p` …
        All are None if no reference is annotated for the layer.
    """
    prefix = "ents" if spans_key is None else f"spans_{spans_key}"
    compared = (compare(eg, spans_key) for eg in examples)
    pairs = [pair for pair in compared if pair is not None]
    if not pairs:
        return dict.fromkeys(f"{prefix}_{key}" for key in ("p", "r", "f", "per_type"))
    scores = score_spans(pairs)
    per_type = {label: counts.prf() for label, counts in scores.per_label.items()}
    micro = {f"{prefix}_{key}": value for key, value in scores.micro.prf().items()}
    return {**micro, f"{prefix}_per_type": per_type}


def make_span_scorer(spans_key: str | None = None) -> Callable[..., dict[str, Any]]:
    """Make a scorer for a layer of spans. It is registered as `spacy-bioclin.span_scorer.v1`.

    spans_key (str | None): Key of `doc.spans`; None for `doc.ents`.
    RETURNS (Callable): `span_score` for that layer, which can be pickled.
    """
    return partial(span_score, spans_key=spans_key)
