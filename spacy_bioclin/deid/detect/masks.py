"""Recognise in a note what the operators wrote in an earlier run.

A note may contain anything in square brackets, so nothing is taken for a mask because of its form:
`[LABEL]` must have exactly a label of the policy's scheme, and a hash or an encrypted value must be
authentic, which only this secret key shows. The number of `[LABEL 2]` may be a person's age or id:
it is searched like the rest of the note.
"""

import re

from ...errors import BioclinError
from ..labels import scheme_labels
from ..operators import is_authentic_hash, unseal
from ..spans import PhiSpan

_BRACKETS = re.compile(r"\[([^\[\]\n]+)\]")
_NUMBERED = re.compile(r"\[([^\[\]\n]{1,80}) (\d{1,6})\]")
_CODED = re.compile(r"([^\[\]\n]{1,80}) (?:([0-9a-f]{24})|([A-Za-z0-9_-]{39,}=*))")


def find_masks(text: str, scheme: str, key: bytes | None) -> list[tuple[int, int]]:
    """Find the masks in a note that contain no PHI.

    text (str): The note.
    scheme (str): The policy's label scheme.
    key (bytes | None): The secret key; without one, no hash and no encrypted value is a mask.
    RETURNS (list[tuple[int, int]]): Start and end of each with its brackets, sorted.
    """
    labels = scheme_labels(scheme)
    return [
        found.span()
        for found in _BRACKETS.finditer(text)
        if found[1] in labels or (key is not None and _is_authentic(found[1], key))
    ]


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
    """Find the brackets of `[LABEL 2]` around spans that are the number of their own label.

    They are replaced together, so that the note has one mask there, and not one in another.
    spans (list[PhiSpan]): Sorted, not overlapping.
    RETURNS (dict[PhiSpan, tuple[int, int]]): Start and end of the brackets.
    """
    if "[" not in text:
        return {}
    ends = [0, *(span.end for span in spans), len(text)]
    starts = [0, *(span.start for span in spans), len(text)]
    found = {}
    for i, span in enumerate(spans, 1):
        left, right = ends[i - 1], starts[i + 1]
        opening = text.rfind("[", left, span.start + 1)
        match = None if opening < 0 else _NUMBERED.match(text, opening, right)
        if match is not None and match[1] == span.label and _covers(span, *match.span(2)):
            found[span] = match.span()
    return found


def _covers(span: PhiSpan, start: int, end: int) -> bool:
    return span.start <= start and end <= span.end
