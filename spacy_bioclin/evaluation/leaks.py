"""Does a known string still stand in a text, however it is written?

Case, accents, blanks, line breaks, hyphens and any other separators do not count: "García-López",
"GARCIA LOPEZ" and "Garc\\nía López" are one string. Time is linear in the text for each value.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

# A value is looked for if it has this many letters and digits, or this many digits alone: four
# digits are a year or a dose.
MIN_CHARS = 3
MIN_DIGITS = 5
# From here on a value may be broken anywhere; a shorter one only where it is broken itself.
MIN_CHARS_SPLIT = 7

TextSpan = tuple[int, int, str]


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    decomposed = unicodedata.normalize("NFKD", char.casefold())
    return "".join(c for c in decomposed if c.isalnum())


def fold(text: str) -> str:
    """RETURNS (str): Letters and digits alone, without case and accents."""
    return "".join(map(_fold_char, text))


class FoldedText:
    """A text ready to be searched for many values."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts = [_fold_char(char) for char in text]
        self.folded = "".join(parts)
        self._places = [i for i, part in enumerate(parts) for _ in part]

    def find(self, value: str) -> Iterator[tuple[int, int]]:
        """YIELDS (tuple[int, int]): Where a value stands, as whole words, in code points. A value
        that says too little to be looked for stands nowhere."""
        key = fold(value)
        if len(key) < (MIN_DIGITS if key.isdigit() else MIN_CHARS):
            return
        n_words = len(value.split())
        at = self.folded.find(key)
        while at >= 0:
            start, end = self._places[at], self._places[at + len(key) - 1] + 1
            # The marks of a decomposed last letter belong to it.
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
    """Find where known strings stand in a text.

    values (Iterable[tuple[str, str]]): Pairs of a name for its kind and the string.
    RETURNS (list[TextSpan]): (start, end, kind) in code points, sorted.
    """
    searched = FoldedText(text)
    return sorted(
        {(start, end, kind) for kind, value in values for start, end in searched.find(value)}
    )


def find_leaks(values: Iterable[tuple[str, str]], text: str) -> list[str]:
    """RETURNS (list[str]): Kinds of the values that stand in the text, sorted, once each."""
    return sorted({kind for _, _, kind in find_values(values, text)})
