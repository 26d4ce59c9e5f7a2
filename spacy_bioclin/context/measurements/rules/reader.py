"""Read the number at a place of a text, and the unit after it."""

import re
from typing import NamedTuple

from .ages import Ages
from .around import find_name, words_before
from .lexicon import Lexicon
from .numbers import APOSTROPHE, DIGITS, FRACTION, read_digits
from .trie import words_pattern
from .units import Units

_HALF = re.compile(r"(?i)half\san?|an?\shalf(?:\san?)?|medi[oa]")
_BEFORE_ARTICLE = re.compile(
    r"(?i)\b(?:for|about|over|within|after|in|approximately|least|than|nearly|almost|lasted|lasting"
    r"|last|past|takes?|took|of|until|around)\s$"
)
_AFTER_ARTICLE = re.compile(r"(?i)\s\w+\s(?:ago|later|prior|before|earlier|history|after)\b")
_SPANISH_YEARS = re.compile(r"\s?a(?=[.)])|a(?!\w)")  # "65 a.", "65a"
_DAY_OF_HOURS = re.compile(
    r"(?i)\s?(?:/|en|in|per|por)\s?(?:las\s)?24\s?(?:h|hs|hrs?|horas|hours)(?![^\W_])"
)
# "2 units of blood" are counted, not measured.
_BLOOD = re.compile(
    r"(?i)\s(?:de|of)\s(?:packed|concentrados?|hemat|sangre|plasma|plaquet|blood|prbc|red|ffp|fresh"
    r"|platelet|cryo|ch\b|cp\b|glóbulos)"
)
_NUMBER = re.compile(r"\s{1,2}\d")
_COLDEST, _HOTTEST = 34, 43  # of a body, in degrees Celsius
_COLDEST_FAHRENHEIT = 93
_FIELDS_OF_MAGNETS = (0.5, 1.0, 1.5, 3.0, 7.0)
_PULSES = frozenset(["fc", "hr", "cardiaca", "cardíaca", "pulso", "pulse"])
_RATES = frozenset(["fr", "hr"])  # respiratory and heart rate, not French and hours
_NAMED = re.compile(r"\s?[:=]?\s{0,2}\d")
_MOST_OXYGEN = 15  # litres a minute; a pulse is faster
_NEGATIVE = ("[diop]", "mmol/L", "Cel", "meq/L", None)


class Number(NamedTuple):
    """A number of the text: its value, and its offsets."""

    value: float
    start: int
    end: int
    text: str
    is_word: bool


class Reader:
    """Read numbers and units of a language.

    lexicon (Lexicon): Its words.
    units (Units): The units.
    ages (Ages): What tells ages from durations.
    """

    def __init__(self, lexicon: Lexicon, units: Units, ages: Ages) -> None:
        self.lexicon, self.units, self.ages = lexicon, units, ages
        self.half = re.compile(rf"(?i)\s(?:{words_pattern(lexicon.data['halves'].split())})(?!\w)")
        self._digits = re.compile(f"(?i){FRACTION}|{DIGITS}")
        self._words = re.compile(f"(?i){lexicon.numbers.pattern}")
        hyphen = r"-(?=[a-z]{2}|h\b)|" if lexicon.lang == "en" else ""
        self._blank = re.compile(rf"(?i){hyphen}[^\S\r\n]{{0,2}}")
        self._in_24_hours = lexicon.words("in_24_hours")
        self._catheters = lexicon.words("catheters")
        self._visits = lexicon.words("visits")
        self._angles, self._fevers = lexicon.words("angles"), lexicon.words("fevers")

    def number(self, text: str, at: int) -> Number | None:
        """Read the number at a place, in digits or in words."""
        if found := self._digits.match(text, at):
            if self.lexicon.lang == "en" and APOSTROPHE.search(found[0]):
                return None  # 5'10" are feet and inches
            value = read_digits(found[0], self.lexicon.lang)
            return None if value is None else Number(value, at, found.end(), found[0], False)
        if found := self._words.match(text, at):
            value = self.lexicon.numbers.read(found[0])
            return None if value is None else Number(value, at, found.end(), found[0], True)
        return None

    def with_half(self, text: str, number: Number) -> Number:
        """Add the half of "two and a half weeks"; Spanish has it after the unit."""
        if self.lexicon.lang == "en" and (half := self.half.match(text, number.end)):
            return number._replace(value=number.value + 0.5, end=half.end())
        return number

    def article(self, text: str, at: int) -> Number | None:
        """Read "a" in "for a week", "a month ago", "half" in "half an hour", "media hora"."""
        if found := _HALF.match(text, at):
            return Number(0.5, at, found.end(), found[0], True)
        end = at + 1 if text[at + 1 : at + 2].isspace() else at + 2
        before = _BEFORE_ARTICLE.search(text, max(0, at - 16), at)
        after = _AFTER_ARTICLE.match(text, end)
        return Number(1.0, at, end, text[at:end], True) if before or after else None

    def unit_at(self, text: str, at: int) -> tuple[str | None, int]:
        """Read the unit at a place: its UCUM code, and where it ends."""
        blank = self._blank.match(text, at)
        found = self.units.pattern.match(text, blank.end()) if blank else None
        return (self.units.read(found[0]), found.end()) if found else (None, at)

    def unit_of(self, text: str, number: Number) -> tuple[str | None, int]:
        """Read the unit after a number, if it can be one of that number."""
        unit, end = self.unit_at(text, number.end)
        if unit is None:
            years = _SPANISH_YEARS.match(text, number.end) if self.lexicon.lang == "es" else None
            if years and self.ages.is_age(text, number.start, years.end(), "a", number.value):
                return "a", years.end()
            return None, number.end
        written = text[number.end : end]
        is_isotope = unit == "h" and text[number.start - 1 : number.start] == "["  # "[3H]"
        if is_isotope or not _fits(written, unit, number):
            return None, number.end
        if self._is_next_name(text, number, end):
            return None, number.end
        if unit == "cL" and (written.strip() == "Cl" or _NUMBER.match(text, end)):
            return None, number.end  # the chloride of "K 4.5 Cl 100"
        if unit == "m" and written.strip().lower() == "m" and number.value.is_integer():
            words = set(words_before(text, number.start, 32)[:4])
            return ("mo" if words & self._visits else unit), end  # "control en 1m"
        if unit == "U" and _BLOOD.match(text, end):
            return None, number.end
        if unit in ("deg", "Cel") and not any(
            char.isalpha() and char not in "ºª" for char in written
        ):
            return self._degrees(text, number, end)
        if unit == "deg":
            return self._spelled_degrees(text, number), end
        if unit == "s" and number.is_word and number.value == 1 and self.lexicon.lang == "es":
            return None, number.end  # "un segundo ciclo"
        if unit == "/min" and written.strip().lower() == "lpm" and number.value <= _MOST_OXYGEN:
            return "L/min", end
        if (
            unit == "L/min"
            and number.value > _MOST_OXYGEN
            and set(words_before(text, number.start, 24)[:3]) & _PULSES
        ):
            return "/min", end  # "FC 89 l/min"
        if unit in ("[Ch]", "[degF]") and written.strip().upper() == "F":
            if number.value >= 90:
                return "[degF]", end
            after = re.findall(r"[^\W\d_]+", text[end : end + 45].lower())[:5]
            is_size = self._catheters.intersection([*words_before(text, number.start)[:8], *after])
            return ("[Ch]", end) if is_size else (None, number.end)  # "45F with cough" is a woman
        if (day := _DAY_OF_HOURS.match(text, end)) and "/" not in unit:
            words = {unit.lower(), *words_before(text, number.start)[:8]}
            if words & self._in_24_hours:
                return f"{unit}/(24.h)", day.end()
        return unit, end

    def _is_next_name(self, text: str, number: Number, end: int) -> bool:
        """Check whether a unit is the name of the next test: "FC 102 FR 22", "K 4.2 Mg 1.8"."""
        written = text[number.end : end]
        name = written.strip()
        if written == name or not name.isalpha() or name.lower() not in self.lexicon.names:
            return False
        if self._catheters.intersection(words_before(text, number.start)[:8]):
            return False
        follows = find_name(text, number.start, self.lexicon) is not None
        if name.lower() in _RATES:
            return follows or _NAMED.match(text, end) is not None
        return follows and not name.islower() and _NAMED.match(text, end) is not None

    def _degrees(self, text: str, number: Number, end: int) -> tuple[str | None, int]:
        """Tell degrees of temperature, of an angle, and ordinals ("2º") by the words before."""
        words = set(words_before(text, number.start)[:10])
        if words & self._angles:
            return "deg", end
        is_warm = _COLDEST <= number.value <= _HOTTEST
        if is_warm and (words & self._fevers or not number.value.is_integer()):
            return "Cel", end
        if "°" in text[number.end : end] and number.value >= 10:
            return "deg", end
        return None, number.end

    def _spelled_degrees(self, text: str, number: Number) -> str:
        """Tell "38 grados" of a temperature from those of an angle by the words before."""
        words = set(words_before(text, number.start)[:10])
        if words & self._angles or not words & self._fevers:
            return "deg"
        if _COLDEST <= number.value <= _HOTTEST:
            return "Cel"
        return "[degF]" if number.value >= _COLDEST_FAHRENHEIT else "deg"

    def signed_start(self, text: str, start: int, unit: str | None) -> int:
        """Go back to the minus sign of a number whose unit has negative values."""
        if unit not in _NEGATIVE or start == 0 or text[start - 1] not in "-−–":
            return start
        return start - 1 if start == 1 or text[start - 2] in " (:=\n" else start


def _fits(written: str, unit: str, number: Number) -> bool:
    """Check whether a unit of one letter can belong to its number: not "2D", "1990s", "60s"."""
    letter = written.strip(" -")
    if unit == "[Ch]" and letter.lower() == "ch":
        return number.value >= 5  # "2 CH" are units of blood
    if len(letter) != 1 or not letter.isalpha() or letter in "ºª":
        return True
    is_attached = written == letter
    if unit == "s":
        return not (is_attached and number.value % 10 == 0)
    if unit == "[diop]":
        return not number.text.isdigit()  # "-3,00 D", not "4 D"
    if unit == "[Ch]" or unit == "[degF]":
        return number.value >= 4
    if unit == "T":
        return number.value in _FIELDS_OF_MAGNETS
    if unit == "Cel":
        return _COLDEST - 4 <= number.value <= _HOTTEST + 2
    return not number.is_word
