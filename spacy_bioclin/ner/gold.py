"""From the annotations of a reference Doc to the tags of the predicted Doc's tokens."""

from collections.abc import Iterator

import numpy as np
from spacy.attrs import ENT_IOB
from spacy.tokens import Doc
from spacy.training import Example

from ..spans import get_spans, is_annotated
from ..types import IntArray
from .tags import MISSING, TagSet, encode_spans


def make_gold_tags(eg: Example, tag_sets: list[TagSet], spans_key: str | None) -> IntArray:
    """Find the tags of the predicted Doc's tokens.

    RETURNS (IntArray): MISSING where the reference is not annotated or the boundary of one of its
        entities is inside a token, (n_tokens, n_layers).
    """
    doc = eg.predicted
    tags = np.full((len(doc), len(tag_sets)), MISSING, dtype=np.int64)
    if not is_annotated(eg.reference, spans_key):
        return tags
    inside, masked = [], []
    for span in get_spans(eg.reference, spans_key):
        found = doc.char_span(span.start_char, span.end_char, label=span.label)
        if found is not None:
            inside.append((found.start, found.end, span.label_))
        else:
            masked.append((span.start_char, span.end_char))
    for layer, tag_set in enumerate(tag_sets):
        tags[:, layer] = encode_spans(inside, len(doc), tag_set)
    if spans_key is None:
        masked += _missing_ents(eg.reference)
    for start, end in masked:
        cover = doc.char_span(start, end, alignment_mode="expand")
        if cover is not None:
            tags[cover.start : cover.end] = MISSING
    return tags


def _missing_ents(doc: Doc) -> Iterator[tuple[int, int]]:
    """Find the character offsets of tokens whose entity tag is missing."""
    missing = np.flatnonzero(doc.to_array(ENT_IOB) == 0)
    for i in missing.tolist():
        yield doc[i].idx, doc[i].idx + len(doc[i])
