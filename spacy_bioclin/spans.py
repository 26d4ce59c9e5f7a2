"""Read and write a layer of spans: `doc.ents`, or `doc.spans[key]`, with their probabilities.

Everywhere in the package `spans_key` names the layer: a key of `doc.spans`, or None for `doc.ents`.
The probability of an entity is stored in `ent._.probability`, those of a span group are in
`doc.spans[key].attrs["scores"]`, where spaCy's own spancat puts them, and shown by
`span._.probability`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from spacy.tokens import Doc, Span

from .types import GOLD_KEY, CharSpan

T = TypeVar("T", bound=tuple[Any, ...])


def install_extensions() -> None:
    """Register `span._.probability`, the posterior probability of an entity or span, or None."""
    if not Span.has_extension("probability"):
        Span.set_extension("probability", getter=_get_probability, setter=_set_probability)


def _get_probability(span: Span) -> float | None:
    """Read what is stored for an entity, or the score of the same span in a group."""
    values: dict[Any, float | None] = span.doc.user_data
    stored = values.get(_key(span))
    if stored is not None and (not span.doc.spans or _is_ent(span)):
        return stored
    wanted = span.start, span.end, span.label
    found = (score for place, score in _list_scores(span.doc) if place == wanted)
    return next(found, stored)


def _list_scores(doc: Doc) -> Iterator[tuple[tuple[int, int, int], float]]:
    """List (start, end, label) and the score of each span in a group that has one."""
    for key, group in doc.spans.items():
        for span, score in zip(group, get_probabilities(doc, key), strict=True):
            if score is not None:
                yield (span.start, span.end, span.label), score


def _is_ent(span: Span) -> bool:
    """Check whether a span is one of `doc.ents`, by its own tokens."""
    begins, *inside = [token.ent_iob_ for token in span] or [""]
    after = span.doc[span.end].ent_iob_ if span.end < len(span.doc) else ""
    is_whole = begins == "B" and after != "I" and set(inside) <= {"I"}
    return is_whole and span.doc[span.start].ent_type == span.label


def _set_probability(span: Span, probability: float | None) -> None:
    values: dict[Any, float | None] = span.doc.user_data
    values[_key(span)] = probability


def _key(span: Span) -> tuple[str, str, int, int]:
    """Name the place where spaCy keeps the value of a span's extension."""
    return "._.", "probability", span.start_char, span.end_char


def get_spans(doc: Doc, spans_key: str | None) -> list[Span]:
    """Read the spans of a layer.

    RETURNS (list[Span]): Empty if the Doc does not have the layer.
    """
    return list(doc.ents) if spans_key is None else list(doc.spans.get(spans_key, ()))


def is_annotated(doc: Doc, spans_key: str | None) -> bool:
    """Check whether a Doc has the layer, even if there is no span in it."""
    return doc.has_annotation("ENT_IOB") if spans_key is None else spans_key in doc.spans


def annotated_labels(doc: Doc, spans_key: str | None) -> frozenset[str] | None:
    """Read the labels that a gold Doc was annotated for.

    Where the Doc has no span of another label, nobody has looked for one.

    RETURNS (frozenset[str] | None): None if the layer is complete for every label.
    """
    layers = doc.user_data.get(GOLD_KEY, {}).get("annotated", {})
    labels = layers.get("ents" if spans_key is None else spans_key)
    return None if labels is None else frozenset(labels)


def keep_annotated(spans: Iterable[T], doc: Doc, spans_key: str | None) -> list[T]:
    """Leave out the spans of labels that a gold Doc was not annotated for.

    spans (Iterable[tuple]): Tuples of start, end, label and more.
    """
    labels = annotated_labels(doc, spans_key)
    return [span for span in spans if labels is None or span[2] in labels]


def get_char_spans(doc: Doc, spans_key: str | None) -> set[CharSpan]:
    """Read the character offsets and labels of a layer."""
    return {(span.start_char, span.end_char, span.label_) for span in get_spans(doc, spans_key)}


def get_probabilities(doc: Doc, spans_key: str | None) -> list[float | None]:
    """Read the probabilities of a layer's spans, in their order.

    RETURNS (list[float | None]): None for a span whose component gave no probability.
    """
    if spans_key is None:
        if not Span.has_extension("probability"):
            return [None] * len(doc.ents)
        values: dict[Any, float | None] = doc.user_data
        stored = [values.get(_key(ent)) for ent in doc.ents]
        if None not in stored or not doc.spans:
            return stored
        # The first group that has a span counts. One look at all groups, not one for each entity.
        found = dict(reversed(list(_list_scores(doc))))
        return [
            found.get((ent.start, ent.end, ent.label)) if probability is None else probability
            for ent, probability in zip(doc.ents, stored, strict=True)
        ]
    group = doc.spans.get(spans_key, ())
    scores = getattr(group, "attrs", {}).get("scores")
    if scores is None or len(scores) != len(group):  # a group that was changed since
        return [None] * len(group)
    return [float(score) for score in scores]


def get_layers(doc: Doc) -> Iterator[tuple[str | None, list[Span], list[float | None]]]:
    """Read every layer of a Doc.

    YIELDS (tuple): The layer's `spans_key`, its spans and their probabilities; `doc.ents` first.
    """
    for spans_key in (None, *doc.spans):
        yield spans_key, get_spans(doc, spans_key), get_probabilities(doc, spans_key)


def set_spans(
    doc: Doc,
    spans_key: str | None,
    spans: Sequence[Span],
    probabilities: Iterable[float | None],
) -> None:
    """Replace the spans of a layer and their probabilities.

    spans (Sequence[Span]): For `doc.ents` they must not overlap, and tokens outside of them are
        annotated as "O".
    probabilities (Iterable[float | None]): One for each span; a span group in which one is None
        gets no scores.
    """
    if spans_key is None:
        install_extensions()  # lost when a worker process starts
        doc.set_ents(list(spans), default="outside")
        for span, probability in zip(spans, probabilities, strict=True):
            span._.probability = probability
    else:
        doc.spans[spans_key] = list(spans)
        scores = list(probabilities)
        if None not in scores:
            doc.spans[spans_key].attrs["scores"] = np.array(scores, dtype=np.float32)
