"""Read text that is all in capitals in lower case, character by character, so that offsets stay.

An encoder that has read prose cuts "NEUMONÍA" into pieces that it has hardly seen. Lines and
sentences in capitals become lower case for it; short forms ("HTA", "EPOC") stay, and so does
whatever stands in ordinary text.
"""

import re
from functools import cache

from spacy.util import get_lang_class

from .short_forms import load_short_forms

# A word from this length on shows whether a text is in capitals, unless it is a short form.
MIN_WORD = 4
MIN_SHARE = 0.8  # of the letters of such words
MAX_SHORT = 6  # letters of a short form that stays
# Lines, and sentences within them.
_SEGMENT = re.compile(r"[^\n\r.;]+(?:[.;](?!\s)[^\n\r.;]*)*[.;]?")
_WORD = re.compile(r"[^\W_]+")
_SHOUT = re.compile(r"[^\W\d_a-z]{4}")


@cache
def _load_words(lang: str) -> tuple[frozenset[str], frozenset[str]]:
    """Load the short forms that stay, and the words that are none in a text in capitals."""
    stop = frozenset(get_lang_class(lang).Defaults.stop_words)
    short = {word for word in load_short_forms(lang) if len(word) <= MAX_SHORT}
    return frozenset(short - stop), stop


def lower_capitals(text: str, lang: str) -> str:
    """Write what is all in capitals in lower case, but for short forms.

    text (str): Any text.
    lang (str): Its language.
    RETURNS (str): A text of the same length.
    """
    if not _SHOUT.search(text):
        return text
    short, stop = _load_words(lang)
    parts, end = [], 0
    for found in _SEGMENT.finditer(text):
        words = [(word.start(), word[0]) for word in _WORD.finditer(text, *found.span())]
        if not _is_shouted([word for _, word in words], short):
            continue
        for start, word in words:
            if not _stays(word, short, stop):
                parts += [text[end:start], _lower(word)]
                end = start + len(word)
    return "".join([*parts, text[end:]])


def _is_shouted(words: list[str], short: frozenset[str]) -> bool:
    """Check whether the words that show it are in capitals."""
    letters = capitals = 0
    for word in words:
        if len(word) >= MIN_WORD and word.isalpha() and word.lower() not in short:
            letters += len(word)
            capitals += sum(map(str.isupper, word))
    return letters > 0 and capitals >= MIN_SHARE * letters


def _stays(word: str, short: frozenset[str], stop: frozenset[str]) -> bool:
    """Check whether a word of a text in capitals is a short form."""
    if any(map(str.isdigit, word)):
        return True
    return word.lower() in short and word.lower() not in stop


def _lower(word: str) -> str:
    """Write a word in lower case; a letter whose small form has two characters stays."""
    lower = word.lower()
    if len(lower) == len(word):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in word)
