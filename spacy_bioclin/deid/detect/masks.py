"""Recognise in a note what the operators wrote in an earlier run.

A note may contain anything in square brackets, so nothing is taken for a mask because of its form:
`[LABEL]` must have exactly a label of the policy's scheme, and a hash or an encrypted value must be
authentic, which only this secret key shows. The number of `[LABEL 2]` may be a person's age or id:
only the label before it is a mask.
"""

import re

from ...errors import BioclinError
from ..labels import scheme_labels
from ..operators import is_authentic_hash, unseal
from ..spans import PhiSpan

MAX_LABEL = 80
_BRACKETS = re.compile(r"\[([^\[\]\n]+)\]")
_NUMBERED = re.compile(r"\[([^\[\]\n]{1,80}) (\d{1,6})\]")
_CODED = re.compile(r"([^\[\]\n]{1,80}) (?:([0-9a-f]{24})|([A-Za-z0-9_-]{39,}=*))")


def find_masks(text: str, scheme: str, key: bytes | None) -> list[tuple[int, int]]:
    """Find the masks in a note that contain no PHI.

    text (str): The note.
    scheme (str): The policy's label scheme.
    key (bytes | None): The secret key; without one, no hash and no encrypted value is a mask.
    RETURNS (list[tuple[int, int]]): Start and end, sorted. Of `[LABEL 2]`, up to the number.
    """
    labels = scheme_labels(scheme)
    masks = []
    for found in _BRACKETS.finditer(text):
        label, _, code = found[1].partition(" ")
        if found[1] in labels or (key is not None and _is_authentic(found[1], key)):
            masks.append(found.span())
        elif label in labels and code.isdigit():
            masks.append((found.start(), found.end(1) - len(code)))
    return masks


def _is_authentic(content: str, key: bytes) -> bool:
    found = _CODED.fullmatch(content)
    if found is None:
        return False
    label, digest, token = found.groups()
    if digest is not None:
        return is_authentic_hash(label, digest, key)
    try:
        unseal(token, key, label)
    except BioclinError:
        return False
    return True


def find_brackets(spans: list[PhiSpan], text: str) -> dict[PhiSpan, tuple[int, int]]:
    """Find the brackets of `[LABEL 2]` around spans that contain its number.

    They are replaced together, so that no mask is inside another.
    spans (list[PhiSpan]): Sorted, not overlapping.
    RETURNS (dict[PhiSpan, tuple[int, int]]): Start and end of brackets that contain one span alone,
        all of it.
    """
    found = {}
    ends = [span.end for span in spans]
    starts = [span.start for span in spans]
    for span, left, right in zip(spans, [0, *ends], [*starts[1:], len(text)], strict=False):
        opening = text.rfind("[", max(left, span.start - MAX_LABEL - 1), span.start + 1)
        match = None if opening < 0 else _NUMBERED.match(text, opening, right)
        if match is not None and span.end <= match.end() and _covers(span, *match.span(2)):
            found[span] = match.span()
    return found


def _covers(span: PhiSpan, start: int, end: int) -> bool:
    return span.start <= start and end <= span.end
