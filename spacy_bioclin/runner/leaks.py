"""Search all that would be written of a record for what was hidden in it, by value.

A date is compared as a day, in whatever spelling or type; a number by its digits; a name by its
words in any order. Everything else is compared as text without case, accents and separators.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..deid.detect.repeats import NOT_NAMES
from ..deid.labels import phi_type_of
from ..text import (
    MIN_CHARS,
    MIN_CHARS_SPLIT,
    MIN_DIGITS,
    FoldedText,
    ValueSearch,
    fold_alnum,
)
from .carried import Carried
from .stamps import as_text, find_days

# PHI types, and kinds of known data, whose values are names of people.
NAMES = frozenset({"patient_name", "staff_name", "relative", "name"})
PREFIXES = ("34", "44", "1", "52", "54", "56", "57")  # of the countries whose phones are found
MIN_NATIONAL = 9  # digits of a phone without its prefix
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\d(?:[ ./\-\u00a0]?\d)*")
_WORD = re.compile(r"[^\W\d_]+")


class Hidden:
    """What was hidden in a record, ready to be searched for.

    values (Sequence[tuple[str, str]]): Kinds (labels, or keys of `KNOWN`) and strings.
    lang (str): Language of the dates.
    """

    def __init__(self, values: Sequence[tuple[str, str]], lang: str) -> None:
        self.values = values
        self.lang = lang
        self.days = {day: kind for kind, value in values for day in find_days(value, lang)}
        self.numbers: dict[str, str] = {}
        self._search = ValueSearch(values)
        names: dict[tuple[str, frozenset[str]], None] = {}
        for kind, value in values:
            alone = fold_alnum(value).isdigit()
            for number in find_numbers(value):
                if len(number) >= (MIN_DIGITS if alone else MIN_CHARS_SPLIT):
                    self.numbers[number] = kind
            if kind == "name" or phi_type_of(kind) in NAMES:
                names[kind, find_name_words(value)] = None
        # Names by each of their words, and by their rarest one.
        self._names_with: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
        self._names_of: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
        for one in names:
            for word in one[1]:
                self._names_with[word].append(one)
        for one in names:
            if len(one[1]) > 1:
                self._names_of[self._find_rarest(one[1])].append(one)

    def find_in_note(self, text: str) -> list[str]:
        """List the kinds of what a safe note still has, perhaps in another spelling."""
        kinds = self._find_values(text)
        kinds.update(self.days[day] for day in find_days(text, self.lang) if day in self.days)
        kinds.update(self.numbers[n] for n in find_numbers(text) if n in self.numbers)
        return sorted(kinds)

    def find(self, value: Any) -> list[str]:
        """List the kinds of what a value has that was hidden.

        value (Any): Of a column: a string, number, date, list or object.
        """
        if not self.values:
            return []
        leaves = list(find_leaves(value))
        kinds = self._find_values("\n".join(map(as_text, leaves)))
        for leaf in leaves:
            kinds.update(self.days[day] for day in find_days(leaf, self.lang) if day in self.days)
            text = as_text(leaf)
            kinds.update(self.numbers[n] for n in find_numbers(text) if n in self.numbers)
            kinds.update(self._find_names(find_name_words(text)))
        return sorted(kinds)

    def _find_values(self, text: str) -> set[str]:
        return {kind for _, _, kind in self._search.find(FoldedText(text))}

    def _find_names(self, words: frozenset[str]) -> Iterator[str]:
        """List the kinds of the names that have all of these words, or only words of these."""
        if words:
            rarest = self._names_with.get(self._find_rarest(words), ())
            yield from (kind for kind, name in rarest if words <= name)
        for word in words:
            yield from (kind for kind, name in self._names_of.get(word, ()) if name <= words)

    def _find_rarest(self, words: frozenset[str]) -> str:
        """Find the word of which the fewest names have one."""
        return min(words, key=lambda word: (len(self._names_with.get(word, ())), word))


def find_leaves(value: Any) -> Iterator[Any]:
    """List the values in lists, and what bytes say as text."""
    if isinstance(value, list | tuple):
        for inner in value:
            yield from find_leaves(inner)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, Carried):
        yield value.text
    elif value is not None:
        yield value


def find_names(value: Any) -> Iterator[str]:
    """List the names of all fields inside a value."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from find_names(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from find_names(inner)


def find_numbers(text: str) -> set[str]:
    """List the numbers of a text by their digits, without zeros or a country in front."""
    runs: Iterable[str] = [*_NUMBER.findall(text), *_DIGITS.findall(text)]
    numbers = set()
    for run in runs:
        digits = "".join(filter(str.isdigit, run)).lstrip("0")
        numbers.add(digits)
        for prefix in PREFIXES:
            rest = digits.removeprefix(prefix).lstrip("0")
            if rest != digits and len(rest) >= MIN_NATIONAL:
                numbers.add(rest)
    return numbers - {""}


def find_name_words(text: str) -> frozenset[str]:
    """List the folded words of a text that may be those of a name, without "de", "Dra."."""
    words = {fold_alnum(word) for word in _WORD.findall(text)}
    return frozenset(word for word in words if len(word) >= MIN_CHARS) - NOT_NAMES
