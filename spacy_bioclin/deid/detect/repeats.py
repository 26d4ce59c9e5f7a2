"""Find the other places of PHI: a string that is PHI once is PHI everywhere in the note."""

import re
from collections.abc import Callable, Iterable, Iterator

from ...rewrite import rewrite
from ...text import MIN_CHARS, TextSpan, find_values, fold_alnum, fold_plain
from ..labels import SCHEMES, scheme_labels, type_of
from ..merge import Places
from ..spans import PhiSpan
from ..surrogates.name_lists import PARTICLES, TITLES
from .allow_list import load_allow_list
from .rule_data import LANGS

NAMES = ("patient_name", "staff_name")
REPEAT = "repeat"
_WORD = re.compile(r"[^\W\d_]+")
_FREE = re.compile(rb"\0+")
# Words of the labels ("hospital", "calle"), which identify nobody unless they are a name.
_LABEL_WORDS = frozenset(
    fold_alnum(word)
    for scheme in SCHEMES
    for label in scheme_labels(scheme)
    for word in re.split(r"[_-]", label)
)
# Words of names that do not identify a person.
NOT_NAMES = PARTICLES | TITLES
Keeps = Callable[[PhiSpan], bool]


def values_to_hide(spans: list[PhiSpan], text: str, *, keeps: Keeps) -> list[tuple[str, str]]:
    """List the strings that must not be in the safe note: the spans' and the words of names.

    A word of a name is left out if the note has it elsewhere as an ordinary word, in lower case
    while the name is not ("Blanco", "blanco"). So is a month ("May", "may"), and a name of one
    word, if the word is in the lists of ordinary words (allow_list.yml).
    keeps (Callable): Whether the policy keeps a span.
    RETURNS (list[tuple[str, str]]): Label and string, without duplicates, in order of the text.
    """
    return _values(spans, text, keeps)[0]


def _values(
    spans: list[PhiSpan], text: str, keeps: Keeps
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """List the strings to hide in any case, and those of one word to hide as they are written."""
    hidden = [span for span in spans if not keeps(span)]
    outside = rewrite(text, [(span.start, span.end, "\n") for span in hidden])[0]
    words = _WORD.findall(fold_plain(outside))
    ordinary = {fold_alnum(word) for word in words if word.islower()}
    values: dict[tuple[str, str], None] = {}
    as_written: dict[tuple[str, str], None] = {}
    for span in hidden:
        value = text[span.start : span.end]
        is_name = type_of(span.label) in NAMES
        if not is_name and {fold_alnum(word) for word in value.split()} <= _LABEL_WORDS:
            continue
        is_word = _is_also_a_word(value, type_of(span.label), ordinary)
        (as_written if is_word else values)[span.label, value] = None
        if is_name:
            for word in _words_of(value, ordinary):
                values[span.label, word] = None
    return list(values), list(as_written)


def find_repeats(
    spans: list[PhiSpan], text: str, *, keeps: Keeps, masks: Iterable[tuple[int, int]] = ()
) -> list[PhiSpan]:
    """Add every other place of hidden PHI.

    spans (list[PhiSpan]): Sorted, not overlapping.
    keeps (Callable): Whether the policy keeps a span.
    masks (Iterable[tuple[int, int]]): Places of the text that contain no PHI (masks.py).
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
    for start, end in masks:
        taken[start:end] = b"\1" * (end - start)
    values, as_written = _values(spans, text, keeps)
    places = [
        (*found.span(), label)
        for label, value in as_written
        for found in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text)
    ]
    added = _take_free([*find_values(values, text), *places], taken, text, confidence)
    # A mask that touches a word makes it whole: "García12/03" has no word "García", and
    # "García[DATE]" has.
    new = [span for span in spans if not keeps(span)] + added
    while any(_touches_word(span, text) for span in new):
        pairs = zip(text, taken, strict=True)
        blank = "".join("\n" if is_taken else char for char, is_taken in pairs)
        new = _take_free(find_values(values, blank), taken, text, confidence)
        added += new
    if not added:
        return spans
    all_added = Places(added)
    kept = [piece for span in spans for piece in all_added.cut(span)]
    return sorted(added + [span for span in kept if text[span.start : span.end].strip()])


def _take_free(
    found: list[TextSpan], taken: bytearray, text: str, confidence: dict[str, float]
) -> list[PhiSpan]:
    """Make spans of the found places that are not taken, the longest first, and take them."""
    added = []
    for start, end, label in sorted(found, key=lambda span: (span[0] - span[1], span)):
        for free in _FREE.finditer(taken, start, end):
            if any(map(str.isalnum, text[free.start() : free.end()])):
                added.append(PhiSpan(*free.span(), label, confidence[label], REPEAT))
        taken[start:end] = b"\1" * (end - start)
    return added


def _is_also_a_word(value: str, phi_type: str | None, ordinary: set[str]) -> bool:
    """Check for "May" or "Dr. Long" in a note that has the ordinary word, too."""
    if not value.isalpha() or value.islower() or fold_alnum(value) not in ordinary:
        return False
    return phi_type == "date" or (
        phi_type in NAMES and any(load_allow_list(lang).is_ordinary(value) for lang in LANGS)
    )


def _touches_word(span: PhiSpan, text: str) -> bool:
    before, after = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    return any(map(str.isalnum, before + after))


def _words_of(value: str, ordinary: set[str]) -> Iterator[str]:
    """List the words of a name that identify a person."""
    for word in _WORD.findall(fold_plain(value)):
        folded = fold_alnum(word)
        if len(folded) < MIN_CHARS or folded in NOT_NAMES:
            continue
        if word.islower() or folded not in ordinary:
            yield word
