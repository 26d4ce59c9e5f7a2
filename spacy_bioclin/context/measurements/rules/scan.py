"""Find the places of a text where a measurement may begin."""

import re
from typing import Literal, NamedTuple

from .lexicon import Lexicon, squeeze
from .trie import words_pattern
from .units import DOSE_FORMS, TIMES, Units

Group = Literal["digit", "number", "one", "often", "month", "article"]

# Numbers in names that are not measured; "L5-S1" and "vitamin B12" are words with digits.
_NAMES = (
    r"ca[\s-]?\d{2,3}[.,-]\d{1,2}(?!\d)|ca[\s-](?:125|50|242|549)(?!\d)"
    r"|25[\s-]?\(?oh\)?|1,25(?=[\s-]?\(?(?:oh|di))"
)
_ARTICLES = {
    "en": r"an?(?=\s(?:half|year|month|week|day|hour|minute)\b)"
    r"|half(?=\san?\s(?:hour|year|day|minute)\b)",
    "es": r"medi[oa](?=\s(?:hora|año|minuto)\b)",
}
_SHORT_EVERY = {"es": r"c(?=\s?/|/)", "en": r"q(?=\.?\s?\d)"}  # "c/8h", "q8h"
_ONES = {"es": "un|una|uno", "en": "one"}
# "/8 h": the frequency of "500 mg/8 h"
_PER_HOURS = r"(?:(?<=[\w)])|(?<=[\w)]\s))/(?=\s?\d{1,2}\s?-?\d{0,2}\s?(?:h|d|s|m))"


class Start(NamedTuple):
    """Where a measurement may begin.

    group (str): What begins it.
    at (int): Where to read it.
    next (int): Where to go on if it is none.
    """

    group: Group
    at: int
    next: int


class Scanner:
    """The pattern of a language for where measurements may begin.

    lexicon (Lexicon): Its words.
    units (Units): Its units; "un", "one" count only before some of them.
    often (Iterable[str]): Words that begin a frequency.
    months (Iterable[str]): Names of months.
    """

    def __init__(self, lexicon: Lexicon, units: Units, often: list[str], months: list[str]) -> None:
        ones = _ONES[lexicon.lang]
        self._groups: dict[str, Group] = {
            **{word: "number" for word in lexicon.numbers.values if word not in ones.split("|")},
            **{squeeze(month): "month" for month in months},
            **{squeeze(word): "often" for word in often},
        }
        known = words_pattern([*lexicon.numbers.values, *months, *often])
        attached = words_pattern(lexicon.data["attached"].lower().split())
        counted = units.words_of((*TIMES, *DOSE_FORMS))
        after_one = "|".join([counted, words_pattern(lexicon.data["after_one"].split())])
        self._pattern = re.compile(
            rf"\b(?:(?P<skip>{_NAMES})|(?P<digit>(?<!\d[.,:'´’])(?<!\^)[\d½¼¾⅓⅔])"
            rf"|(?P<one>(?:{ones})(?=[\s-](?:{after_one})\b))"
            rf"|(?P<article>{_ARTICLES[lexicon.lang]})"
            rf"|(?P<every>{_SHORT_EVERY[lexicon.lang]})"
            rf"|(?P<word>{known})(?!\w)"
            rf"|(?P<attached>(?:{attached}(?=\d{{2,3}}(?!\d))|t[ªº]?(?=3\d[.,]\d)"
            rf"|x(?=\d{{1,3}}\s?{units.time_pattern.replace('(?-i:', '(?:')}))))"
            rf"|(?P<per>{_PER_HOURS})|(?<![\w.,])(?P<point>[.,]\d)"
        )

    def search(self, folded: str, place: int) -> Start | None:
        """Find the next place.

        folded (str): The text as `fold` writes it.
        """
        while found := self._pattern.search(folded, place):
            kind = found.lastgroup
            place = found.end()
            if kind == "digit" or kind == "point":
                return Start("digit", found.start(), place)
            if kind == "attached":
                return Start("digit", place, place + 1)
            if kind == "word":
                word = squeeze(found["word"])
                if word in self._groups:
                    return Start(self._groups[word], found.start(), place)
            elif kind in ("one", "article"):
                return Start("number" if kind == "one" else "article", found.start(), place)
            elif kind != "skip":
                return Start("often", found.start(), place)
        return None


def fold(text: str) -> str:
    """Write a text in lower case without moving any character."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(each if len(each := char.lower()) == 1 else char for char in text)
