"""Shift dates by the patient's secret offset, and write them in their original form.

All dates of a patient move by the same number of days, so intervals stay. What is not written (the
day of "marzo de 2018", the day and month of "2018") is assumed to be in the middle. Only the fields
of a date change: the text between them (de, slashes, the time of the day) stays.
"""

from datetime import date, timedelta

from ...dates import (
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
from ...rewrite import rewrite
from ...text import compose, fold_alnum
from ..secret import Secret
from .context import DateShift, SurrogateContext
from .wording import match_case

MIN_DAYS, MAX_DAYS = 190, 1460
# An offset near whole years would leave "marzo" and "12 de marzo" unchanged.
MARGIN_DAYS = 31
DAYS_A_YEAR = 365.25
_OFFSETS = tuple(
    sign * days
    for days in range(MIN_DAYS, MAX_DAYS + 1)
    if MARGIN_DAYS < days % DAYS_A_YEAR < DAYS_A_YEAR - MARGIN_DAYS
    for sign in (1, -1)
)


def shift_days(secret: Secret, keep_weekdays: bool) -> int:
    """Derive the patient's offset: 190 to 1,460 days, either way, never near whole years.

    RETURNS (int): A multiple of 7 if weekdays are kept.
    """
    offsets = [days for days in _OFFSETS if days % 7 == 0] if keep_weekdays else _OFFSETS
    return offsets[secret.number("date shift", "weeks" if keep_weekdays else "days", len(offsets))]


def parse_date(text: str, lang: str) -> ParsedDate | None:
    """Parse a text that is one date, perhaps with weekday and time.

    RETURNS (ParsedDate | None): None if it is something else, or a day that does not exist.
    """
    found = read_dates(compose(text), lang)
    return found[0][0] if found is not None and len(found[0]) == 1 else None


def shift_dates(value: str, context: SurrogateContext) -> str | None:
    """Shift a date in any form, or several ("del 12 al 15 de marzo").

    RETURNS (str | None): The same words with the new date; None if it cannot be read, there is no
        such day, or nothing changes (a weekday alone, with an offset of whole weeks).
    """
    value = compose(value)
    dates = context.dates or DateShift(shift_days(context.secret, False))
    found = read_dates(value, context.lang, dates.day_first)
    if found is None:
        return None
    parsed, weekdays = found
    year = next((each.year for each in parsed if each.year is not None), dates.year)
    edits: list[tuple[int, int, str]] = []
    for each in parsed:
        new = _shift(each, year, dates.days)
        if new is None:
            return None
        for field in each.fields:
            written = _write(field, each.fields, new[field.kind], context.lang)
            edits.append((field.start, field.end, written))
    for field in weekdays:
        number = (field.number + dates.days) % 7
        name = _write_name(field.text, number, WEEKDAYS, SHORT_WEEKDAYS, context.lang)
        edits.append((field.start, field.end, name))
    moved = rewrite(value, sorted(edits))[0]
    return None if moved == value else moved


def _shift(parsed: ParsedDate, year: int, days: int) -> dict[str, int] | None:
    """Compute the new number of each kind of field; None if there is no such day."""
    fields = {field.kind: field for field in parsed.fields}
    other = old = parsed.to_date(year)
    if old is not None and "day_2" in fields:
        is_last = fields["day_2"].start > fields["day"].start
        other = _other_end(old, fields["day_2"].number, is_last)
    elif old is not None and "month_2" in fields:
        month = fields["month_2"].number
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
        "year": new.year,
        "month": new.month,
        "day": new.day,
        "suffix": new.day,
        "day_2": new_other.day,
        "month_2": new_other.month,
    }


def _other_end(end: date, day: int, is_last: bool) -> date | None:
    """Find the other end of "28–3 de marzo": in the same month if possible."""
    month = end.month
    if is_last and day < end.day:
        month += 1
    elif not is_last and day > end.day:
        month -= 1
    return make_date(end.year + (month - 1) // 12, (month - 1) % 12 + 1, day)


def _write(field: Field, fields: tuple[Field, ...], number: int, lang: str) -> str:
    """Write a new number in the form of the old one."""
    if field.kind == "suffix":
        return _suffix(field.text, number)
    if field.kind == "year":
        digits = field.text.lstrip("'’")
        mark = field.text[: len(field.text) - len(digits)]
        if "." in digits:
            return f"{mark}{number // 1000}.{number % 1000:03d}"
        return mark + (f"{number:04d}" if len(digits) == 4 else f"{number % 100:02d}")
    if field.text.isdigit():
        return f"{number:02d}" if _is_padded(field, fields) else str(number)
    if field.text.lower() in MONTH_NAMES:
        # "12-May-18" is the short name, "May 12" the full one.
        after_hyphen = any(f.end + 1 == field.start and f.kind == "day" for f in fields)
        full = SHORT_MONTHS if after_hyphen and len(field.text) == 3 else MONTHS
        return _write_name(field.text, number - 1, full, SHORT_MONTHS, lang)
    return match_case(field.text + field.text, ROMANS[number - 1])


def _is_padded(field: Field, fields: tuple[Field, ...]) -> bool:
    """Check for leading zeros; if two digits (12) do not show it, the other numbers decide."""
    if field.text[0] == "0" or len(field.text) == 1:
        return field.text[0] == "0"
    others = [f.text for f in fields if f.kind in ("day", "month", "day_2") and f is not field]
    return all(text.isdigit() and len(text) == 2 for text in others)


def _suffix(text: str, day: int) -> str:
    if not text.isalpha() or not text.isascii():
        return text if day == 1 else ""
    ends = {1: "st", 2: "nd", 3: "rd"}
    suffix = "th" if day in (11, 12, 13) else ends.get(day % 10, "th")
    return suffix.upper() if text.isupper() else suffix


def _write_name(
    text: str, index: int, full: dict[str, list[str]], short: dict[str, list[str]], lang: str
) -> str:
    """Write the name of a month or weekday in the language, length and case of the old one."""
    languages = sorted(full, key=lambda language: language != lang)
    for language in languages:
        for table in (full, short):
            if fold_alnum(text) in map(fold_alnum, table[language]):
                return match_case(text, table[language][index])
    # Other spellings: sept, setiembre.
    return match_case(text, (full if len(text) > 4 else short)[languages[0]][index])
