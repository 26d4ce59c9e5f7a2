"""Compare strings that may be written differently: the named folds, and search in a folded text.

A fold maps all spellings that count as equal to one string. Which differences count depends on the
purpose:

- `fold_alnum`: case, accents and every separator are ignored. It searches for known values:
  "García-López", "GARCIA LOPEZ" and "Garc\\nía López" are equal.
- `fold_by_char`: case and accents are ignored, and offsets stay. It is for rules that match words.
- `fold_spaces`: case and the width of white space are ignored. It counts distinct names.

The fold of concept names is in `linking/names/normalize.py`, since it needs word lists.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

# Shorter values are not searched for. Digits alone must be more, since four are a year or a dose.
MIN_CHARS = 3
MIN_DIGITS = 5
# Values from this length on are found with separators anywhere in them, shorter ones only with as
# many words as they have.
MIN_CHARS_SPLIT = 7

TextSpan = tuple[int, int, str]


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    decomposed = unicodedata.normalize("NFKD", char.casefold())
    return "".join(c for c in decomposed if c.isalnum())


def fold_alnum(text: str) -> str:
    """Keep letters and digits only, without case and accents."""
    return "".join(map(_fold_char, text))


class _PlainLetters(dict[int, str]):
    """Map a code point to its letter in lower case without accents. Results are cached."""

    def __missing__(self, code: int) -> str:
        self[code] = unicodedata.normalize("NFD", chr(code).lower())[0]
        return self[code]


_PLAIN_LETTERS = _PlainLetters()


def fold_by_char(text: str) -> str:
    """Convert a text to lower case without accents, keeping the number of code points."""
    return text.lower() if text.isascii() else text.translate(_PLAIN_LETTERS)


def fold_spaces(text: str) -> str:
    """Remove case, and replace every run of white space by one blank."""
    return " ".join(text.casefold().split())


def compose(text: str) -> str:
    """Compose letters and their accents into single code points, where these exist (NFC)."""
    return unicodedata.normalize("NFC", text)


class FoldedText:
    """A folded text to search in. A search takes time linear in the length of the text.

    text (str): The text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parts = [_fold_char(char) for char in text]
        self.folded = "".join(parts)
        self._places = [i for i, part in enumerate(parts) for _ in part]

    def find(self, value: str) -> Iterator[tuple[int, int]]:
        """Find a value as whole words, ignoring case, accents and separators.

        value (str): The value. It is never found if it has fewer than MIN_CHARS letters and digits,
            or nothing but fewer than MIN_DIGITS digits.
        YIELDS (tuple[int, int]): Start and end, in code points.
        """
        key = fold_alnum(value)
        if len(key) < (MIN_DIGITS if key.isdigit() else MIN_CHARS):
            return
        n_words = len(value.split())
        at = self.folded.find(key)
        while at >= 0:
            start, end = self._places[at], self._places[at + len(key) - 1] + 1
            # Include the combining marks of the last letter.
            while end < len(self.text) and unicodedata.combining(self.text[end]):
                end += 1
            whole = not (
                (start and self.text[start - 1].isalnum())
                or (end < len(self.text) and self.text[end].isalnum())
            )
            if whole and (
                len(key) >= MIN_CHARS_SPLIT or len(self.text[start:end].split()) == n_words
            ):
                yield start, end
                at = self.folded.find(key, at + len(key))
            else:
                at = self.folded.find(key, at + 1)


def find_values(values: Iterable[tuple[str, str]], text: str) -> list[TextSpan]:
    """Find known values in a text.

    values (Iterable[tuple[str, str]]): Pairs of kind and value.
    text (str): The text.
    RETURNS (list[TextSpan]): (start, end, kind) in code points, sorted.
    """
    searched = FoldedText(text)
    return sorted(
        {(start, end, kind) for kind, value in values for start, end in searched.find(value)}
    )


def find_leaks(values: Iterable[tuple[str, str]], text: str) -> list[str]:
    """List the kinds of the values that a text contains.

    values (Iterable[tuple[str, str]]): Pairs of kind and value.
    text (str): The text.
    RETURNS (list[str]): The kinds, sorted, without repeats.
    """
    return sorted({kind for _, _, kind in find_values(values, text)})
