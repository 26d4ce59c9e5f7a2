"""Read numbers without a unit: after the name of a test, a sign or a score, or of an age."""

import re

from ..measurement import Measurement
from .around import find_comparator, find_name, words_before
from .joined import NORMAL, Joined
from .reader import Number, Reader

# "3/7" is three days, "2/52" two weeks, "3/12" three months.
_WEEKS = re.compile(r"(?P<value>\d{1,2})/(?P<part>7|52|12)(?![\d/]|[.,]\d)")
_AFTER_WEEKS = re.compile(r"(?i)\s(?:hx|history|course|of|ago|h/o|\w{1,9}\spain)\b")
_BEFORE_WEEKS = re.compile(r"(?i)(?:for|last|past|x|over|review|in)\s$")
_PARTS = {"7": "d", "52": "wk", "12": "mo"}
_NOT_AFTER = re.compile(r"\w|\s?\+|['´’]|[/-]\d{1,2}[/-]\d")
_OUT_OF = re.compile(r"\s?/\s?\d{1,3}(?![\d/]|[.,]\d)")
_OUT_OF_10 = re.compile(r"/10(?!\d)")
PAIN = frozenset(["pain", "dolor", "eva", "vas", "pains", "severity"])
# "HR 1.4" is a hazard ratio, "CK 7" a cytokeratin.
_LEAST = {
    **dict.fromkeys(["fiebre", "febrícula", "fever"], 36),
    **dict.fromkeys(["hr", "fc", "p", "pulse", "pulso", "heart rate"], 20),
    "ck": 21,
}
_OLDEST = 110


class Bare:
    """Read numbers without a unit.

    reader (Reader): What reads a number.
    joined (Joined): What reads a list of numbers.
    """

    def __init__(self, reader: Reader, joined: Joined) -> None:
        self._reader, self._joined = reader, joined
        self._lexicon = reader.lexicon
        # Not the potassium of "Na 138 K 4.2".
        self._thousands = re.compile(
            rf"(?i)(?:\s(?!k\W{{0,3}}\d))?({reader.units.powers})(?![^\W_])"
        )

    def read(self, text: str, number: Number, floor: int) -> Measurement | int:
        """Read a number without a unit.

        RETURNS (Measurement | int): The measurement, or where to go on if it is none.
        """
        if number.is_word:
            return number.end
        if shared := self._joined.shared(text, number, floor):
            return shared
        if self._lexicon.lang == "en" and (weeks := self._weeks(text, number.start)):
            return weeks
        thousands = self._thousands.match(text, number.end)
        if not thousands and _NOT_AFTER.match(text, number.end):
            return number.end
        sign = self._reader.signed_start(text, number.start, None)
        before = find_comparator(text, sign, floor, self._lexicon)
        age = self._reader.ages.read_name(text, before.start)
        if age is not None and number.value <= _OLDEST:
            return Measurement("age", number.value, None, before.sign, "a", age, number.end)
        name = self._name(text, number, before.start, before.sign)
        if name is None or number.value < _LEAST.get(name, 0):
            return number.end
        end = number.end
        unit = None
        if thousands:
            unit, end = self._reader.units.read_power(thousands[1]), thousands.end()
        if (whole := _OUT_OF.match(text, end)) and "/" not in name:
            if name not in self._lexicon.scores | PAIN:
                has_unit = self._reader.unit_at(text, whole.end())[0] is not None
                return end if has_unit else whole.end()
            end = whole.end()
        value = -number.value if sign < number.start else number.value
        return Measurement("quantity", value, None, before.sign, unit, before.start, end)

    def _name(self, text: str, number: Number, start: int, sign: str | None) -> str | None:
        """Find what the number is of."""
        if name := find_name(text, start, self._lexicon):
            return name
        if number.value <= 10 and _OUT_OF_10.match(text, number.end):
            return next((word for word in words_before(text, start)[:9] if word in PAIN), None)
        if sign is None:
            return None
        words = words_before(text, start)
        return "normal" if words and words[0] in NORMAL else None

    def _weeks(self, text: str, start: int) -> Measurement | None:
        """Read the fractions by which British notes write days, weeks and months."""
        found = _WEEKS.match(text, start)
        if found is None:
            return None
        after = _AFTER_WEEKS.match(text, found.end())
        if not after and not _BEFORE_WEEKS.search(text, max(0, start - 6), start):
            return None
        unit = _PARTS[found["part"]]
        return Measurement("duration", float(found["value"]), None, None, unit, *found.span())
