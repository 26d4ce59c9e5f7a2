"""Read numbers as notes write them: digits with the marks of a language, fractions and words."""

import re
from collections.abc import Mapping

from .trie import words_pattern

FRACTIONS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
_SHARES = "[" + "".join(FRACTIONS) + "]"
_APOSTROPHE = "['´’`]"
# No digits, and no part of a longer number, may follow.
_END = r"(?!\d|[.,:]\d)"
DIGITS = (
    rf"(?:\d{{1,3}}(?:[.,\u00a0\u2009\u202f]\d{{3}}){{1,4}}(?:[.,]\d{{1,4}})?{_END}"
    rf"|\d{{1,3}}(?:\s000){{1,2}}{_END}"
    rf"|\d{{1,9}}(?:[.,·]\d{{1,6}}{_END}|\s?{_APOSTROPHE}\s?\d{{1,2}}(?!\d)|{_END})"
    rf"|[.,]\d{{1,4}}{_END})"
)
SIMPLE_FRACTION = rf"(?:1/[234]|2/3|3/4|{_SHARES})(?!\d|[./,]\d)"
FRACTION = rf"(?:(?:\d{{1,2}}(?:\s|-|\sy\s|\sand\s))?{SIMPLE_FRACTION}|\d{{1,2}}{_SHARES})"
APOSTROPHE = re.compile(_APOSTROPHE)
_GROUPED = re.compile(r"\d{1,3}(?:[.,\s]\d{3})+(?:[.,]\d+)?")


def read_digits(text: str, lang: str, *, counts: bool = False) -> float | None:
    """Read a number in digits.

    text (str): What `DIGITS` or `FRACTION` matched.
    lang (str): "1.200" is 1200 in "es", "1,200" is 1200 in "en".
    counts (bool): The unit counts cells in a volume: three digits after any mark are thousands.
    RETURNS (float | None): None if it is not a number.
    """
    if text.isdigit():
        return float(text)
    if any(share in text for share in FRACTIONS) or "/" in text:
        return _read_fraction(text)
    text = re.sub(rf"\s?{_APOSTROPHE}\s?|·", ".", text)
    text = re.sub(r"\s", "", text) if not _GROUPED.fullmatch(text) else re.sub(r"\s", ".", text)
    marks = re.findall(r"[.,]", text)
    if not marks:
        return float(text)
    thousands = {"es": ".", "en": ","}.get(lang, ",")
    parts = re.split(r"[.,]", text)
    in_groups = all(len(part) == 3 for part in parts[1:]) and 0 < len(parts[0]) <= 3
    grouped = (
        in_groups
        and parts[0] != "0"
        and (len(marks) > 1 or marks[0] == thousands or counts or parts[1] == "000")
    )
    if grouped and len(set(marks)) == 1:
        return float("".join(parts))
    if len(marks) > 1 and len(set(marks[:-1])) == 1 and marks[-1] != marks[0]:
        return float("".join(parts[:-1]) + "." + parts[-1])
    return float(text.replace(",", ".")) if len(marks) == 1 else None


def _read_fraction(text: str) -> float | None:
    total = 0.0
    for part in re.split(r"\s*(?:\by\b|\band\b)\s*|[\s-]+", text):
        digits = part.rstrip("".join(FRACTIONS))
        if digits and "/" in digits:
            above, _, below = digits.partition("/")
            total += int(above) / int(below)
        elif digits:
            total += int(digits)
        total += sum(FRACTIONS[share] for share in part[len(digits) :])
    return total


class NumberWords:
    """The numbers of a language in words, up to some thousands.

    words (Mapping[int, str]): Value -> words, blanks apart.
    join (str): The word between tens and units.
    """

    def __init__(self, words: Mapping[int, str], join: str) -> None:
        self.values = {word: value for value, each in words.items() for word in each.split()}
        self._join = join
        one = words_pattern(self.values)
        self.pattern = rf"(?:(?:{one})\b(?:(?:\s|-|\s{join}\s)(?:{one})\b){{0,5}})"

    def read(self, text: str) -> float | None:
        """Read a number in words: "treinta y cinco", "two thousand and eight".

        RETURNS (float | None): None if the words in a row are not one number ("uno dos").
        """
        total, group, last = 0, 0, 10_000
        for word in re.split(r"[\s-]+", text.lower()):
            if word == self._join:
                continue
            value = self.values[word]
            if value == 1000:
                total, group, last = total + (group or 1) * 1000, 0, 1000
            elif value == 100:
                group, last = (group or 1) * 100, 100
            elif value >= last or (10 <= last < 100 and (value >= 10 or last < 20)):
                return None  # "one two", "ten five"
            else:
                group, last = group + value, value
        return float(total + group)
