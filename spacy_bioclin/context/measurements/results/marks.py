"""Read what is said of a value beside it: flags, reference ranges, dates."""

import re
from typing import NamedTuple

from ..rules.find import Finder
from ..rules.trie import words_pattern
from .names import load
from .result import Result
from .values import Value

_BLANKS = re.compile(r"[^\S\n]+")
_CELL = re.compile(r"[^\S\n]*(?:\t|[^\S\n]{2,}|\|)[^\S\n]*")
_OPEN = re.compile(r"[(\[]\s?")
_TO = re.compile(r"\s?[-–—]\s?|\s(?:a|to|hasta|y|and)\s")
_CLOSE = re.compile(r"[^()\[\]\n]{0,16}[)\]]")
_END_OF_FLAG = re.compile(r"\s*(?:[,.;:)\]|\n]|$|\()|[^\S\n]{2,}|\s(?:y|e|and|con|with)\s")


class Trail(NamedTuple):
    """What follows a value: where it ends, and what it says of it."""

    end: int
    unit: str | None
    flag: str | None
    low: float | None
    high: float | None
    date: str | None


class Marks:
    """Read flags, reference ranges and dates of a language.

    finder (Finder): Reads numbers, units and dates.
    """

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        words = load("words")
        self._flags = [
            (flag, re.compile(rf"(?i:{words_pattern(forms.lower().split())})"))
            for flag, forms in reversed(list(words["flags"].items()))
        ]
        references = words_pattern(words["references"].split())
        self._reference = re.compile(rf"(?i)(?<![^\W_])(?:{references})(?![^\W_])[\s.:=]*")
        self._limits = {
            side: re.compile(rf"(?i)(?:{words_pattern(forms.split())})=?\s?(?:\ba\b\s)?")
            for side, forms in words["limits"].items()
        }

    def match_date(self, text: str, at: int) -> tuple[str, int] | None:
        """Match a date with a day."""
        article = re.match(r"(?i)(?:el|on|del|from|of)\s", text[at : at + 6])
        at += article.end() if article else 0
        if text[at : at + 1].isdigit():
            day = self._finder.dates.match_digits(text, at)
        else:
            day = self._finder.dates.match_month(text, at) if text[at : at + 1].isalpha() else None
        return (day.value, day.end) if day and len(day.value) == 10 else None

    def match_flag(self, text: str, at: int, *, is_after: bool) -> tuple[str, int] | None:
        """Match a flag: an asterisk, an arrow, a letter or a word, in brackets or not."""
        opened = _OPEN.match(text, at)
        start = opened.end() if opened else at
        for flag, pattern in self._flags:
            found = pattern.match(text, start)
            if found is None:
                continue
            written, end = found[0], found.end()
            closed = re.match(r"\s?[)\]]", text[end : end + 2])
            if opened and closed is None:
                continue
            if opened and closed:
                end += closed.end()
                if not is_after and len(written) == 1 and written in "+-":
                    continue
                return flag, end
            if written[0].isalpha():
                if text[end : end + 1].isalnum() or flag == "N" or written in ("A", "a", "+"):
                    continue
                is_letters = len(written) <= 2
                if is_letters and (not written.isupper() or not is_after):
                    continue
                if is_letters and re.match(r"\s?[\d:=/]", text[end : end + 2]):
                    continue
                if is_after and not is_letters and not _END_OF_FLAG.match(text, end):
                    continue
            elif written == "+":
                continue
            return flag, end
        return None

    def read_trail(self, text: str, at: int, value: Value) -> Trail:
        """Read what follows a value."""
        unit, flag = value.unit, value.flag
        low = high = date = None
        end = at
        for _ in range(6):
            cell = _CELL.match(text, end)
            blank = cell or _BLANKS.match(text, end)
            place = blank.end() if blank else end
            if marked := self.match_flag(text, place, is_after=True):
                flag, end = marked
                continue
            is_open = low is None and high is None
            if is_open and (found := self._read_range(text, place, in_table=cell is not None)):
                low, high, end = found
                continue
            if (cell or flag) and (unit is None or unit == value.unit) and value.kind != "text":
                code, stop = self._finder.reader.unit_at(text, place)
                if (
                    code is not None
                    and code not in ("L", "h", "g", "m", "d", "s")
                    and value.unit is None
                ):
                    unit, end = code, stop
                    continue
            if date is None:
                bracket = _OPEN.match(text, place)
                day = self.match_date(text, bracket.end() if bracket else place)
                closed = (
                    re.match(r"\s?[)\]]", text[day[1] : day[1] + 2]) if day and bracket else None
                )
                if day and (closed or not bracket) and not self.begins_value(text, day[1]):
                    date, end = day[0], day[1] + (closed.end() if closed else 0)
                    continue
            break
        return Trail(end, unit, flag, low, high, date)

    def begins_value(self, text: str, at: int) -> bool:
        """Check whether a value follows a date, to which it then belongs."""
        return re.match(r"\)?\s?:?\s?[<>]?\d", text[at : at + 5]) is not None

    def _read_range(
        self, text: str, at: int, *, in_table: bool
    ) -> tuple[float | None, float | None, int] | None:
        """Read a reference range: in brackets, after "ref.", or in a cell of its own."""
        opened = _OPEN.match(text, at)
        place = opened.end() if opened else at
        if word := self._reference.match(text, place):
            place = word.end()
            if inner := _OPEN.match(text, place):
                opened, place = inner, inner.end()
        if not (opened or word or in_table):
            return None
        low = high = None
        limit = {side: pattern.match(text, place) for side, pattern in self._limits.items()}
        if sign := limit["high"] or limit["low"]:
            number = self._read_limit(text, sign.end())
            if number is None:
                return None
            low, high = (None, number[0]) if limit["high"] else (number[0], None)
            end = number[1]
        else:
            first = self._read_limit(text, place)
            join = _TO.match(text, first[1]) if first else None
            second = self._read_limit(text, join.end()) if join else None
            if first is None or second is None or second[0] < first[0]:
                return None
            low, high, end = first[0], second[0], second[1]
        if opened:
            closed = _CLOSE.match(text, end)
            inner_unit = text[end : closed.end() - 1].strip() if closed else ""
            if closed is None or (
                inner_unit and not word and self._is_words(text, end, inner_unit)
            ):
                return None
            end = closed.end()
        elif word is None and re.match(r"\s?[^\W\d_]*[\d/:]", text[end : end + 3]):
            return None
        return low, high, end

    def _is_words(self, text: str, at: int, written: str) -> bool:
        """Check that what follows a range in brackets is not a unit of tests."""
        code, end = self._finder.reader.unit_at(text, at)
        return code is None or code in ("d", "h", "wk", "mo", "a") or len(written) > end - at + 1

    def _read_limit(self, text: str, at: int) -> tuple[float, int] | None:
        """Read a limit of a reference range, and where it ends."""
        number = self._finder.reader.number(text, at)
        return None if number is None or number.is_word else (number.value, number.end)


def is_alike(text: str, last: Result, value: Value) -> bool:
    """Check whether a number after a comma is a further value, and not something else."""
    if value.unit is not None and value.start != last.end_char:
        is_side = text[last.end_char : value.start].lstrip().startswith("(")
        return value.unit == last.unit or (is_side and value.unit == "%")
    is_alone = re.match(r"\s?(?:[,.;)\]|\n]|$)|[^\S\n]{2,}", text[value.end : value.end + 3])
    return (
        last.unit is None
        and is_alone is not None
        and (last.out_of is None) == (value.out_of is None)
    )
