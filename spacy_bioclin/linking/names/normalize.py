"""Bring the many ways in which a name is written to one form, in Spanish and English alike.

Nothing here depends on the language of a name, because notes mix both, and terminologies often do
not state it.
"""

import re
import unicodedata
from functools import lru_cache
from pathlib import Path

import srsly

_DATA = srsly.read_yaml(Path(__file__).with_suffix(".yml"))
GREEK: dict[str, str] = _DATA["greek"]
ROMAN = {numeral: str(number) for numeral, number in _DATA["roman"].items()}
STOP_WORDS = frozenset(_DATA["stop_words"])
SPELLING: dict[str, str] = _DATA["spelling"]
ENDINGS: dict[str, str] = _DATA["endings"]
WORD = re.compile(r"[a-z0-9]+")
_LETTERS = re.compile(r"[^\W_]+")
POSSESSIVE = re.compile(r"['’`´]s\b")
# Shorter words are abbreviations, and are not stemmed.
MIN_STEMMED = 5


def fold_name(text: str) -> str:
    """Remove case, accents and possessives, and write Greek letters by name."""
    folded = text.casefold()
    if not folded.isascii():
        decomposed = unicodedata.normalize("NFKD", folded)
        folded = "".join(GREEK.get(c, c) for c in decomposed if not unicodedata.combining(c))
    return POSSESSIVE.sub("", folded) if "s" in folded else folded


def normalize(text: str) -> str:
    """Normalise a name strictly: equal names differ in case, accents or punctuation only.

    text (str): A name or a mention.
    RETURNS (str): Its words in lower case and ASCII, separated by blanks.
    """
    return " ".join(WORD.findall(fold_name(text)))


def _plain_stem(word: str) -> str:
    """Fold number, gender and spelling. See `stem`."""
    if word in ROMAN:
        return ROMAN[word]
    if len(word) < MIN_STEMMED or not word.isalpha():
        return word[:-1] if len(word) == 4 and word[-1] == "s" and word[-2] not in "sui" else word
    for old, new in SPELLING.items():
        word = word.replace(old, new)
    if word.endswith("ies"):
        word = word[:-2]
    elif word.endswith("s") and word[-2] not in "sui":
        word = word[:-1]
    if word.endswith("our"):
        word = word[:-2] + "r"
    elif word[-1] in "aeio" and len(word) >= MIN_STEMMED:
        word = word[:-1]
    for old, new in ENDINGS.items():
        if word.endswith(old) and len(word) > len(old) + 2:
            return word[: -len(old)] + new
    return word


_SYNONYMS = {
    _plain_stem(word): _plain_stem(words[0]) for words in _DATA["synonyms"] for word in words
}
MODIFIERS = frozenset(_plain_stem(word) for word in _DATA["modifiers"])


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Fold differences that do not change the meaning of a word within a name: number, gender and
    spelling ("renales", "renal"; "anaemia", "anemia"), adjective and noun ("thrombotic",
    "thrombosis"), and a few synonyms ("renal", "kidney").

    A stem is not a word, and two words may have the same stem, so the strict form is tried first.
    """
    plain = _plain_stem(word)
    return _SYNONYMS.get(plain, plain)


def name_key(text: str) -> str:
    """Normalise a name loosely: its stems in alphabetical order, without stop words.

    text (str): A name or a mention, or its normalised form.
    RETURNS (str): Stems separated by blanks; `normalize(text)` if it has only stop words.
    """
    words = WORD.findall(fold_name(text))
    return " ".join(sorted({stem(word) for word in words if word not in STOP_WORDS})) or " ".join(
        words
    )


def own_letters(text: str) -> str:
    """List the one-letter words that keys leave out although they are part of the name, as in
    "hepatitis A" and "vitamina E": the last word, and capitals in a text that is not all capitals.

    text (str): A name or a mention, as it is written.
    RETURNS (str): The letters in lower case and alphabetical order.
    """
    words = _LETTERS.findall(text)
    capitals = not text.isupper()
    letters = (
        word.lower()
        for i, word in enumerate(words)
        if len(word) == 1 and (i == len(words) - 1 or (i and capitals and word.isupper()))
    )
    return "".join(sorted({letter for letter in letters if letter in STOP_WORDS}))


def core_key(key: str) -> str:
    """Remove modifiers ("severe", "bilateral") from a key, unless nothing else is left."""
    return " ".join(stem for stem in key.split(" ") if stem not in MODIFIERS) or key
