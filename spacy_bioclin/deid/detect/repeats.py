"""Find the other places of PHI: a string that is PHI once is PHI everywhere in the note."""

import re
from collections.abc import Callable, Iterator

from ...text import MIN_CHARS, find_values, fold_alnum, fold_plain
from ..labels import SCHEMES, scheme_labels, type_of
from ..merge import subtract
from ..rewrite import rewrite
from ..spans import PhiSpan
from ..surrogates.name_lists import PARTICLES, TITLES

NAMES = ("patient_name", "staff_name")
REPEAT = "repeat"
_WORD = re.compile(r"[^\W\d_]+")
_FREE = re.compile(rb"\0+")
# Words of the labels ("hospital", "calle"), which the masks contain.
_LABEL_WORDS = frozenset(
    fold_alnum(word)
    for scheme in SCHEMES
    for label in scheme_labels(scheme)
    for word in re.split(r"[_-]", label)
)
# Words of names that do not identify a person.
NOT_NAMES = _LABEL_WORDS | PARTICLES | TITLES
Keeps = Callable[[PhiSpan], bool]


def values_to_hide(spans: list[PhiSpan], text: str, *, keeps: Keeps) -> list[tuple[str, str]]:
    """List the strings that must not be in the safe note: the spans' and the words of names.

    A word of a name is left out if the note has it elsewhere as an ordinary word, in lower case
    while the name is not ("Blanco", "blanco").
    keeps (Callable): Whether the policy keeps a span.
    RETURNS (list[tuple[str, str]]): Label and string, without duplicates, in order of the text.
    """
    hidden = [span for span in spans if not keeps(span)]
    outside = rewrite(text, [(span.start, span.end, "\n") for span in hidden])[0]
    words = _WORD.findall(fold_plain(outside))
    ordinary = {fold_alnum(word) for word in words if word.islower()}
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
    """Add every other place of hidden PHI.

    spans (list[PhiSpan]): Sorted, not overlapping.
    keeps (Callable): Whether the policy keeps a span.
    RETURNS (list[PhiSpan]): Sorted, not overlapping; the added ones have the detector "repeat" and
        the highest confidence of their label. They may shorten a kept span.
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
        for free in _FREE.finditer(taken, start, end):
            if any(map(str.isalnum, text[free.start() : free.end()])):
                added.append(PhiSpan(*free.span(), label, confidence[label], REPEAT))
        taken[start:end] = b"\1" * (end - start)
    if not added:
        return spans
    kept = [piece for span in spans for piece in subtract(span, added)]
    return sorted(added + [span for span in kept if text[span.start : span.end].strip()])


def _words_of(value: str, ordinary: set[str]) -> Iterator[str]:
    """List the words of a name that identify a person."""
    for word in _WORD.findall(fold_plain(value)):
        folded = fold_alnum(word)
        if len(folded) < MIN_CHARS or folded in NOT_NAMES:
            continue
        if word.islower() or folded not in ordinary:
            yield word
