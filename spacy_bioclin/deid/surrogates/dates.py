"""Dates move by the patient's secret offset and come back in the form that they were written in.

One number of days for all dates of a patient, so intervals stay. What is not written (the day of
"marzo de 2018", the day and month of "2018") is taken from the middle. Only the fields of a date
are written anew: what stands between them (de, slashes, the time of the day) stays.
"""

from datetime import date, timedelta
from typing import NamedTuple

from ...dates import (
    LEAP_YEAR,
    MONTH_NAMES,
    MONTHS,
    ROMANS,
    SHORT_MONTHS,
    SHORT_WEEKDAYS,
    WEEKDAYS,
    Field,
    ParsedDate,
    make_date,
    read_dates,
)
from ...text import compose, fold_alnum
from ..secret import Secret
from .wording import match_case

MIN_DAYS, MAX_DAYS = 190, 1460
# An offset near to whole years would leave "marzo" and "12 de marzo" where they were.
MARGIN_DAYS = 31
DAYS_A_YEAR = 365.25
_OFFSETS = tuple(
    sign * days
    for days in range(MIN_DAYS, MAX_DAYS + 1)
    if MARGIN_DAYS < days % DAYS_A_YEAR < DAYS_A_YEAR - MARGIN_DAYS
    for sign in (1, -1)
)


class DateShift(NamedTuple):
    """How the dates of a patient move.

    days (int): Offset.
    year (int): The year that a date without one ("12 de marzo") is taken to be of. Where it is the
        right one, the distance to dates with a year is exact; else it may be a day off.
    """

    days: int
    year: int = LEAP_YEAR


def shift_days(secret: Secret, keep_weekdays: bool) -> int:
    """RETURNS (int): The patient's offset, 190 to 1,460 days to either side, never near to a whole
    number of years; a multiple of 7 if weekdays are to stay."""
    offsets = [days for days in _OFFSETS if days % 7 == 0] if keep_weekdays else _OFFSETS
    return offsets[secret.number("date shift", "weeks" if keep_weekdays else "days", len(offsets))]


def parse_date(text: str, lang: str) -> ParsedDate | None:
    """RETURNS (ParsedDate | None): The one date that the text is, beside weekday and time; None if
    it is something else, or a day that does not exist."""
    found = read_dates(compose(text), lang)
    return found[0][0] if found is not None and len(found[0]) == 1 else None


def shift_dates(text: str, dates: DateShift, lang: str) -> str | None:
    """Move what is dated in a text.

    text (str): A date in any form, or a few ("del 12 al 15 de marzo").
    lang (str): "en": 03/12 is the 12th of March; else the 3rd of December.
    RETURNS (str | None): The same words with the new date; None if it cannot be read, no such day
        exists, or nothing moves (a weekday alone, with an offset of whole weeks).
    """
    text = compose(text)
    found = read_dates(text, lang)
    if found is None:
        return None
    parsed, weekdays = found
    year = next((each.year for each in parsed if each.year is not None), dates.year)
    edits: list[tuple[int, int, str]] = []
    for each in parsed:
        new = _move(each, year, dates.days)
        if new is None:
            return None
        edits.extend(
            (f.start, f.end, _write(f, each.fields, new[f.kind], lang)) for f in each.fields
        )
    for field in weekdays:
        number = (field.number + dates.days) % 7
        name = _write_name(field.text, number, WEEKDAYS, SHORT_WEEKDAYS, lang)
        edits.append((field.start, field.end, name))
    moved = text
    for start, end, written in sorted(edits, reverse=True):
        moved = moved[:start] + written + moved[end:]
    return None if moved == text else moved


def _move(parsed: ParsedDate, year: int, days: int) -> dict[str, int] | None:
    """RETURNS (dict[str, int] | None): Kind of field -> its new number."""
    kinds = {field.kind: field.number for field in parsed.fields}
    old = parsed.to_date(year)
    other = old
    if old is not None and "day_2" in kinds:
        other = _near(old, day=kinds["day_2"], first=_is_first(parsed, "day"))
    elif old is not None and "month_2" in kinds:
        month = kinds["month_2"]
        other = make_date(old.year - (month > old.month), month, 15)
    if old is None or other is None:
        return None
    try:
        new, new_other = old + timedelta(days), other + timedelta(days)
    except OverflowError:
        return None
    if new.year < 1000:
        return None
    return {
        **{"year": new.year, "month": new.month, "day": new.day, "suffix": new.day},
        **{"day_2": new_other.day, "month_2": new_other.month},
    }


def _is_first(parsed: ParsedDate, kind: str) -> bool:
    """RETURNS (bool): The main field of a range stands before the other one."""
    starts = {field.kind: field.start for field in parsed.fields}
    return starts[kind] < starts[f"{kind}_2"]


def _near(day_1: date, day: int, first: bool) -> date | None:
    """RETURNS (date | None): The other end of "28–3 de marzo": in the same month if it can be."""
    month = day_1.month
    if first and day < day_1.day:
        month += 1
    elif not first and day > day_1.day:
        month -= 1
    return make_date(day_1.year + (month - 1) // 12, (month - 1) % 12 + 1, day)


def _write(field: Field, fields: tuple[Field, ...], number: int, lang: str) -> str:
    """RETURNS (str): The new number as the old one was written."""
    if field.kind == "suffix":
        return _suffix(field.text, number)
    if field.kind == "year":
        digits = field.text.lstrip("'’")
        mark = field.text[: len(field.text) - len(digits)]
        return mark + (f"{number:04d}" if len(digits) == 4 else f"{number % 100:02d}")
    if field.text.isdigit():
        return f"{number:02d}" if _is_padded(field, fields) else str(number)
    if field.text.lower() in MONTH_NAMES:
        # "12-May-18" is the short name, "May 12" the full one.
        full = SHORT_MONTHS if _after_hyphen(field, fields) and len(field.text) == 3 else MONTHS
        return _write_name(field.text, number - 1, full, SHORT_MONTHS, lang)
    return match_case(field.text + field.text, ROMANS[number - 1])


def _is_padded(field: Field, fields: tuple[Field, ...]) -> bool:
    """Where two digits leave it open (12), the other numbers of the date say it."""
    if field.text[0] == "0" or len(field.text) == 1:
        return field.text[0] == "0"
    others = [f.text for f in fields if f.kind in ("day", "month", "day_2") and f is not field]
    digits = [text for text in others if text.isdigit()]
    return len(digits) == len(others) and all(len(text) == 2 for text in digits)


def _suffix(text: str, day: int) -> str:
    if not text.isalpha() or not text.isascii():
        return text if day == 1 else ""
    ends = {1: "st", 2: "nd", 3: "rd"}
    suffix = "th" if day in (11, 12, 13) else ends.get(day % 10, "th")
    return suffix.upper() if text.isupper() else suffix


def _after_hyphen(field: Field, fields: tuple[Field, ...]) -> bool:
    """RETURNS (bool): The field stands right after the day, with one sign between."""
    return any(f.end + 1 == field.start and f.kind == "day" for f in fields)


def _write_name(
    text: str, index: int, full: dict[str, list[str]], short: dict[str, list[str]], lang: str
) -> str:
    """RETURNS (str): Name of a month or weekday: language, length and case of the old one."""
    languages = sorted(full, key=lambda language: language != lang)
    for language in languages:
        for table in (full, short):
            if fold_alnum(text) in map(fold_alnum, table[language]):
                return match_case(text, table[language][index])
    # Other spellings: sept, setiembre.
    return match_case(text, (full if len(text) > 4 else short)[languages[0]][index])


def written_forms(day: date, lang: str) -> list[str]:
    """Write a date in the forms that notes have it in.

    lang (str): "en" puts the month first in figures; else the day.
    RETURNS (list[str]): About thirty forms, without doubles, the longest first.
    """
    language = "en" if lang == "en" else "es"
    name, short = MONTHS[language][day.month - 1], SHORT_MONTHS[language][day.month - 1]
    year, yy = f"{day.year:04d}", f"{day.year % 100:02d}"
    padded, bare = (f"{day.day:02d}", f"{day.month:02d}"), (str(day.day), str(day.month))
    forms = [f"{year}-{padded[1]}-{padded[0]}", f"{year}/{padded[1]}/{padded[0]}"]
    forms.append(year + padded[1] + padded[0])
    for d, m in (padded, bare):
        first, second = (m, d) if language == "en" else (d, m)
        forms += [f"{first}{s}{second}{s}{y}" for s in "/-." for y in (year, yy)]
        forms += [f"{d}-{short}-{year}", f"{d}-{short}-{yy}", f"{d} {short} {year}"]
        forms += [f"{d}-{ROMANS[day.month - 1]}-{year}", f"{d}/{ROMANS[day.month - 1]}/{year}"]
        if language == "en":
            forms += [f"{d} {name} {year}", f"{name} {d}, {year}", f"{short} {d}, {year}"]
            suffix = _suffix("th", day.day)
            forms += [f"{name} {d}{suffix}, {year}", f"{d}{suffix} of {name} {year}"]
        else:
            forms += [f"{d} de {name} de {year}", f"{d} de {name} del {year}", f"{d} {name} {year}"]
            forms += [f"{d}-{name}-{year}"]
    return sorted(dict.fromkeys(forms), key=len, reverse=True)
