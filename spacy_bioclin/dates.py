"""Read dates in the forms in which Spanish and English texts have them."""

import re
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

from .text import compose, fold_alnum

# Two digits up to this number are a year from 2000 on.
LAST_SHORT_YEAR = 35
LEAP_YEAR = 2016
MAX_CHARS = 200


def _words(text: str) -> list[str]:
    return text.split()


MONTHS = {
    "es": _words(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    ),
    "en": _words(
        "January February March April May June July August September October November December"
    ),
}
SHORT_MONTHS = {
    "es": _words("ene feb mar abr may jun jul ago sep oct nov dic"),
    "en": _words("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"),
}
WEEKDAYS = {
    "es": _words("lunes martes miércoles jueves viernes sábado domingo"),
    "en": _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
}
ROMANS = _words("I II III IV V VI VII VIII IX X XI XII")
# Words beside a date that add no information about anybody.
HARMLESS = frozenset(
    _words(
        "a al am and ano antes around at beginning circa comienzos d de del desde dia dias during e"
        " early el en end fecha fechas final finales fin from h hasta hora horas hrs hs in inicios"
        " la las late los m mediados mes mid month of on p pm principios since the to until utc y"
        " year spring summer autumn fall winter primavera verano otono invierno z"
    )
)


class Field(NamedTuple):
    """Part of a date in a text: its offsets, how it is written, and its number.

    kind (str): "year", "month", "day", "suffix" ("th", "º"), or the other end of a range: "day_2"
        of "12–15 de marzo", "month_2" of "marzo y abril de 2018".
    """

    kind: str
    start: int
    end: int
    text: str
    number: int


class ParsedDate(NamedTuple):
    """A date; parts that are not written are None."""

    year: int | None
    month: int | None
    day: int | None
    fields: tuple[Field, ...] = ()

    def to_date(self, year: int) -> date | None:
        """Assume the middle for missing parts, and the given year if there is none.

        RETURNS (date | None): None if there is no such day.
        """
        if self.year is not None:
            year = self.year
        elif self.month == 2 and self.day == 29:
            year = LEAP_YEAR
        if self.month is None:
            return make_date(year, 7, 1)
        return make_date(year, self.month, 15 if self.day is None else self.day)


def make_date(year: int, month: int, day: int) -> date | None:
    """Make a date, or None if there is no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


MONTH_NAMES = {
    "setiembre": 9,
    "sept": 9,
    "set": 9,
    **{x.lower(): i for names in SHORT_MONTHS.values() for i, x in enumerate(names, 1)},
    **{x.lower(): i for names in MONTHS.values() for i, x in enumerate(names, 1)},
}
SHORT_WEEKDAYS = {lang: [name[:3] for name in names] for lang, names in WEEKDAYS.items()}
WEEKDAY_NAMES = {
    **{fold_alnum(x): i for names in SHORT_WEEKDAYS.values() for i, x in enumerate(names)},
    **{fold_alnum(x): i for names in WEEKDAYS.values() for i, x in enumerate(names)},
}

_NAME = "(?:" + "|".join(sorted(MONTH_NAMES, key=len, reverse=True)) + r")(?![^\W\d_])"
_ROMAN = "(?:" + "|".join(sorted(ROMANS, key=len, reverse=True)) + r")(?![^\W\d_])"
_SEP = r"\s*[/.\-–]{1,2}\s*"
_YEAR = r"(?:1[5-9]\d\d|2[01]\d\d)"
# As Spanish notes often have it: "marzo de 2.018".
_POINT_YEAR = rf"(?:{_YEAR}|1\.9\d\d|2\.0\d\d)"
_SHORT = r"['’]?\d\d"
_OF = r"(?:\.?,?\s+(?:(?:del?|of)\s+)?(?:a[ñn]o\s+|the\s+)?|\.?\s*[-–/,]\s*|\.)?"
_TO = r"\s*(?:-|–|/|\b(?:y|e|al?|and|to)\b)\s*"
_SUFFIX = r"(?P<suffix>st|nd|rd|th|\.?[ºª°])?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"

# Of the matches that begin first, the longest is taken; of equal ones, the first in this table.
PATTERNS = {
    name: re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", re.IGNORECASE)
    for name, pattern in {
        "time": rf"{_CLOCK}|\d{{1,2}}\s*h\s*\d\d|\d{{1,2}}\s*(?:h|hrs|horas|[ap]\.?m)",
        "iso": rf"(?P<year>{_YEAR}){_SEP}(?P<month>\d\d?){_SEP}(?P<day>\d\d?)(?:T{_CLOCK})?",
        "numeric": rf"(?P<a>\d\d?){_SEP}(?P<b>\d\d?){_SEP}(?P<year>{_YEAR}|{_SHORT})",
        "roman": rf"(?P<day>\d\d?){_SEP}(?P<month>{_ROMAN}){_SEP}(?P<year>{_YEAR}|{_SHORT})",
        "day_first": rf"(?:(?P<day_2>\d\d?){_TO})?(?P<day>\d\d?){_SUFFIX}{_OF}(?P<month>{_NAME})"
        rf"(?:{_OF}(?P<year>{_POINT_YEAR})|(?:\.?\s*[-/–]\s*|\s+del?\s+|\s*(?=['’]))(?P<short>{_SHORT}))?",
        "month_first": rf"(?P<month>{_NAME})\.?\s+(?P<day>\d\d?){_SUFFIX}"
        rf"(?:{_TO}(?P<day_2>\d\d?))?(?:\s*,\s*|\s+)(?:del?\s+)?(?P<year>{_YEAR})",
        "month_day": rf"(?P<month>{_NAME})\.?\s+(?P<day>\d\d?){_SUFFIX}(?:{_TO}(?P<day_2>\d\d?))?",
        "month_year": rf"(?:(?P<month_2>{_NAME}){_TO})?(?P<month>{_NAME}){_OF}"
        rf"(?P<year>{_POINT_YEAR}|{_SHORT})",
        "roman_year": rf"(?P<month>{_ROMAN}){_SEP}(?P<year>{_YEAR}|{_SHORT})",
        "number_year": rf"(?P<month>\d\d?){_SEP}(?P<year>{_YEAR})",
        "pair": r"(?P<a>\d\d?)\s*[/.\-–]\s*(?P<b>\d\d?)",
        "compact": rf"(?P<year>{_YEAR})(?P<month>\d\d)(?P<day>\d\d)",
        "year": rf"(?P<year>{_YEAR}|['’]\d\d)",
        "month": rf"(?P<month>{_NAME})",
    }.items()
}
_WORD = re.compile(r"[^\W\d_]+")


def find_day_first(texts: Iterable[str]) -> bool | None:
    """Find out whether the day stands before the month in dates in figures.

    texts (Iterable[str]): Dates of one note: one writer, one order.
    RETURNS (bool | None): True if some can only be read so ("28/02/2021") and none only the other
        way, False for the opposite; None if nothing or both are shown.
    """
    orders = set()
    for text in texts:
        for found in PATTERNS["numeric"].finditer(compose(text)):
            a, b = int(found["a"]), int(found["b"])
            if min(a, b) <= 12 < max(a, b) <= 31:
                orders.add(a > 12)
    return orders.pop() if len(orders) == 1 else None


def read_dates(
    text: str, lang: str, day_first: bool | None = None
) -> tuple[list[ParsedDate], list[Field]] | None:
    """Read all dates of a text.

    text (str): What a date detector found: one date, or a few ("del 12 al 15 de marzo").
    lang (str): "en": 03/12 is the 12th of March; else the 3rd of December. A month above 12 is a
        day in both.
    day_first (bool | None): The order, if it is known (`find_day_first`), whatever the language.
    RETURNS (tuple[list[ParsedDate], list[Field]] | None): The dates and the weekdays, in order;
        None if there are none, a day does not exist, or the text has other words or numbers.
    """
    if len(text) > MAX_CHARS:
        return None
    dates: list[ParsedDate] = []
    weekdays: list[Field] = []
    place = 0
    while True:
        name, found = _next_match(text, place, lang)
        rest = text[place : found.start() if found else len(text)]
        words = _read_words(rest, place)
        if words is None:
            return None
        weekdays.extend(words)
        if found is None:
            return (dates, weekdays) if dates or weekdays else None
        place = found.end()
        if name != "time":
            parsed = _read_match(found, lang, day_first)
            if parsed.to_date(LEAP_YEAR) is None:
                return None
            dates.append(parsed)


def _next_match(text: str, place: int, lang: str) -> tuple[str, re.Match[str] | None]:
    found = [(name, match) for name, p in PATTERNS.items() if (match := p.search(text, place))]
    if not found:
        return "", None
    # "Junio 04" is a year in Spanish, "June 04" a day in English.
    late = "month_day" if lang == "es" else "month_year"
    return min(found, key=lambda x: (x[1].start(), -x[1].end(), x[0] == late))


def _read_words(rest: str, offset: int) -> list[Field] | None:
    """List the weekdays between dates; None if there is a digit, or a word with information."""
    weekdays = []
    for word in _WORD.finditer(rest):
        folded = fold_alnum(word.group())
        if folded in WEEKDAY_NAMES:
            start, end = offset + word.start(), offset + word.end()
            weekdays.append(Field("weekday", start, end, word.group(), WEEKDAY_NAMES[folded]))
        elif folded not in HARMLESS:
            return None
    return None if any(char.isdigit() for char in rest) else weekdays


def _read_match(found: re.Match[str], lang: str, day_first: bool | None) -> ParsedDate:
    groups = {kind: text for kind, text in found.groupdict().items() if text is not None}
    kinds = {"short": "year"}
    if "a" in groups:
        kinds |= _order(int(groups["a"]), int(groups["b"]), "year" in groups, lang, day_first)
    fields = tuple(
        Field(kind, *found.span(group), text, _number(text, kind))
        for group, text in groups.items()
        for kind in [kinds.get(group, group)]
    )
    number = {field.kind: field.number for field in fields}
    return ParsedDate(number.get("year"), number.get("month"), number.get("day"), fields)


def _order(a: int, b: int, has_year: bool, lang: str, is_day_first: bool | None) -> dict[str, str]:
    """Interpret two numbers: in the order of the note or the language, else in the other one, else
    as month and year ("12/18")."""
    if is_day_first is None:
        is_day_first = lang != "en"
    day_first = {"a": "day", "b": "month"}
    month_first = {"a": "month", "b": "day"}
    usual, other = (day_first, month_first) if is_day_first else (month_first, day_first)
    if (b if is_day_first else a) <= 12:
        return usual
    if has_year or lang == "en":
        return other
    return {"a": "month", "b": "year"}


def _number(text: str, kind: str) -> int:
    if kind == "year":
        year = int(text.lstrip("'’").replace(".", ""))
        if year > 99:
            return year
        return year + (2000 if year <= LAST_SHORT_YEAR else 1900)
    if kind == "suffix":
        return 0
    if text.isdigit():
        return int(text)
    return MONTH_NAMES.get(text.lower()) or ROMANS.index(text.upper()) + 1
