"""From the annotations of a reference Doc to the tags of the predicted Doc's tokens."""

import warnings
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB
from spacy.tokens import Doc
from spacy.training import Example

from ..corpora.readers import TEACHER_KEY
from ..errors import BioclinError, BioclinWarning
from ..spans import annotated_labels, get_spans, is_annotated
from ..types import IntArray
from .tags import MISSING, OUTSIDE, TagSet, encode_spans, tags_of


def make_gold_tags(eg: Example, tag_sets: list[TagSet], spans_key: str | None) -> IntArray:
    """Find the tags of the predicted Doc's tokens.

    Spans of labels that the reference was not annotated for are ignored.

    RETURNS (IntArray): MISSING where the reference is not annotated or the boundary of one of its
        entities is inside a token, (n_tokens, n_layers).
    """
    labels = annotated_labels(eg.reference, spans_key)
    doc = eg.predicted
    tags = np.full((len(doc), len(tag_sets)), MISSING, dtype=np.int64)
    if not is_annotated(eg.reference, spans_key):
        return tags
    inside, masked = [], []
    for span in get_spans(eg.reference, spans_key):
        if labels is not None and span.label_ not in labels:
            continue
        found = doc.char_span(span.start_char, span.end_char, label=span.label)
        if found is not None:
            inside.append((found.start, found.end, span.label_))
        else:
            masked.append((span.start_char, span.end_char))
    for layer, tag_set in enumerate(tag_sets):
        if labels is None or not labels.isdisjoint(tag_set.labels):
            tags[:, layer] = encode_spans(inside, len(doc), tag_set)
    if spans_key is None:
        masked += _missing_ents(eg.reference)
    for start, end in masked:
        cover = doc.char_span(start, end, alignment_mode="expand")
        if cover is not None:
            tags[cover.start : cover.end] = MISSING
    return tags


def collect_labels(examples: Iterable[Example], spans_key: str | None, name: str) -> set[str]:
    """Collect the labels of spans, and warn of labels that are annotated but have no span.

    name (str): Name of the component, for the warning.
    """
    found: set[str] = set()
    annotated: set[str] = set()
    for eg in examples:
        found |= _find_labels(eg.reference, spans_key)
        annotated |= annotated_labels(eg.reference, spans_key) or set()
    if unused := sorted(annotated - found):
        warnings.warn(
            f"[components.{name}] does not learn {', '.join(unused)}: training examples are "
            "annotated for it, but none has a span of it; check the spelling in --annotated of "
            "`bioclin convert`",
            BioclinWarning,
            stacklevel=3,
        )
    return found


def check_labels(
    labels: Iterable[str], examples: Iterable[Example], spans_key: str | None, name: str
) -> None:
    """Check that there is a span of each label to learn from.

    name (str): Name of the component, for the error.
    RAISES (BioclinError): Examples have spans, or are annotated for labels, but none has a span of
        one of these labels, and no teacher knows it.
    """
    missing, has_labels = set(labels), False
    for eg in examples:
        found = _find_labels(eg.reference, spans_key)
        missing -= found
        has_labels |= bool(found) or annotated_labels(eg.reference, spans_key) is not None
        if not missing or TEACHER_KEY in eg.reference.user_data:
            return
    if has_labels:
        raise BioclinError(
            f"[initialize.components.{name}] labels: no training example has a span of "
            f"{', '.join(sorted(missing))}: correct the spelling, add a corpus that has it, or "
            "leave it out"
        )


def _find_labels(doc: Doc, spans_key: str | None) -> set[str]:
    """Find the labels that the spans of a gold Doc have and that it was annotated for."""
    labels = {span.label_ for span in get_spans(doc, spans_key)}
    known = annotated_labels(doc, spans_key)
    return labels if known is None else labels & known


def make_open_tags(
    examples: Sequence[Example], tags: IntArray, tag_sets: list[TagSet], spans_key: str | None
) -> NDArray[np.bool_] | None:
    """Find the tags that an "O" may stand for: those of labels that a document was not annotated
    for, in layers that have other labels too.

    tags (IntArray): From `make_gold_tags`, of all documents, (n_tokens, n_layers).
    RETURNS (NDArray | None): True for the tags that a token may have besides that in `tags`,
        (n_tokens, n_layers, n_tags); None if there are none.
    """
    open_tags: NDArray[np.bool_] | None = None
    if all(len(tag_set.labels) == 1 for tag_set in tag_sets):
        return open_tags
    end = 0
    for eg in examples:
        start, end = end, end + len(eg.predicted)
        labels = annotated_labels(eg.reference, spans_key)
        if labels is None:
            continue
        unknown = np.stack([~tags_of(tag_set, labels) for tag_set in tag_sets])
        unknown[:, OUTSIDE] = False
        if unknown.any():
            if open_tags is None:
                open_tags = np.zeros((*tags.shape, tag_sets[0].n_tags), dtype=np.bool_)
            open_tags[start:end] = (tags[start:end] == OUTSIDE)[..., None] & unknown
    return open_tags


def _missing_ents(doc: Doc) -> Iterator[tuple[int, int]]:
    """Find the character offsets of tokens whose entity tag is missing."""
    missing = np.flatnonzero(doc.to_array(ENT_IOB) == 0)
    for i in missing.tolist():
        yield doc[i].idx, doc[i].idx + len(doc[i])
