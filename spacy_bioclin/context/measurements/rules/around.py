"""What stands before a number: comparators, and the name of what is measured."""

import re
from typing import NamedTuple

from .lexicon import Lexicon, squeeze

SIGNS = {
    "<=": "<=",
    "=<": "<=",
    "≤": "<=",
    "⩽": "<=",
    ">=": ">=",
    "=>": ">=",
    "≥": ">=",
    "⩾": ">=",
    "<": "<",
    ">": ">",
    "~": "~",
    "≈": "~",
    "∼": "~",
    "±": "~",
}
# An arrow ("->", "-->") is not a sign.
_SIGN = re.compile(
    r"(?<!-)(?:<\s?=|>\s?=|=\s?<|=\s?>|[<>≤≥⩽⩾~≈∼])(?:\s(?:a|de|que|than|o))?\s{0,2}$"
)
_HAS_SIGN = re.compile(r"[<>≤≥⩽⩾~≈∼]")
_LAST_WORD = re.compile(r"([^\W\d_]+)\.?\s{0,2}$")
_WINDOW = 90
_BREAK = re.compile(r"[;\n\r]|[.!?»](?=\s)(?<!aprox\.)")
_STRIPPED = " \t\xa0+:=(,[]\"'«»*)-–—~<>≤≥"
_MAX_FILLERS = 5


class Before(NamedTuple):
    """A comparator before a number: where it begins, and its sign."""

    start: int
    sign: str | None


def find_comparator(text: str, start: int, floor: int, lexicon: Lexicon) -> Before:
    """Find the comparator that ends where a number starts.

    floor (int): Nothing before it is read.
    """
    window = text[max(floor, start - 36) : start]
    offset = start - len(window)
    found = _HAS_SIGN.search(window) and _SIGN.search(window, max(0, len(window) - 8))
    if found:
        sign = re.sub(r"[\sa-z]", "", found[0])
        return Before(offset + found.start(), SIGNS[sign])
    last = _LAST_WORD.search(window)
    if last is None or last[1].lower() not in lexicon.comparator_ends:
        return Before(start, None)
    if found := lexicon.comparator_pattern.search(window):
        if found["rest"] and found[0].lower().startswith("over "):
            return Before(start, None)  # "over a 12-hour period"
        form = squeeze(window[found.start() : found.start("rest") if found["rest"] else None])
        return Before(offset + found.start(), lexicon.comparators[form])
    return Before(start, None)


def find_comparator_after(text: str, end: int, lexicon: Lexicon) -> tuple[int, str] | None:
    """Find a comparator that follows a number and its unit: "65 years or older".

    RETURNS (tuple[int, str] | None): Where it ends, and its sign.
    """
    found = lexicon.after_pattern.match(text, end)
    if found is None:
        return None
    return found.end(), lexicon.comparators_after[squeeze(found[1])]


def words_before(text: str, start: int, size: int = _WINDOW) -> list[str]:
    """List the words before a place in its sentence, the nearest first, in lower case."""
    window = text[max(0, start - size) : start]
    parts = _BREAK.split(window)
    words = re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", parts[-1].lower())
    words.reverse()
    return words


def find_name(text: str, start: int, lexicon: Lexicon) -> str | None:
    """Find the name of a test, sign or score whose number starts here.

    RETURNS (str | None): The name in lower case.
    """
    window = text[max(0, start - _WINDOW) : start]
    nearest = window.rsplit(None, 1)[-1:]
    word = nearest[0].strip(_STRIPPED).lower() if nearest else ""
    if "/" not in word and not lexicon.may_name(word):
        return None
    chunks = _BREAK.split(window)[-1].split()
    if window and window[-1] in "-–/" and not window[-2:-1].isspace():
        return None
    for skipped, last in enumerate(range(len(chunks), 0, -1)):
        if chunks[last - 1].endswith(","):
            return None
        word = chunks[last - 1].strip(_STRIPPED).lower()
        if "/" in word or word in lexicon.last_words or word.rstrip(".") in lexicon.last_words:
            for first in range(max(0, last - lexicon.max_words), last):
                name = " ".join(chunks[first:last]).strip(_STRIPPED)
                if found := _known(name, lexicon):
                    return found
        if word and word not in lexicon.fillers:
            return None
        if skipped >= _MAX_FILLERS:
            return None
    return None


def _known(name: str, lexicon: Lexicon) -> str | None:
    lower = name.lower().rstrip(".")
    if lower not in lexicon.names and name.lower() not in lexicon.names:
        parts = lower.split("/")
        return lower if len(parts) > 1 and all(part in lexicon.names for part in parts) else None
    # Short names are words too: "be", "fe", "vs".
    return lower if len(lower) > 2 or not name.islower() else None


def is_pressure(text: str, start: int, lexicon: Lexicon) -> bool:
    """Check whether the words before a number say that it is a blood pressure."""
    window = text[max(0, start - _WINDOW) : start].lower()
    if found := re.search(r"(?<![^\W_])(?:ta|pa|bp|tas)$", window):
        return found is not None
    chunks = [chunk.strip(_STRIPPED) for chunk in _BREAK.split(window)[-1].split()]
    for skipped, last in enumerate(range(len(chunks), 0, -1)):
        for first in range(max(0, last - 2), last):
            if " ".join(chunks[first:last]) in lexicon.pressures:
                return True
        if chunks[last - 1] and (chunks[last - 1] not in lexicon.fillers or skipped > _MAX_FILLERS):
            return False
    return False
