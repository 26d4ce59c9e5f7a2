"""Read measurements of several numbers: blood pressures, sizes, ranges and lists."""

import re

from ..measurement import Measurement
from .around import find_comparator, find_comparator_after, find_name, is_pressure, words_before
from .numbers import DIGITS, FRACTION
from .reader import Number, Reader
from .units import TIMES

_LENGTHS = ("mm", "cm", "m", "um", "[in_i]")
_MAX_SIDES, _MAX_LIST = 4, 6
_HIGHEST_PRESSURE = 350
_OVER = re.compile(r"\s?(?:/|(?P<dash>-)|\sover(?=\s))\s?(?=\d)")
NORMAL = frozenset(["normal", "normales", "vn", "n", "reference", "referencia"])


class Joined:
    """Read measurements of several numbers of a language.

    reader (Reader): What reads each.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lexicon = reader.lexicon
        data = self._lexicon.data
        joins = "|".join(data["range_joins"].split())
        self._join = re.compile(rf"(?i)\s?(?P<dash>[-–—÷])\s?|\s(?P<word>{joins})\s")
        self._and = re.compile(rf"(?i)\s(?:{'|'.join(data['and'].split())})\s")
        self._between = re.compile(rf"(?i)(?<![^\W_]){data['between']}\s(?:los\s|las\s)?$")
        self._by = re.compile(rf"(?i)\s?[x×*]\s?|\s(?:{data['size_joins']})\s")
        last = "|".join(data["list_joins"].split())
        join = rf"(?:\s?,?\s(?:{last})\s|\s?,\s)"
        number = rf"(?:{FRACTION}|{DIGITS})"
        self._list = re.compile(
            rf"(?i)(?:{join}{number}){{0,{_MAX_LIST - 1}}}{join}(?=[\d.,½¼¾⅓⅔])"
        )
        self._last = re.compile(rf"(?i)\s(?:{last})\s")
        self._not_lists = self._lexicon.words("not_lists")

    def pressure(self, text: str, high: Number) -> Measurement | None:
        """Read "120/80", "120/80 mmHg", and after its name "12/8" (in cm of mercury)."""
        over = _OVER.match(text, high.end)
        if over is None or not high.value.is_integer() or high.value > _HIGHEST_PRESSURE:
            return None
        low = self._reader.number(text, over.end())
        if low is None or not low.value < high.value:
            return None
        unit, end = self._reader.unit_at(text, low.end)
        if unit != "mm[Hg]":
            end = low.end
            if re.match(r"[/-]\d", text[end : end + 2]):
                return None
        named = is_pressure(text, high.start, self._lexicon)
        scale = 1
        if named and unit != "mm[Hg]":
            if 8 <= high.value <= 26 and 3 <= low.value <= 15:
                scale = 10
            elif high.value < 50 or not 20 <= low.value <= 200:
                return None
        elif not named:
            is_likely = unit == "mm[Hg]" or (not unit and _is_likely(high.value, low.value))
            if over["dash"] or not is_likely:
                return None
        values = high.value * scale, low.value * scale
        return Measurement("blood_pressure", *values, None, "mm[Hg]", high.start, end)

    def size(self, text: str, first: Number, unit: str | None, end: int) -> Measurement | None:
        """Read "3 x 4 cm", "12 × 8 × 5 mm", "3 cm x 4 cm".

        unit (str | None): The unit after the first number, which ends at `end`.
        """
        if unit is not None and unit not in _LENGTHS:
            return None
        values, place = [first.value], end
        while len(values) < _MAX_SIDES and (join := self._by.match(text, place)):
            number = self._reader.number(text, join.end())
            if number is None or number.is_word:
                break
            values.append(number.value)
            code, place = self._reader.unit_at(text, number.end)
            unit = code or unit
        if len(values) < 2 or unit not in _LENGTHS:
            return None
        return Measurement("size", tuple(values), None, None, unit, first.start, place)

    def range(
        self, text: str, low: Number, unit: str | None, end: int, floor: int
    ) -> Measurement | None:
        """Read "3-5 cm", "entre 3 y 5 cm", "80 to 90 mg", "2 or 3 days".

        unit (str | None): The unit after the first number, which ends at `end`.
        """
        between = self._between.search(text, max(floor, low.start - 14), low.start)
        join = (self._and.match(text, end) if between else None) or self._join.match(text, end)
        high = self._reader.number(text, join.end()) if join else None
        if join is None or high is None or high.value <= low.value:
            return None
        by_word = bool(join.groupdict().get("word"))
        code, stop = self._reader.unit_of(text, high)
        if unit is not None and (code != unit or (by_word and not between)):
            return None  # "from 6 mg to 12 mg" are two quantities
        start = between.start() if between else low.start
        if code is None:
            if by_word or text[high.end : high.end + 1] in ("-", "/"):
                return None
            if not find_name(text, low.start, self._lexicon) and not self._is_normal(text, low):
                return None
            return Measurement("range", low.value, high.value, None, None, start, high.end)
        before = find_comparator(text, start, floor, self._lexicon)
        kind = "range"
        if code in TIMES:
            tail = self._reader.ages.tail.match(text, high.end)
            stop = tail.end() if tail else stop
            is_age = tail or self._is_age(text, before.start, stop, code, high.value)
            kind = "age" if is_age else "duration"
        stop, sign = self.comparator_after(text, stop, before.sign)
        return Measurement(kind, low.value, high.value, sign, code, before.start, stop)

    def shared(self, text: str, number: Number, floor: int) -> Measurement | None:
        """Read a number whose unit follows the last of a list: "16, 13 y 6 mm"."""
        joins = self._list.match(text, number.end)
        following = self._reader.number(text, joins.end()) if joins else None
        if joins is None or following is None:
            return None
        unit, end = self._reader.unit_of(text, following)
        if unit is None or not self._last.search(joins[0]):
            return None
        if (words_before(text, number.start, 20) or [""])[0] in self._not_lists:
            return None
        before = find_comparator(text, number.start, floor, self._lexicon)
        kind = "quantity"
        if unit in TIMES:
            is_age = self._is_age(text, before.start, end, unit, number.value)
            is_age = is_age or self._reader.ages.tail.match(text, following.end) is not None
            kind = "age" if is_age else "duration"
        return Measurement(kind, number.value, None, before.sign, unit, before.start, number.end)

    def comparator_after(self, text: str, end: int, sign: str | None) -> tuple[int, str | None]:
        """Read the comparator after a number, if there is none before it."""
        after = None if sign else find_comparator_after(text, end, self._lexicon)
        return after or (end, sign)

    def _is_age(self, text: str, start: int, end: int, unit: str, value: float) -> bool:
        return self._reader.ages.is_age(text, start, end, unit, value)

    def _is_normal(self, text: str, number: Number) -> bool:
        """Check whether a number follows "normal", as the limits of a test do."""
        first, second = (*words_before(text, number.start, 24), "", "")[:2]
        return (second if first in ("de", "entre") else first) in NORMAL


def _is_likely(high: float, low: float) -> bool:
    """Check whether two numbers without name and unit are a blood pressure."""
    return 80 <= high <= 250 and 40 <= low <= 140 and 15 <= high - low <= 120
