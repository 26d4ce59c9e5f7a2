"""Read the value of a test: number, unit, class or word."""

import re
from typing import NamedTuple

from ..measurement import Measurement
from ..rules.around import find_comparator
from ..rules.find import Finder
from ..rules.numbers import read_digits
from ..rules.reader import Number
from ..rules.trie import words_pattern
from ..rules.units import DOSE_FORMS, TIMES
from .names import Name, Names, load

_END = r"(?![^\W_])"
_ROMAN = r"(?:VI{0,3}|IV|I{1,3})"
_CLASS = re.compile(
    rf"(?:{_ROMAN}[a-eA-E]?\d?(?:\s?[-/]\s?{_ROMAN}[a-eA-E]?)?|\d[a-eA-E]?(?:\s?-\s?\d[a-eA-E]?)?"
    rf"|[A-E]\s?\d{{0,2}}(?![a-zé]))(?![^\W_]|[.,:/]\d|\s?[%/]\s?\d?)"
)
# "Clase funcional III de la NYHA"
_CLASS_BEFORE = re.compile(
    rf"(?i:clase|class|grado|grade)(?:\s(?i:funcional|functional))?\s({_ROMAN}[a-eA-E]?(?:-{_ROMAN})?)"
    r"(?:\s(?i:de\sla|de|of\sthe|of)\s|\s?\()$"
)
_LIST = re.compile(r"(\d{1,2})(?:\s?(?:[-/,]|\sy\s|\se\s|\sand\s)\s?(\d{1,2}))+(?![\d%])")
_SUM = re.compile(r"([1-5])\s?\+\s?([1-5])(?:\s?[=(]\s?(\d{1,2})\)?)?")
_OUT_OF = re.compile(r"\s?(?:/|\sde\s|\sout\sof\s|sobre\s)\s?(\d{1,3})(?![\d/%]|[.,]\d)")
_TITRE = re.compile(
    r"1\s?[/:]\s?(?:8|16|20|32|40|64|80|100|128|160|200|256|320|400|512|640|800|1024|1280|2560|5120)(?!\d)"
)
_FRACTION = re.compile(r"\d{1,3}(?:[.,]\d)?\s?/\s?\d{1,4}(?![\d/])")
_PLUSES = re.compile(
    r"\+{2,4}(?![^\W_]|\+)|[0-4]\+(?![\w+])|(?:\+|(?<!\w)-)(?=[^\S\n]*(?:[,;.)]|\n|$))"
)
_NUMBER_NEXT = re.compile(r"[^\S\n]?[<>-]?\d")
_FROM = re.compile(r"(?i)(?<!\w)(?:from|desde)\s$")  # "from 121 to 128" are two values
_RANGE = re.compile(r"\s?[-–]\s?|\s(?:a|to)\s")
_SIGN = re.compile(r"[<>≤≥~≈][=]?\s{0,2}")
_MINUS = re.compile(r"[-−–+](?=\d)")
_POINTS = re.compile(r"(?i)\s(?:puntos|points|pts)(?!\w)")
_BAD_END = re.compile(r"[^\W\d_]|['´’ºª+]|[/-]\d|:\d|,\d|\.\d|\s?[gG](?!\w)")
_VOLUMES = ("L", "mL", "cm3", "dL")
BARE_UNITS = (
    *_VOLUMES,
    "g",
    "mg",
    "kg",
    "ug",
    "ng",
    "meq",
    "mmol",
    "[IU]",
    "U",
    "[lb_av]",
    "[oz_av]",
)
_LENGTHS = ("m", "cm", "mm", "[in_i]", "[ft_i]")
_COAGULATION = ("s", "ms")
# Greatest values of scores; "2/7" and "1/52" are days and weeks.
_MAXIMA = frozenset(
    map(
        float,
        (3, 4, 5, 6, 8, 10, 14, 15, 18, 20, 21, 24, 25, 27, 28, 30, 36, 42, 56, 60, 63, 100, 126),
    )
)
_SLOWEST = 20  # pulse


class Value(NamedTuple):
    """A value, as in `Result`.

    flag (str | None): A letter that the rules of units would take for one: "128 L".
    """

    kind: str
    value: float | tuple[float, ...] | str
    high: float | None
    comparator: str | None
    unit: str | None
    out_of: float | None
    start: int
    end: int
    flag: str | None = None


class ValueReader:
    """Read the value at a place of a text.

    finder (Finder): Reads numbers and units.
    names (Names): What is known of the names.
    """

    def __init__(self, finder: Finder, names: Names) -> None:
        self._finder, self._names = finder, names
        self._reader = finder.reader
        self._words = [
            (value, re.compile(rf"(?i)(?:{words_pattern(forms.split())}){_END}"))
            for value, forms in load("words")["values"].items()
        ]
        self._powers = re.compile(
            rf"(?i)(?:\s?({finder.reader.units.powers})){_END}(?!\W{{0,3}}\d)"
        )

    def read(self, text: str, at: int, name: Name, floor: int) -> Value | None:
        """Read the value of a test.

        at (int): Where it begins.
        floor (int): No comparator begins before it.
        """
        if name.key in self._names.stages:
            return self._read_class(text, at)
        if name.key in self._names.lists and (found := _LIST.match(text, at)):
            numbers = tuple(float(number) for number in re.findall(r"\d+", found[0]))
            if max(numbers) <= 10:
                return Value("list", numbers, None, None, None, None, at, found.end())
        if name.key == "gleason" and (found := _SUM.match(text, at)):
            total = float(found[1]) + float(found[2])
            return Value("quantity", total, None, None, None, None, at, found.end())
        if name.key in self._names.fractions and (found := _FRACTION.match(text, at)):
            return _text(found[0].replace(" ", ""), at, found.end())
        if (
            name.is_known
            and (found := _TITRE.match(text, at))
            and name.key not in self._names.scored
        ):
            return _text(found[0].replace(" ", ""), at, found.end())
        word = self._read_word(text, at, name)
        return word or self._read_number(text, at, name, floor)

    def read_before(self, text: str, name: Name) -> Value | None:
        """Read a class that is before its name: "Clase funcional III de la NYHA"."""
        if name.key not in self._names.stages:
            return None
        found = _CLASS_BEFORE.search(text, max(0, name.start - 40), name.start)
        return _text(found[1], found.start(1), found.end(1)) if found else None

    def read_reference(self, text: str, at: int) -> tuple[float, int] | None:
        """Read a limit of a reference range, and where it ends."""
        number = self._reader.number(text, at)
        return None if number is None or number.is_word else (number.value, number.end)

    def _read_class(self, text: str, at: int) -> Value | None:
        found = _CLASS.match(text, at)
        if found is None:
            return None
        return _text(re.sub(r"\s", "", found[0]), at, found.end())

    def _read_word(self, text: str, at: int, name: Name) -> Value | None:
        for value, pattern in self._words:
            if (found := pattern.match(text, at)) and not _NUMBER_NEXT.match(text, found.end()):
                return _text(value, at, found.end())
        if name.is_known and (found := _PLUSES.match(text, at)):
            signs = {"+": "positive", "-": "negative"}
            return _text(signs.get(found[0], found[0]), at, found.end())
        return None

    def _read_number(self, text: str, at: int, name: Name, floor: int) -> Value | None:
        place = at
        if (sign := _SIGN.match(text, at)) is not None:
            place = sign.end()
        is_negative = False
        if name.key in self._names.negatives and (minus := _MINUS.match(text, place)):
            place, is_negative = minus.end(), minus[0] != "+"
        number = self._reader.number(text, place)
        if number is None or number.is_word or re.fullmatch(r"0\d+", number.text):
            return None  # "0915" is a time
        if name.key in self._names.pressures or (name.is_entity and not name.is_known):
            if pressure := self._finder.joined.pressure(text, number):
                return _from_pressure(pressure)
            if name.key in self._names.pressures and not 40 <= number.value <= 300:
                return None
        if is_negative:
            number = number._replace(value=-number.value)
        return self._complete(text, at, number, name, floor)

    def _complete(self, text: str, at: int, number: Number, name: Name, floor: int) -> Value | None:
        """Read what follows the number: the second one of a range, a maximum, the unit."""
        high: float | None = None
        last = number
        is_trend = _FROM.search(text[max(0, at - 7) : at]) is not None
        if (join := _RANGE.match(text, number.end)) and not (number.value < 0 or is_trend):
            second = self._reader.number(text, join.end())
            if second and not second.is_word and second.value > number.value:
                high, last = second.value, second
        out_of = None
        unit, end, flag = self._read_unit(text, last, name)
        is_scored = name.key in self._names.scored or not name.is_known
        if unit is None and high is None and (whole := _OUT_OF.match(text, number.end)):
            if not is_scored or float(whole[1]) not in _MAXIMA:
                return None
            out_of = float(whole[1])
            if number.value > out_of:
                return None
            end = whole.end()
        if points := _POINTS.match(text, end):
            end = points.end()
        if unit is None and (power := self._powers.match(text, last.end)):
            unit, end = self._reader.units.read_power(power[1]), power.end()
        is_plain = flag is None and unit is None and out_of is None
        if is_plain and _BAD_END.match(text, last.end):
            return None
        if not self._fits(name, number.value, unit):
            return None
        value = number.value
        if unit and unit.endswith(("/mm3", "/uL")) and "10*" not in unit:
            value = read_digits(number.text, self._finder.lexicon.lang, counts=True) or value
        if name.key in self._names.densities and value >= 1000 and "." in number.text:
            value = float(number.text)
        unit = unit or self._imply_unit(name, value, out_of)
        before = find_comparator(
            text, number.start, max(floor, number.start - 30), self._finder.lexicon
        )
        start = min(before.start, at)
        kind = "quantity" if high is None else "range"
        return Value(kind, value, high, before.sign, unit, out_of, start, end, flag)

    def _read_unit(
        self, text: str, number: Number, name: Name
    ) -> tuple[str | None, int, str | None]:
        """Read the unit after a number, and a flag that looks like one."""
        unit, end = self._reader.unit_of(text, number)
        written = text[number.end : end].strip()
        if written.lower() == "mg" and _NUMBER_NEXT.match(text, end):
            return None, number.end, None  # "k 4.2 mg 1.8"
        is_apart = text[number.end : number.end + 1].isspace()
        if (
            unit in ("L", "h")
            and written in ("L", "H")
            and is_apart
            and name.key not in self._names.amounts
        ):
            return None, number.end, written
        return unit, end, None

    def _fits(self, name: Name, value: float, unit: str | None) -> bool:
        """Check whether a number with a unit can be the value of a test."""
        if unit is not None:
            if (
                unit in ("[Ch]", "T")
                or unit in DOSE_FORMS
                or (unit in TIMES and unit not in _COAGULATION)
            ):
                return False
            if "/kg" in unit and name.key not in self._names.amounts:
                return False  # a dose
            if unit in BARE_UNITS and not name.is_entity and name.key not in self._names.amounts:
                limits = self._names.plausible.get(name.key)
                return unit in ("meq", "mmol") and limits is not None and value <= limits[1]
            if name.key in self._names.temperature:
                return unit in ("Cel", "[degF]")
            return True
        if name.key in self._names.temperature:
            return 30 <= value <= 44 or 86 <= value <= 111
        limits = self._names.plausible.get(name.key)
        return limits is None or limits[0] <= value <= limits[1]

    def _imply_unit(self, name: Name, value: float, out_of: float | None) -> str | None:
        """Give the only unit that a vital sign has; of temperatures the number tells."""
        if out_of is not None:
            return None
        if name.key in self._names.temperature:
            return "Cel" if value <= 44 else "[degF]"
        if name.key in self._names.pressures:
            return "mm[Hg]"
        if name.key == "p" and value < _SLOWEST:
            return None  # phosphorus
        return self._names.implied.get(name.key)


def _text(value: str, start: int, end: int) -> Value:
    return Value("text", value, None, None, None, None, start, end)


def _from_pressure(one: Measurement) -> Value:
    return Value(one.kind, one.value, one.high, None, one.unit, None, one.start_char, one.end_char)


def read_tnm(text: str, name: Name) -> Value:
    """Read a stage such as "pT2 N0 M0", which is its own name."""
    return _text(re.sub(r"\s", "", text[name.start : name.end]), name.start, name.end)
