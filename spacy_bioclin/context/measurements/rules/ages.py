"""Tell ages from durations: both are a number and a unit of time."""

import re

from .around import words_before
from .lexicon import Lexicon
from .trie import words_pattern
from .units import Units

# What is before an age without a unit; the age begins with what is inside.
_NAMES = {
    "en": r"(?i)\b(?:(?P<inside>aged\s)|ages?(?:\s(?:of|was|is|at|in years))?[\s:=(]{1,3})$",
    "es": r"(?i)\b(?:(?P<inside>(?!))|edad(?:\s(?:de|era|es|media))?|años cumplidos:)[\s:=(]{1,3}$",
}
_ADULT, _CHILD, _OLDEST = 15, 12, 110


class Ages:
    """The words of a language around ages.

    tail (re.Pattern[str]): What belongs to an age after its number: "-year-old", " y/o".
    """

    def __init__(self, lexicon: Lexicon, units: Units) -> None:
        self._lang = lexicon.lang
        self._persons = lexicon.words("persons")
        self._young = lexicon.words("young")
        self._not_ages = lexicon.words("not_ages")
        self._names = lexicon.words("age_names")
        time = f"(?P<unit>{units.time_pattern}|(?:yr?|y)(?![^\\W_]))"
        if self._lang == "en":
            self.tail = re.compile(
                rf"(?i)[\s-]?{time}(?:(?:[\s-]{{0,2}}old)(?![^\W_])|\sof\sage(?![^\W_]))"
                r"|[\s-]?(?P<year>y[/.\s]{0,2}o(?:\.(?=\s?[a-z,;)]))?(?![^\W_])|yr\s?old|[-\s]?yo)(?![^\W_])"
            )
        else:
            self.tail = re.compile(
                rf"(?i)\s?{time}\s(?:{words_pattern(lexicon.data['old_after'].split())})(?![^\W_])"
                r"|\s?(?P<year>a)\.?\sde\sedad(?![^\W_])"
            )
        persons = words_pattern(lexicon.data["person_after"].split())
        self._before_person = re.compile(rf"(?i)\s(?:{persons})(?![^\W_])")
        self._name = re.compile(_NAMES[self._lang])
        after = words_pattern(lexicon.data["not_old_after"].split())
        self._not_after = re.compile(rf"(?i)[\s,]\s?(?:{after})(?![^\W_])")

    def is_age(self, text: str, start: int, end: int, unit: str, value: float) -> bool:
        """Check whether a time is somebody's age by the words around it."""
        if value > _OLDEST or unit not in ("a", "mo", "wk", "d", "h"):
            return False
        if self._not_after.match(text, end):
            return False
        words = words_before(text, start)
        if self._lang == "en":
            if words and words[0] in ("aged", "age", "ages"):
                return True
            is_before = unit in ("a", "mo") and self._before_person.match(text, end) is not None
            return is_before and not self._not_ages & set(words[:3])
        return self._is_spanish_age(text, start, words, unit, value)

    def _is_spanish_age(
        self, text: str, start: int, words: list[str], unit: str, value: float
    ) -> bool:
        first, second, third = (*words[:3], "", "", "")[:3]
        if "edad" in words[:4] and first not in self._not_ages - {"media"}:
            return True
        if first == "los" and second in ("a", "desde", "hasta", "de", "entre", "sobre"):
            return unit == "a" and value >= _CHILD
        if first in self._not_ages or (first in ("de", "los", "y") and second in self._not_ages):
            return False
        if unit == "a":
            if first in ("con", "tenía", "tiene", "cumplir", "cumplidos", "teniendo"):
                return value >= _ADULT
            near = words[:14]
            person = next((i for i, word in enumerate(near) if word in self._persons), None)
            if person is not None and not (self._not_ages & set(near[: min(person, 3)])):
                return first == "de" or person <= 4 or _follows_comma(text, start)
            if first == "de":
                return value >= 30 and second not in self._not_ages and third not in self._not_ages
            is_apart = not words or text[max(0, start - 3) : start].rstrip().endswith(("//", "|"))
            return is_apart and value >= _ADULT
        young = next((i for i, word in enumerate(words[:5]) if word in self._young), None)
        return young is not None and first in ("de", *self._young, "con")

    def read_name(self, text: str, start: int) -> int | None:
        """Check whether a number without a unit is an age: "Edad: 65", "aged 40".

        RETURNS (int | None): Where the age starts, None if it is not one.
        """
        window = text[max(0, start - 30) : start]
        if found := self._name.search(window):
            return start - len(window) + found.start() if found["inside"] else start
        return None


def _follows_comma(text: str, start: int) -> bool:
    return text[max(0, start - 3) : start].rstrip()[-1:] in (",", ":", "(", ";", "-", ".")
