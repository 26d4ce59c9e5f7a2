"""Find dates in notes, and write them as ISO 8601."""

import re
from typing import NamedTuple

from ....dates import MONTH_NAMES, MONTHS, SHORT_MONTHS, read_dates
from .lexicon import Lexicon
from .numbers import NumberWords
from .trie import words_pattern

_YEAR = r"(?:1[89]\d\d|20\d\d)"
_LONG_YEAR = r"(?:1[89]\d\d|20\d\d|1\.9\d\d|2\.0\d\d)"  # Spanish notes write "2.008"
# What all dates that begin with a digit begin with.
_MAY_BE_DATE = re.compile(r"\d{4}|\d\d?\s?(?:[-/.,]|[^\W\d]|°)|[12]\.\d")
_FIRST_YEAR, _LAST_YEAR = 1850, 2100
_YEARS_BEFORE = re.compile(r"(?<=[^\W\d]\s)(?:(?:1[89]|20)\d\d(?:,|,?\s(?:and|or|y|e|o))\s){1,4}$")
_LAST_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Day(NamedTuple):
    """A date: ISO 8601, and where it is."""

    value: str
    start: int
    end: int


class Dates:
    """The patterns of a language for dates.

    names (list[str]): The names of months, in lower case.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lang = lexicon.lang
        self._lexicon = lexicon
        self._numbers: NumberWords = lexicon.numbers
        names = MONTHS[self._lang] + SHORT_MONTHS[self._lang]
        names += lexicon.data["month_names"].split()
        month = rf"(?P<month>{words_pattern(name.lower() for name in names)})(?![^\W_])"
        self.names = [name.lower() for name in names]
        ofs = words_pattern(lexicon.words("date_joins"))
        of = rf"(?:\s?[-/.,]\s?|\s(?:{ofs}\s)?)"
        year = rf"(?P<year>{_LONG_YEAR if self._lang == 'es' else _YEAR})(?![\d])"
        short = r"(?P<short>['’]?\d\d)(?!\d|[.,]\d|\s?%)"
        suffix = rf"(?:\s?(?:{words_pattern(lexicon.words('day_suffixes'))}))?"
        centuries = lexicon.words("centuries")
        after = words_pattern(lexicon.words("century_joins"))
        number = rf"(?:\s(?:{after}\s)?(?:{self._numbers.pattern}))?"
        words = rf"(?P<words>(?:{words_pattern(centuries)})\b{number})"
        words_year = rf"|,?\s(?:{ofs}\s)?{words}" if centuries else ""
        self._day_month = re.compile(
            rf"(?i)(?P<day>\d\d?){suffix}{of}{month}(?:\.?(?:,\s|{of}){year}|\s?[-/]\s?{short})"
        )
        self._month_day = re.compile(
            rf"(?i){month}\.?\s(?:{words_pattern(lexicon.words('day_articles'))}\s)?(?P<day>\d\d?){suffix}(?![\d:]|[.,/]\d)(?:,\s?|\s|,?\s{ofs}\s){year}"
        )
        self._month_year = re.compile(
            rf"(?i){month}\.?(?:(?:,?{of}){year}|[-/'’]{short}{words_year})"
        )
        self._numeric = re.compile(
            rf"(?P<a>\d\d?)\s?(?P<mark>[/.-])\s?(?P<b>\d\d?)\s?(?P=mark)\s?(?P<year>{_YEAR}|{_LONG_YEAR}|\d\d)(?!\d|[/:-]\d|[.,]\d)"
        )
        self._iso = re.compile(rf"{_YEAR}(?P<mark>[/.-])\d\d?(?P=mark)\d\d?(?!\d)")
        self._month_number = re.compile(
            rf"(?P<month>\d\d?)\s?[/-]\s?(?P<year>{_YEAR})(?!\d|[/-]\d)"
        )
        self._roman = re.compile(
            rf"(?P<day>\d\d?)\s?[-/.]\s?(?P<month>I{{1,3}}|I?[VX]|VI{{1,3}}|XI{{1,2}})\s?[-/.]\s?(?P<year>{_YEAR}|\d\d)(?!\d)"
        )
        self._year = re.compile(
            rf"{_LONG_YEAR if self._lang == 'es' else _YEAR}(?![\d/º%-]|[.,]\d|\s?[-–]\s?\d)"
        )
        self._years = lexicon.words("year_before")
        self._before_counts = lexicon.words("count_before")
        # A word in the plural: what is counted.
        self._counted = re.compile(r"\s[^\W\d_]{4,}s(?![^\W\d_])")

    def match_digits(self, text: str, at: int) -> Day | None:
        """Match a date that begins with a digit."""
        if at > 1 and text[at - 1] in "-/" and text[at - 2].isdigit():
            return None
        if not _MAY_BE_DATE.match(text, at):
            return None
        for pattern in (self._iso, self._numeric, self._day_month, self._month_number, self._roman):
            if (found := pattern.match(text, at)) and (value := self._read(found)):
                return Day(value, at, found.end())
        return self._match_year(text, at)

    def match_month(self, text: str, at: int) -> Day | None:
        """Match a date that begins with the name of a month."""
        for pattern in (self._month_year, self._month_day):
            found = pattern.match(text, at)
            if found and (value := self._read(found)):
                return Day(value, at, found.end())
        return None

    def _read(self, found: re.Match[str]) -> str | None:
        groups = found.groupdict()
        if words := groups.get("words"):
            number = self._numbers.read(words)
            return write_date(int(number or 0), MONTH_NAMES[groups["month"].lower()], None)
        text = re.sub(r"(?<=\d)\.(?=\d{3}$)", "", found[0])  # "2.008"
        text = re.sub(r"\s?([/.-])\s?", r"\1", text)
        parsed = read_dates(text, self._lang)
        if parsed is None or len(parsed[0]) != 1:
            return None
        year, month, day, _ = parsed[0][0]
        return write_date(year, month, day)

    def _match_year(self, text: str, at: int) -> Day | None:
        """Match a year after a preposition."""
        found = self._year.match(text, at)
        if found is None:
            return None
        window = text[max(0, at - 40) : at].lower()
        if listed := _YEARS_BEFORE.search(window):  # "in 1987, 1990 and 2005"
            window = window[: listed.start()]
        before = re.search(r"([^\W\d_]+)\s+$", window)
        if before is None or before[1] not in self._years:
            return None
        after = text[found.end() : found.end() + 24]
        is_weak = before[1] in self._before_counts
        if is_weak and ("." in found[0] or self._counted.match(after)):
            return None  # "of 2000 patients"
        return Day(found[0].replace(".", ""), at, found.end())


def write_date(year: int | None, month: int | None, day: int | None) -> str | None:
    """Write a date as ISO 8601.

    RETURNS (str | None): None if there is no such date, or no year.
    """
    if year is None or not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    if month is not None and not 1 <= month <= 12:
        return None
    if day is not None and (month is None or not 1 <= day <= _LAST_DAYS[month - 1]):
        return None
    return "-".join([f"{year:04}", *(f"{part:02}" for part in (month, day) if part is not None)])
