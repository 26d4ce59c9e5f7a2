"""Score tagged sentences by the rules of conlleval (Sang and Buchholz, CoNLL-2000).

The Perl script accepts malformed sequences: a chunk also starts at an I after O, or where the type
changes. E and S (IOBES) end a chunk, and so do their equivalents L and U (spaCy's BILUO).
"""

from collections.abc import Iterable, Sequence

from ..errors import BioclinError
from ..types import CharSpan
from .spans import SpanScores, score_spans

OUTSIDE, SINGLE, LAST = "O", "SU", "EL"
PREFIXES = "BI" + SINGLE + LAST


def chunks(tags: Sequence[str]) -> list[CharSpan]:
    """Convert a sequence of tags to chunks.

    tags (Sequence[str]): One tag per token: "O", or prefix, hyphen and type ("B-Disease").
    RETURNS (list[CharSpan]): (first token, token after the last, type), in order.
    RAISES (BioclinError): A tag has another form.
    """
    found: list[CharSpan] = []
    start, previous, previous_type = 0, OUTSIDE, ""
    for i, tag in enumerate((*tags, OUTSIDE)):
        prefix, type_ = _split(tag)
        new_type = type_ != previous_type
        if previous != OUTSIDE and (
            prefix in OUTSIDE + "B" + SINGLE or previous in SINGLE + LAST or new_type
        ):
            found.append((start, i, previous_type))
        if prefix != OUTSIDE and (
            prefix in "B" + SINGLE or previous in OUTSIDE + SINGLE + LAST or new_type
        ):
            start = i
        previous, previous_type = prefix, type_
    return found


def _split(tag: str) -> tuple[str, str]:
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, hyphen, type_ = tag.partition("-")
    if len(prefix) != 1 or prefix not in PREFIXES or not hyphen:
        raise BioclinError(
            f"Cannot read the tag {tag!r}: write 'O', or one of {', '.join(PREFIXES)}, a hyphen"
            " and the type, such as 'B-Disease'."
        )
    return prefix, type_


def conlleval(sentences: Iterable[tuple[Sequence[str], Sequence[str]]]) -> SpanScores:
    """Score tagged sentences.

    sentences (Iterable[tuple]): Reference tags and predicted tags of each sentence.
    RETURNS (SpanScores): Scores with one entry of `per_doc` per sentence.
    RAISES (BioclinError): The numbers of reference and predicted tags of a sentence differ.
    """
    pairs = []
    for index, (reference, predicted) in enumerate(sentences):
        if len(reference) != len(predicted):
            raise BioclinError(
                f"Sentence {index} (counted from 0) has {len(reference)} reference tags and"
                f" {len(predicted)} predicted ones: give one of each per token."
            )
        pairs.append((chunks(reference), chunks(predicted)))
    return score_spans(pairs)
