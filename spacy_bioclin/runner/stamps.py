"""Read and shift the dates of a column: text, dates and times of Parquet, numbers of databases."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from ..dates import PATTERNS, make_date, read_dates
from ..deid.surrogates.context import SurrogateContext
from ..deid.surrogates.dates import shift_dates
from ..text import compose
from .carried import Number

# "Never ends" and "unknown" of databases: shifted, such a date would show by how much.
FIRST_YEAR, LAST_YEAR = 1901, 2099
EPOCH = date(1970, 1, 1)
# Digits of a time since 1970 -> units a second; with fewer digits it is a number like any other.
EPOCH_UNITS = {10: 1, 13: 10**3, 16: 10**6, 19: 10**9}
SECONDS_A_DAY = 86_400
MAX_ZONE_HOURS = 12
# 20210312, 20210312T0830, 20210312083000.000 (HL7)
_COMPACT = re.compile(r"(?<![^\W_])(\d{4})(\d\d)(\d\d)(?=(?:T?\d{4}(?:\d\d)?(?:\.\d+)?Z?)?(?!\w))")
_ZONED = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d(?:[.,]\d+)?)?\s?(?:Z|UTC|[+-]\d)")
# The patterns of a whole date.
_WHOLE = ("iso", "numeric", "roman", "day_first", "month_first")


def find_days(value: Any, lang: str) -> Iterator[date]:
    """List the days in a value: of every date with day, month and year, in whatever spelling.

    value (Any): A string, date, datetime or number.
    lang (str): Language of its words and of the order of day and month.
    """
    if isinstance(value, datetime):
        yield from _days_of(value)
        return
    if isinstance(value, date):
        yield value
        return
    if isinstance(value, bool) or not isinstance(value, str | int):
        return
    text = compose(str(value))
    if not any(map(str.isdigit, text)):
        return
    for found in _COMPACT.finditer(text):
        day = make_date(*map(int, found.groups()))
        if day is not None and FIRST_YEAR <= day.year <= LAST_YEAR:
            yield day
    for found in _ZONED.finditer(text):
        with suppress(ValueError):
            yield from _days_of(datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00"))
    for name in _WHOLE:
        for match in PATTERNS[name].finditer(text):
            for parsed in (read_dates(match[0], lang) or ([], []))[0]:
                if parsed.year and parsed.month and parsed.day:
                    day = parsed.to_date(parsed.year)
                    if day is not None:
                        yield day


def _days_of(moment: datetime) -> Iterator[date]:
    """List the days that a moment may be; with a zone ("…T23:00Z"), the day where the patient is
    may be the next one, or the one before."""
    hours = (0,) if moment.tzinfo is None else (0, -MAX_ZONE_HOURS, MAX_ZONE_HOURS)
    for shift in hours:
        with suppress(OverflowError):
            yield (moment + timedelta(hours=shift)).date()


def read_day(value: Any, lang: str) -> date | None:
    """Read a value that is one date, perhaps with a time.

    RETURNS (date | None): None if it is not, or stands for "unknown" as 1900 and 9999 do.
    """
    day = None
    if isinstance(value, str):
        text = compose(value.strip())
        if found := _COMPACT.match(text):
            day = make_date(*map(int, found.groups()))
        elif (dates := read_dates(text, lang)) is not None and len(dates[0]) == 1:
            parsed = dates[0][0]
            if parsed.year is not None:
                day = parsed.to_date(parsed.year)
    elif isinstance(value, date):
        day = value.date() if isinstance(value, datetime) else value
    elif (number := as_integer(value)) is not None:
        if len(str(number)) == 8:
            return read_day(str(number), lang)
        unit = EPOCH_UNITS.get(len(str(number)))
        if unit is not None:
            day = datetime.fromtimestamp(number // unit, UTC).date()
    is_known = day is not None and FIRST_YEAR <= day.year <= LAST_YEAR and day != EPOCH
    return day if is_known else None


def read_birth_date(value: Any, lang: str) -> date | None:
    """Read a day, month and year of four digits, in any order that the language has.

    RETURNS (date | None): None if it is not one date, or two digits leave the century open.
    """
    if isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    text = compose(as_text(value).strip())
    with suppress(ValueError):
        return date.fromisoformat(text[:10])
    if found := _COMPACT.match(text):
        return make_date(*map(int, found.groups()))
    dates = (read_dates(text, lang) or ([], []))[0]
    if len(dates) != 1 or not re.search(r"\d{4}", text):
        return None
    [parsed] = dates
    return make_date(parsed.year or 0, parsed.month or 0, parsed.day or 0)


def shift_value(value: Any, context: SurrogateContext) -> Any:
    """Shift a date by the patient's offset, in the form that it has.

    value (Any): A string, date, datetime or number, not None.
    context (SurrogateContext): Its `dates` say how far.
    RETURNS (Any): The new date, of the same type; None if the value is not a date that is known
        with its year.
    """
    assert context.dates is not None
    days = context.dates.days
    if isinstance(value, str) and not value.strip():
        return value
    if read_day(value, context.lang) is None:
        return None
    try:
        if isinstance(value, date):
            return value + timedelta(days)
        if isinstance(value, str):
            return _shift_text(value, days, context)
        number = as_integer(value)
        assert number is not None  # read_day has read it
        kind: Any = float if isinstance(value, Number) else type(value)
        if len(str(number)) == 8:
            return kind(_shift_text(str(number), days, context))
        unit = EPOCH_UNITS[len(str(number))]
        return kind(number + days * SECONDS_A_DAY * unit)
    except OverflowError:
        return None


def _shift_text(value: str, days: int, context: SurrogateContext) -> str | None:
    text = value.strip()
    if found := _COMPACT.match(text):
        day = make_date(*map(int, found.groups()))
        assert day is not None  # read_day has read it
        return f"{day + timedelta(days):%Y%m%d}{text[found.end() :]}"
    return shift_dates(value, context)


def as_text(value: Any) -> str:
    """Write a value; a number without a fraction as its digits."""
    number = as_integer(value)
    return str(value if number is None else number)


def as_integer(value: Any) -> int | None:
    """Convert a number without a fraction (Parquet has 17.0 for 17 where values are missing)."""
    if isinstance(value, Number):
        value = float(value)
        if abs(value) >= 2**53:
            return None  # not the number that is written
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        return int(value) if value == int(value) else None
    except (OverflowError, ValueError):  # infinite, or not a number
        return None
