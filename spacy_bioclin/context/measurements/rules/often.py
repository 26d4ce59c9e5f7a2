"""Find how often something is done: "cada 8 horas", "3 veces al día", "bid"."""

import re
from typing import NamedTuple

from .lexicon import Lexicon, squeeze
from .numbers import DIGITS, read_digits
from .trie import words_pattern
from .units import Units

# "cada 8 horas" is 3 times a day, "cada 30 minutos" twice an hour.
_LARGER = {"s": ("min", 60.0), "min": ("h", 60.0), "h": ("d", 24.0)}
# 1-0-1: morning, noon, night
_SCHEDULE = (
    r"(?P<schedule>(?:[0-4](?:[.,]5)?|1/2)(?:\s?-\s?(?:[0-4](?:[.,]5)?|1/2)){2,3})"
    r"(?![\d/]|[-.,]\d)"
)
# What "3 times", "2-3 veces", "1-0-1" and "once daily" begin with.
_MAY_BE_TIMES = re.compile(r"[^\W\d]|[\d.,½¼¾⅓⅔]{1,9}\s?[-–/\w]|\d{1,3}[\s'´’`\d.,]")
_LATIN_HOURS = (
    r"q\.?\s?(?P<hours>\d{1,2})(?:\s?-\s?(?P<more_hours>\d{1,2}))?\s?"
    r"(?P<latin_time>h(?:rs?|ours?)?|d(?:ays?)?|w(?:ee)?ks?|min(?:utes)?)(?![^\W_])"
)


class Often(NamedTuple):
    """How often: times in one unit of time, and where."""

    value: float
    high: float | None
    unit: str
    start: int
    end: int


class Frequencies:
    """The patterns of a language for frequencies.

    words (list[str]): Words that can begin a frequency.
    """

    def __init__(self, lexicon: Lexicon, units: Units) -> None:
        self._lexicon, self._units = lexicon, units
        data = lexicon.data
        number = f"(?:{DIGITS}|{lexicon.numbers.pattern})"
        time = f"(?P<time>{units.time_pattern})"
        several = (
            rf"(?P<low>{number})(?:(?:\s?[-–/]\s?|\s(?:{'|'.join(data['range_joins'].split())})\s)"
            rf"(?P<high>{number}))?"
        )
        every = f"(?:{words_pattern(data['every'].split())})"
        other = r"(?P<other>other\s)?" if lexicon.lang == "en" else "(?P<other>(?!))?"
        each = "|".join(data["each_words"].split())
        self._every = re.compile(
            rf"(?i)(?:{every}|/)\s?{other}(?:(?:{several}[\s-]?)?{time}|(?P<each>{each})\b)"
        )
        per = words_pattern(data["per_time"].split())
        adverbs = {form: unit for unit, forms in data["adverbs"].items() for form in forms.split()}
        self._adverb_units = {squeeze(form): unit for form, unit in adverbs.items()}
        adverb = words_pattern(adverbs)
        counts = ["once", "twice", "thrice"] if lexicon.lang == "en" else []
        self.words = [*data["starts"].split(), *adverbs, *counts]
        self.adverbs = rf"(?:{adverb})(?![^\W_])"
        self._adverb = re.compile(f"(?i)(?P<adverb>{self.adverbs})")
        times = words_pattern(data["times"].split())
        once = r"(?P<once>once|twice|thrice)|" if lexicon.lang == "en" else ""
        self._times = re.compile(
            rf"(?i)(?:{once}{several}\s?-?(?:{times}))\s?"
            rf"(?:(?:/\s?|(?:{per})\s){time}|(?P<adverb>{self.adverbs}))"
        )
        self._daily = re.compile(
            rf"(?i)(?P<low>\d)(?:\s?[-–]\s?(?P<high>\d))?(?:\s?/\s?|\s(?:{per})\s)"
            r"(?:d[ií]a|day)(?![^\W_])"
        )
        self._schedule = re.compile(_SCHEDULE)
        self._latin = re.compile(f"(?i){_LATIN_HOURS}")

    def match_times(self, text: str, at: int) -> Often | None:
        """Match "3 veces al día", "twice daily", "1-0-1" at a place."""
        if not _MAY_BE_TIMES.match(text, at):
            return None
        if found := self._times.match(text, at):
            low, high = self._read_range(found)
            unit = self._unit(found)
            if low is None or unit is None:
                return None
            return Often(low, high, unit, at, found.end())
        if (found := self._daily.match(text, at)) and (n_times := float(found["low"])):
            high = float(found["high"]) if found["high"] else None
            return Often(n_times, high, "d", at, found.end())
        if (found := self._schedule.match(text, at)) and _is_schedule(text, at):
            parts = found[0].replace(" ", "").split("-")
            if n_times := sum(part != "0" for part in parts):
                return Often(float(n_times), None, "d", at, found.end())
        return None

    def match_every(self, text: str, at: int) -> Often | None:
        """Match "cada 8 horas", "/8 h", "q8h", "bid" at a place."""
        if found := self._latin.match(text, at):
            unit = {"h": "h", "d": "d", "w": "wk", "m": "min"}[found["latin_time"][0].lower()]
            hours, more = float(found["hours"]), found["more_hours"]
            return _invert(hours, float(more) if more else None, unit, at, found.end())
        if found := self._adverb.match(text, at):
            return self._match_adverb(text, found)
        if found := self._every.match(text, at):
            if found["each"]:
                return Often(1.0, None, "d", at, found.end())
            time = self._units.read(found["time"])
            low, high = self._read_range(found) if found["low"] else (1.0, None)
            if time is None or not low or (time == "s" and text[at] == "/"):
                return None  # "90s/60s" are no seconds
            return _invert(low * (2 if found["other"] else 1), high, time, at, found.end())
        return None

    def _match_adverb(self, text: str, found: re.Match[str]) -> Often | None:
        code = self._adverb_units[squeeze(found[0])]
        before = re.search(r"([^\W\d_]+)\s+$", text[max(0, found.start() - 25) : found.start()])
        if before and before[1].lower() in self._lexicon.words("not_adverbs"):
            return None
        after = text[found.end() : found.end() + 14].lower()
        if re.match(r"\s(?:living|activit|life|routine|basis|lives)", after):
            return None
        share, _, unit = code.rpartition("/")
        value = {"": 1.0, "1": 1.0}.get(share) or float(share)
        if unit == "2d":
            value, unit = 0.5, "d"
        return Often(value, None, unit, found.start(), found.end())

    def _read_range(self, found: re.Match[str]) -> tuple[float | None, float | None]:
        groups = found.groupdict()
        if once := groups.get("once"):
            return {"once": 1.0, "twice": 2.0, "thrice": 3.0}[once.lower()], None
        return self._read(groups["low"]), self._read(groups["high"])

    def _read(self, text: str | None) -> float | None:
        if text is None:
            return None
        if text[0].isalpha():
            return self._lexicon.numbers.read(text)
        return read_digits(text, self._lexicon.lang)

    def _unit(self, found: re.Match[str]) -> str | None:
        if found["adverb"]:
            unit = self._adverb_units[squeeze(found["adverb"])]
            return unit.rpartition("/")[2]
        return self._units.read(found["time"])


def _invert(low: float, high: float | None, unit: str, start: int, end: int) -> Often | None:
    """Turn an interval ("every 8 hours") into how many times a larger unit (3 a day)."""
    if not low or high == 0:
        return None
    unit, factor = _LARGER.get(unit, (unit, 1.0))
    if high is not None:
        return Often(round(factor / high, 4), round(factor / low, 4), unit, start, end)
    return Often(round(factor / low, 4), None, unit, start, end)


def _is_schedule(text: str, at: int) -> bool:
    return not (at and (text[at - 1].isalnum() or text[at - 1] in "-/.,"))
