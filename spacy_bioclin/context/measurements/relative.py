"""Date what a note dates by itself: "hace 3 días", "ayer", "3 weeks ago"."""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from ...errors import BioclinError
from .measurement import Measurement

_DAYS = {
    "es": {"hoy": 0, "ayer": -1, "anteayer": -2, "antes de ayer": -2},
    "en": {"today": 0, "yesterday": -1, "the day before yesterday": -2, "tomorrow": 1},
}
_WORDS = {
    lang: re.compile(rf"(?i)(?<!\w)(?:{'|'.join(sorted(words, key=len, reverse=True))})(?!\w)")
    for lang, words in _DAYS.items()
}
_AGO_BEFORE = re.compile(r"(?i)(?<!\w)hac(?:e|ía)\s{1,2}$")
_AGO_AFTER = re.compile(r"(?i)\s{1,2}ago(?!\w)")
# "more than a year ago" is before that day.
_OTHER_WAY = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EARLIEST = 1800


def find_relative_dates(
    text: str, found: Sequence[Measurement], lang: str, day: date
) -> list[Measurement]:
    """Find the dates that a text gives relative to its own.

    found (Sequence[Measurement]): The measurements of the text.
    day (date): When the note was written.
    RETURNS (list[Measurement]): Of kind "date", as precise as the text: a day for days and weeks,
        a month for months, a year for years. The durations in them stay measurements too.
    """
    dates = [
        Measurement(
            "date",
            str(day + timedelta(_DAYS[lang][word[0].lower()])),
            None,
            None,
            None,
            *word.span(),
        )
        for word in _WORDS[lang].finditer(text)
        if word[0].lower() in _DAYS[lang]
    ]
    for one in found:
        if one.kind != "duration" or one.high is not None:
            continue
        start, end = one.start_char, one.end_char
        if lang == "es" and (before := _AGO_BEFORE.search(text, max(0, start - 8), start)):
            start = before.start()
        elif lang == "en" and (after := _AGO_AFTER.match(text, end)):
            end = after.end()
        else:
            continue
        value = _go_back(day, one)
        if value is not None:
            sign = _OTHER_WAY.get(one.comparator or "", one.comparator)
            dates.append(Measurement("date", value, None, sign, None, start, end))
    return dates


def _go_back(day: date, ago: Measurement) -> str | None:
    number = ago.value
    if not isinstance(number, float) or not 0 <= number < 200_000:
        return None
    if ago.unit == "h":
        return str(day - timedelta(number // 24)) if number % 24 == 0 else None
    if ago.unit in ("d", "wk"):
        days = number * (7 if ago.unit == "wk" else 1)
        if not days.is_integer() or days > 36_500:
            return None
        return str(day - timedelta(days))
    months = number * {"mo": 1, "a": 12}.get(ago.unit or "", 0)
    if not months or not months.is_integer():
        return None
    year, month = divmod(day.year * 12 + day.month - 1 - int(months), 12)
    if year < _EARLIEST:
        return None
    return f"{year:04}" if ago.unit == "a" and number.is_integer() else f"{year:04}-{month + 1:02}"


def read_note_date(value: object, where: str) -> date | None:
    """Read the date of a note: a `date`, or ISO 8601.

    RAISES (BioclinError): It is neither.
    """
    if value is None:
        return None
    try:
        return value if type(value) is date else date.fromisoformat(str(value)[:10])
    except ValueError:
        raise BioclinError(
            f"{where} is not a date; want a datetime.date, or ISO 8601 such as '2024-03-12'"
        ) from None
