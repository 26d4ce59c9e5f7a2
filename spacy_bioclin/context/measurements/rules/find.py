"""Find the measurements of a text: no spaCy, one pass, time in proportion to the text."""

import re
from collections.abc import Mapping
from functools import lru_cache

from ..measurement import Measurement
from .ages import Ages
from .around import find_comparator, find_name, words_before
from .bare import PAIN, Bare
from .days import Dates, Day
from .joined import Joined
from .lexicon import get_lexicon
from .numbers import read_digits
from .often import Frequencies, Often
from .reader import Number, Reader
from .scan import Group, Scanner, fold
from .units import DOSE_FORMS, TIMES, Units

_CLOCK = re.compile(
    r"(?i)\d{1,2}\s?(?:[:.,´'’`]|\s´)\s?\d{2}\s?(?:h|hs|hrs|horas|hours|am|pm|a\.m|p\.m)\b"
    r"|\d{1,2}\s?:\s?\d\d"
)
# Units of insulin in the morning, at noon and in the evening.
_SCHEME = re.compile(r"\d{1,3}(?:\s?-\s?\d{1,3}){2,3}(?![\d/]|[-.,]\d)")
# "38+5 semanas", "38 5/7 weeks": weeks and days of a pregnancy
_WEEKS_AND_DAYS = re.compile(r"\d{1,2}(?:\s?\+\s?[0-6]|\s?\+?\s?[0-6]/7)(?![\d/]|[.,]\d)")
_SHORT_DATE = re.compile(r"\d\d?/\d\d?/\d\d")
_UNREAD = re.compile(r"\d+(?:[.,:]\d+)*")
# Numbers in a row with nothing else between them are no measurements, but for the last ones, which
# may have a unit, and the first, which may have a name.
_ROW = re.compile(
    r"(?:(?:[,;]?\s|\.\s(?=\d\D))\d{1,4}(?:[.,]\d{1,3})?(?=[,;.]?(?:\s|$)))+"
    r"|(?:[-/]\d{1,4}(?![\w.,]))+"
)
_LAST_OF_ROW = 120  # characters, more than a list of measurements with one unit has
_AGE_ENDS = ("older", "younger", "mayor", "mayores", "menor", "menores")
_AGE_SIGNS = ("mayor", "menor", "older", "younger")


class Finder:
    """Find measurements in texts of one language.

    lang (str): "es" or "en".
    units (Mapping[str, str]): Further written forms of units, with their UCUM codes.
    """

    def __init__(self, lang: str, units: Mapping[str, str]) -> None:
        self.lexicon = lexicon = get_lexicon(lang)
        self._units = Units(units)
        self._often = Frequencies(lexicon, self._units)
        self.dates = Dates(lexicon)
        self._ages = Ages(lexicon, self._units)
        self.reader = Reader(lexicon, self._units, self._ages)
        self.joined = Joined(self.reader)
        self._bare = Bare(self.reader, self.joined)
        self._not_clock = lexicon.words("not_clock_after")
        self.scanner = Scanner(lexicon, self._units, self._often.words, self.dates.names)

    def find(self, text: str) -> list[Measurement]:
        """Find the measurements of a text, in order, not overlapping.

        text (str): Any text; it is not changed.
        RETURNS (list[Measurement]): With code points of the text.
        """
        found: list[Measurement] = []
        place = floor = 0
        folded = fold(text)
        while start := self.scanner.search(folded, place):
            one = self._read(text, start.at, start.group, floor)
            if isinstance(one, Measurement):
                if found and _goes_on(text, found[-1], one):
                    one = one._replace(kind="age")
                found.append(one)
                floor = one.end_char
                place = max(floor, start.next)
            else:
                place = max(start.next, one)
            if start.group == "digit" and (row := _ROW.match(text, place)):
                place = max(place, row.end() - _LAST_OF_ROW)
        return found

    def _read(self, text: str, at: int, group: Group, floor: int) -> Measurement | int:
        """Read what begins at a place: a measurement, or where to go on."""
        if group == "month":
            day = self.dates.match_month(text, at)
            return _from_day(day) if day else at
        if group == "often":
            often = self._often.match_every(text, at) or self._often.match_times(text, at)
            return _from_often(often) if often else at
        if often := self._often.match_times(text, at):
            return _from_often(often)
        if group == "digit":
            day = self.dates.match_digits(text, at)
            if day and not self.reader.unit_at(text, day.end)[0]:
                return day.end if self._is_score(text, day) else _from_day(day)
            if (end := self._joined_end(text, at)) is not None:
                return end
            if clock := _CLOCK.match(text, at):
                return clock.end()
        is_article = group == "article"
        number = self.reader.article(text, at) if is_article else self.reader.number(text, at)
        if number is None:
            unread = _UNREAD.match(text, at)
            return unread.end() if unread else at
        return self._read_number(text, self.reader.with_half(text, number), floor)

    def _is_score(self, text: str, day: Day) -> bool:
        """Check whether what looks like a date is the value of a score: "Apgar 9/10/10"."""
        if not _SHORT_DATE.fullmatch(text, day.start, day.end):
            return False
        name = find_name(text, day.start, self.lexicon)
        return name in self.lexicon.scores and name not in PAIN

    def _joined_end(self, text: str, at: int) -> int | None:
        """Find where numbers end that only together mean something: a scheme, weeks and days."""
        found = _SCHEME.match(text, at)
        weeks = None if found else _WEEKS_AND_DAYS.match(text, at)
        if weeks and self.reader.unit_at(text, weeks.end())[0] == "wk":
            found = weeks
        return self.reader.unit_at(text, found.end())[1] if found else None

    def _read_number(self, text: str, number: Number, floor: int) -> Measurement | int:
        """Read what begins with a number."""
        if not number.is_word and (pressure := self.joined.pressure(text, number)):
            return pressure
        unit, end = self.reader.unit_of(text, number)
        one = self.joined.size(text, number, unit, end)
        one = one or self.joined.range(text, number, unit, end, floor)
        one = one or self._read_age(text, number, floor)
        if one is not None:
            return one
        if unit is None:
            return self._bare.read(text, number, floor)
        if unit in TIMES:
            return self._read_time(text, number, unit, end, floor)
        return self._read_quantity(text, number, unit, end, floor)

    def _read_age(self, text: str, number: Number, floor: int) -> Measurement | None:
        """Read an age that says so after its number: "65-year-old", "65 años de edad"."""
        tail = self._ages.tail.match(text, number.end)
        if tail is None:
            return None
        unit = "a" if tail["year"] else self._units.read(tail["unit"]) or "a"
        before = find_comparator(text, number.start, floor, self.lexicon)
        end, sign = self.joined.comparator_after(text, tail.end(), before.sign)
        start = self._aged(text, before.start)
        return Measurement("age", number.value, None, sign, unit, start, end)

    def _aged(self, text: str, start: int) -> int:
        """Go back to the start of "aged"."""
        named = self._ages.read_name(text, start)
        return start if named is None else named

    def _read_time(
        self, text: str, number: Number, unit: str, end: int, floor: int
    ) -> Measurement | int:
        """Read a number with a unit of time: a duration or an age."""
        value = number.value
        if half := self.reader.half.match(text, end):
            value, end = value + 0.5, half.end()
        if self._is_clock(text, number, end, unit):
            return end
        before = find_comparator(text, number.start, floor, self.lexicon)
        start, kind = before.start, "duration"
        words = text[start : number.start].lower()
        if unit == "s" and find_name(text, number.start, self.lexicon):
            kind = "quantity"
        elif unit == "a" and words.startswith(_AGE_SIGNS):
            kind = "age"
        elif self._ages.is_age(text, start, end, unit, value):
            kind, start = "age", self._aged(text, start)
        after, sign = self.joined.comparator_after(text, end, before.sign)
        if unit == "a" and text[end:after].lower().endswith(_AGE_ENDS):
            kind = "age"
        return Measurement(kind, value, None, sign, unit, start, after)

    def _is_clock(self, text: str, number: Number, end: int, unit: str) -> bool:
        """Check whether "a las 20 h" is a time of day."""
        if unit != "h" or number.value > 23:
            return False
        first, second = (*words_before(text, number.start, 16), "", "")[:2]
        if first != self.lexicon.data["clock_before"] or (number.value == 12 and second == "a"):
            return False
        after = re.match(r"\s([^\W\d_]+)", text[end : end + 20])
        return not (after and after[1].lower() in self._not_clock)

    def _read_quantity(
        self, text: str, number: Number, unit: str, end: int, floor: int
    ) -> Measurement | int:
        """Read a number with any other unit."""
        if number.is_word and number.value == 1 and unit not in DOSE_FORMS:
            return end  # "un", "one" may be no number
        value = number.value
        if not number.is_word and unit.endswith(("/mm3", "/uL")) and "10*" not in unit:
            value = read_digits(number.text, self.lexicon.lang, counts=True) or value
        start = self.reader.signed_start(text, number.start, unit)
        value = -value if start < number.start else value
        before = find_comparator(text, start, floor, self.lexicon)
        if unit.startswith("d/"):  # "five days a week"
            return Measurement("frequency", value, None, before.sign, unit[2:], before.start, end)
        end, sign = self.joined.comparator_after(text, end, before.sign)
        return Measurement("quantity", value, None, sign, unit, before.start, end)


def _goes_on(text: str, last: Measurement, one: Measurement) -> bool:
    """Check whether a time goes on with an age: "3 años 10 meses", "2 años y medio"."""
    if last.kind != "age" or one.kind != "duration" or one.unit not in ("mo", "wk", "d"):
        return False
    return text[last.end_char : one.start_char].strip(" ,").lower() in ("", "y", "and", "con")


def _from_day(day: Day) -> Measurement:
    return Measurement("date", day.value, None, None, None, day.start, day.end)


def _from_often(often: Often) -> Measurement:
    return Measurement(
        "frequency", often.value, often.high, None, often.unit, often.start, often.end
    )


@lru_cache(maxsize=8)
def get_finder(lang: str) -> Finder:
    """Get the finder of a language without a user's units; it is made once."""
    return Finder(lang, {})


def find_measurements(text: str, lang: str) -> list[Measurement]:
    """Find the measurements of a text.

    lang (str): "es" or "en".
    RETURNS (list[Measurement]): In order, not overlapping, with code points of the text.
    """
    return get_finder(lang).find(text)
