"""Compare strings that may be written differently: the named folds, and search in a folded text.

A fold maps all spellings that count as equal to one string. Which differences count depends on the
purpose:

- `fold_plain`: what a reader cannot see does not count: invisible characters, accents, and which
  blank, dash, quotation mark, digit or width of a letter it is. Case counts. Every rule that finds
  PHI matches a text in this form, as `FoldedText`.
- `fold_alnum`: as `fold_plain`, and case and every separator are ignored. It searches for known
  values: "García-López", "GARCIA LOPEZ" and "Garc\\nía López" are equal.
- `fold_by_char`: case and accents are ignored, and offsets stay. It is for rules that match words.
- `fold_spaces`: case and the width of white space are ignored. It counts distinct names.

The fold of concept names is in `linking/names/normalize.py`, since it needs word lists.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

# Unicode categories of what a terminal obeys instead of showing it.
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Shorter values are not searched for. Digits alone must be more, since four are a year or a dose.
MIN_CHARS = 3
MIN_DIGITS = 5
# Values from this length on are found with separators anywhere in them, shorter ones only with as
# many words as they have.
MIN_CHARS_SPLIT = 7
# Values up to this length are found by an index.
MAX_INDEXED = 256

# Default_Ignorable_Code_Point of Unicode 16.0 (DerivedCoreProperties.txt), which unicodedata does
# not have: nothing is shown for them.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_SOFT_HYPHEN = "\u00ad"
# Characters that look like another one without a decomposition that says so: dashes beside those of
# category Pd (UTS #39, confusables.txt), blanks, marks of ordinals, quotation marks, slashes,
# colons, bullets, and Latin letters that are no letter with an accent.
_LOOK_ALIKES = {
    **dict.fromkeys("\u02d7\u06d4\u2043\u2212\u2796\u2cba", "-"),
    "\u2800": " ",
    **dict.fromkeys("\u2028\u2029", "\n"),
    **dict.fromkeys("°\u02da\u1d52", "º"),
    "\u1d43": "ª",
    **dict.fromkeys("’‘´`\u02b9\u02bc", "'"),
    **dict.fromkeys("“”«»", '"'),
    **dict.fromkeys("\u2044\u2215", "/"),
    **dict.fromkeys("\u2236\ua789", ":"),
    **dict.fromkeys("•·", "*"),
    **{"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ı": "i"},
    **{"ð": "d", "Ð": "D", "þ": "th", "Þ": "Th"},
}
# Compatibility decompositions that do not change what is meant, unlike superscripts or fractions.
_SAME_MEANING = ("<wide", "<narrow", "<small", "<font", "<noBreak", "<compat")
_WITH_ACCENT = re.compile(r"LATIN (CAPITAL|SMALL) LETTER ([A-Z]) WITH ")
# Everything but ASCII that stays and the end of a line: nearly all of a note needs no fold.
_ODD = re.compile(r"[^\n -_a-~]")
_NOT_ASCII = re.compile(r"[^\0-\x7f]")
_ALNUM = re.compile(r"[^\W_]+")
# From so many different ones on, a text is folded character by character.
_MANY_ODD = 100

TextSpan = tuple[int, int, str]


class _Folds(dict[str, str]):
    """Map a character to what it looks like, or to "" if it is invisible. Results are cached."""

    def __missing__(self, char: str) -> str:
        self[char] = _fold_visible(char)
        return self[char]


def _fold_visible(char: str) -> str:
    category = unicodedata.category(char)
    if char in _LOOK_ALIKES or " " <= char <= "~" or char == "\n":
        return _LOOK_ALIKES.get(char, char)
    if category == "Zs" or (category == "Cc" and char.isspace()):
        return " "
    if category in ("Cc", "Cf", "Mn", "Me") or _IGNORABLE.match(char):
        return ""
    if category == "Pd":
        return "-"
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category[0] == "L" and (letter := _WITH_ACCENT.match(unicodedata.name(char, ""))):
        return letter[2] if letter[1] == "CAPITAL" else letter[2].lower()
    kind = unicodedata.decomposition(char).partition(">")[0]
    if kind in _SAME_MEANING or (category[0] == "L" and not kind.startswith("<")):
        found = [c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c)]
        is_word = category[0] == "L" or category in ("Nl", "So")
        if found != [" "] and (len(found) == 1 or (is_word and "".join(found).isascii())):
            return "".join(_FOLDS[c] if c != char else c for c in found) or char
    return char


_FOLDS = _Folds()


def fold_plain(text: str) -> str:
    """Remove invisible characters and accents, and write blanks, dashes and digits in one way."""
    return FoldedText(text).plain


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    decomposed = unicodedata.normalize("NFKD", _FOLDS[char].casefold())
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


def drop_invisible(text: str) -> str:
    """Compose letters and their accents (NFC), and remove what is not shown."""
    return "".join(char for char in compose(text) if _FOLDS[char])


class FoldedText:
    """A text in the form that rules and searches see, with offsets back to the untouched text.

    text (str): The untouched text.
    plain (str): See `fold_plain`. `lower` is the same in lower case, of the same length.
    """

    def __init__(self, text: str) -> None:
        self.text = self.plain = text
        # Where each character of `plain` begins and ends in the text; None if offsets are equal.
        self.places: tuple[array[int], array[int]] | None = None
        odd = set(_ODD.findall(text))
        if len(odd) < _MANY_ODD and all(len(_FOLDS[char]) == 1 for char in odd):
            for char in odd:
                if _FOLDS[char] != char:
                    self.plain = self.plain.replace(char, _FOLDS[char])
        else:
            self._fold_by_char()

    def _fold_by_char(self) -> None:
        plain: list[str] = []
        starts, ends = array("q"), array("q")
        for i, char in enumerate(self.text):
            folded = _FOLDS[char]
            if char == _SOFT_HYPHEN and self.text[i + 1 : i + 3].lstrip("\r")[:1] == "\n":
                folded = "-"  # it is shown at the end of a line
            if folded:
                plain.append(folded)
                starts.extend([i] * len(folded))
                ends.extend([i + 1] * len(folded))
            elif ends:
                ends[-1] = i + 1  # it belongs to the character before it
        self.plain, self.places = "".join(plain), (starts, ends)

    @cached_property
    def lower(self) -> str:
        """`plain` in lower case."""
        return self.plain.lower()

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Map a part of `plain` to the untouched text, with all invisible characters in it.

        start (int): Start in `plain`.
        end (int): End in `plain`, exclusive; greater than start.
        RETURNS (tuple[int, int]): Start and end in the text, with the accents and invisible
            characters that follow the last character.
        """
        if self.places is None:
            return start, end
        return self.places[0][start], self.places[1][end - 1]

    @cached_property
    def _letters(self) -> "_Letters":
        return _fold_letters(self.plain)

    def find(self, value: str) -> Iterator[tuple[int, int]]:
        """Find a value as whole words, ignoring case, accents and separators.

        value (str): The value. It is never found if it has fewer than MIN_CHARS letters and digits,
            or nothing but fewer than MIN_DIGITS digits.
        YIELDS (tuple[int, int]): Start and end in the untouched text.
        """
        return ((start, end) for start, end, _ in ValueSearch([("", value)]).find(self))

    def find_keys(self, keys: "KeyIndex") -> Iterator[tuple[int, int, str]]:
        """Find every place where whole words fold to a key, in one pass through the text.

        keys (KeyIndex): The keys, see `index_keys`.
        YIELDS (tuple[int, int, str]): Start and end in `plain`, and the key; sorted by start for
            each key. They may overlap.
        """
        text, starts, ends = self._letters
        short, long = keys
        for at, start in starts.items():
            by_length = short.get(text[at : at + MIN_CHARS])
            if by_length is not None:
                for length, known in by_length.items():
                    end = ends.get(at + length)
                    if end is not None and (key := text[at : at + length]) in known:
                        yield start, end, key
        for key in long:
            at = text.find(key)
            while at >= 0:
                if at in starts and at + len(key) in ends:
                    yield starts[at], ends[at + len(key)], key
                at = text.find(key, at + 1)


class _Letters(NamedTuple):
    """The letters and digits of a text (see `fold_alnum`), and where its words begin and end.

    starts (dict[int, int]): Offset in `text` at which a word begins -> its start in the plain text.
    ends (dict[int, int]): Offset in `text` at which a word ends -> its end in the plain text.
    """

    text: str
    starts: dict[int, int]
    ends: dict[int, int]


def _fold_letters(plain: str) -> _Letters:
    """Fold the words of a plain text, so that they can be found without what is between them."""
    folds = {char: _fold_char(char) for char in set(_NOT_ASCII.findall(plain))}
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    at = 0
    if len(folds) < _MANY_ODD and all(_is_one_letter(*pair) for pair in folds.items()):
        for char, fold in folds.items():
            plain = plain.replace(char, fold or " ")
        words = []
        for word in _ALNUM.finditer(plain):
            words.append(word[0])
            start, end = word.span()
            starts[at] = start
            at += end - start
            ends[at] = end
        return _Letters("".join(words).lower(), starts, ends)
    parts = [_fold_char(char) for char in plain]
    for i, part in enumerate(parts):
        if part and not plain[i - 1 : i].isalnum():
            starts.update((at + j, i) for j in range(len(part)))
        if part and not plain[i + 1 : i + 2].isalnum():
            ends.update((at + j, i + 1) for j in range(1, len(part) + 1))
        at += len(part)
    return _Letters("".join(parts), starts, ends)


def _is_one_letter(char: str, fold: str) -> bool:
    """Check for a character that its fold can replace: a letter by a letter, or a sign by none."""
    return len(fold) == char.isalnum() and fold_alnum(fold) == fold == fold.lower()


# Keys by their first MIN_CHARS letters and their length, and the long ones, which are searched for
# one by one: no note has many of them.
KeyIndex = tuple[dict[str, dict[int, set[str]]], list[str]]


def index_keys(keys: Iterable[str]) -> KeyIndex:
    """Index the keys that `FoldedText.find_keys` searches for.

    keys (Iterable[str]): Folded values (see `fold_alnum`) of MIN_CHARS or more letters and digits.
    RETURNS (KeyIndex): The index.
    """
    short: dict[str, dict[int, set[str]]] = {}
    long: dict[str, None] = {}
    for key in keys:
        if len(key) > MAX_INDEXED:
            long[key] = None
        else:
            short.setdefault(key[:MIN_CHARS], {}).setdefault(len(key), set()).add(key)
    return short, list(long)


class ValueSearch:
    """Search texts for many values at once, in time linear in the text.

    values (Iterable[tuple[str, str]]): Pairs of kind and value. A value is never found if it has
        fewer than MIN_CHARS letters and digits, or nothing but fewer than MIN_DIGITS digits.
    """

    def __init__(self, values: Iterable[tuple[str, str]]) -> None:
        # Folded value -> number of words that it must have (0 for any) -> its kinds.
        self._kinds: dict[str, dict[int, dict[str, None]]] = {}
        for kind, value in values:
            key = fold_alnum(value)
            if len(key) >= (MIN_DIGITS if key.isdigit() else MIN_CHARS):
                n_words = 0 if len(key) >= MIN_CHARS_SPLIT else len(fold_plain(value).split())
                self._kinds.setdefault(key, {}).setdefault(n_words, {})[kind] = None
        self._index = index_keys(self._kinds)

    def find(self, text: FoldedText) -> Iterator[TextSpan]:
        """Find the values as whole words, ignoring case, accents and separators.

        YIELDS (TextSpan): Start and end in the untouched text, and kind. Places of one value do
            not overlap, those of two values may.
        """
        ends: dict[tuple[str, int], int] = {}
        for start, end, key in text.find_keys(self._index):
            for n_words, kinds in self._kinds[key].items():
                if n_words and len(text.plain[start:end].split()) != n_words:
                    continue
                if start >= ends.get((key, n_words), 0):
                    ends[key, n_words] = end
                    place = text.place(start, end)
                    yield from ((*place, kind) for kind in kinds)


def find_values(values: Iterable[tuple[str, str]], text: str) -> list[TextSpan]:
    """Find known values in a text.

    values (Iterable[tuple[str, str]]): Pairs of kind and value.
    text (str): The text.
    RETURNS (list[TextSpan]): (start, end, kind) in code points, sorted.
    """
    return sorted(set(ValueSearch(values).find(FoldedText(text))))


def find_leaks(values: Iterable[tuple[str, str]], text: str) -> list[str]:
    """List the kinds of the values that a text contains.

    values (Iterable[tuple[str, str]]): Pairs of kind and value.
    text (str): The text.
    RETURNS (list[str]): The kinds, sorted, without repeats.
    """
    return sorted({kind for _, _, kind in find_values(values, text)})


def show_controls(text: str) -> str:
    """Write control and format characters as escapes, for a terminal, a log or a table.

    A name from a file could otherwise colour, move or erase what is on the screen.

    text (str): Any text; line ends and tabs stay.
    """
    return "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in HIDDEN
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
