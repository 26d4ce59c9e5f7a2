"""A string that is PHI in one place is PHI wherever it stands in the note."""

import re
from collections.abc import Callable, Iterator

from ...text import MIN_CHARS, find_values, fold_alnum
from ..labels import SCHEMES, scheme_labels, type_of
from ..spans import PhiSpan
from ..surrogates.persons import PARTICLES, TITLES

NAMES = ("patient_name", "staff_name")
REPEAT = "repeat"
_WORD = re.compile(r"[^\W\d_]+")
# Words of the labels ("hospital", "calle") are written by the masks themselves.
_LABEL_WORDS = frozenset(
    fold_alnum(word)
    for scheme in SCHEMES
    for label in scheme_labels(scheme)
    for word in re.split(r"[_-]", label)
)
# Words of names that say nothing about who it is.
NOT_NAMES = _LABEL_WORDS | PARTICLES | TITLES
Keeps = Callable[[PhiSpan], bool]


def values_to_hide(spans: list[PhiSpan], text: str, *, keeps: Keeps) -> list[tuple[str, str]]:
    """List the strings that must not stand in the safe note: what the spans cover, and the single
    words of names.

    A word of a name is left out if the note has it elsewhere as an ordinary word, in lower case
    while the name is not ("Blanco", "blanco").
    keeps (Callable): Says which spans the policy leaves as they are.
    RETURNS (list[tuple[str, str]]): Label and string, once each, in order of the text.
    """
    hidden = [span for span in spans if not keeps(span)]
    outside = _outside(text, hidden)
    ordinary = {fold_alnum(word) for word in _WORD.findall(outside) if word.islower()}
    values: dict[tuple[str, str], None] = {}
    for span in hidden:
        value = text[span.start : span.end]
        if {fold_alnum(word) for word in value.split()} <= _LABEL_WORDS:
            continue
        values[span.label, value] = None
        if type_of(span.label) in NAMES:
            for word in _words_of(value, ordinary):
                values[span.label, word] = None
    return list(values)


def find_repeats(spans: list[PhiSpan], text: str, *, keeps: Keeps) -> list[PhiSpan]:
    """Add every other place where hidden PHI stands.

    spans (list[PhiSpan]): Sorted, not overlapping.
    keeps (Callable): Says which spans the policy leaves as they are.
    RETURNS (list[PhiSpan]): Sorted, not overlapping; the added ones have the detector "repeat" and
        the confidence of the surest span of their label. They may cut a kept span short.
    """
    confidence: dict[str, float] = {}
    for span in spans:
        confidence[span.label] = max(confidence.get(span.label, 0.0), span.confidence)
    taken = bytearray(len(text))
    for span in spans:
        if not keeps(span):
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
    added = []
    found = find_values(values_to_hide(spans, text, keeps=keeps), text)
    for start, end, label in sorted(found, key=lambda span: (span[0] - span[1], span)):
        for left, right in _free(taken, start, end):
            if any(char.isalnum() for char in text[left:right]):
                added.append(PhiSpan(left, right, label, confidence[label], REPEAT))
        taken[start:end] = b"\1" * (end - start)
    if not added:
        return spans
    kept = [piece for span in spans for piece in _cut(span, added, text)]
    return sorted(kept + added)


def _words_of(value: str, ordinary: set[str]) -> Iterator[str]:
    """YIELDS (str): Words of a name that say who it is."""
    for word in _WORD.findall(value):
        folded = fold_alnum(word)
        if len(folded) < MIN_CHARS or folded in NOT_NAMES:
            continue
        if word.islower() or folded not in ordinary:
            yield word


def _outside(text: str, spans: list[PhiSpan]) -> str:
    parts, done = [], 0
    for span in spans:
        parts.append(text[done : span.start])
        done = span.end
    return "\n".join([*parts, text[done:]])


def _free(taken: bytearray, start: int, end: int) -> list[tuple[int, int]]:
    """RETURNS (list[tuple[int, int]]): The stretches of start:end that no span has yet."""
    runs, begin = [], None
    for i in range(start, end + 1):
        free = i < end and not taken[i]
        if free and begin is None:
            begin = i
        elif not free and begin is not None:
            runs.append((begin, i))
            begin = None
    return runs


def _cut(span: PhiSpan, others: list[PhiSpan], text: str) -> list[PhiSpan]:
    """RETURNS (list[PhiSpan]): What the others leave of a span."""
    pieces = [(span.start, span.end)]
    for other in others:
        pieces = (
            [
                (a, b)
                for start, end in pieces
                for a, b in (
                    (start, min(end, max(start, other.start))),
                    (max(start, min(end, other.end)), end),
                )
                if a < b
            ]
            if other.start < span.end and span.start < other.end
            else pieces
        )
    return [span._replace(start=a, end=b) for a, b in pieces if text[a:b].strip()]
