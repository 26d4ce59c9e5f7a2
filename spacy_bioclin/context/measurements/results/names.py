"""Find the names of tests, signs, scores and stages in a text."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from ....text import fold_by_char
from ....tokenization.short_forms import load_short_forms
from ..rules.lexicon import get_lexicon
from ..rules.trie import BLANK, words_pattern

_TNM = re.compile(
    r"(?<!\w)[cpyrau]{0,2}T(?:is|x|X|[0-4][a-d]?)(?:\([^()\n]{1,4}\))?\s?[cpy]{0,2}N(?:x|X|[0-3][a-c]?)"
    r"(?:\([^()\n]{1,4}\))?(?:\s?[cp]?M(?:x|X|[01][a-c]?))?(?!\w)"
)
_STAGES = ("stage", "estadio")
# "TA120/75", "FC80": a name and its number in one word.
_MIN_ATTACHED = r"(?=\d{2,3}(?!\d))"


class Name(NamedTuple):
    """A name in a text.

    start (int): Code points.
    end (int): Exclusive.
    key (str): The name in lower case without accents, one blank between words.
    is_known (bool): It is in our lists of names; others are marked entities or short forms.
    is_entity (bool): A component has marked it as a test.
    """

    start: int
    end: int
    key: str
    is_known: bool
    is_entity: bool


class Names:
    """The names of some languages, and what is known of them.

    langs (Iterable[str]): "es", "en".
    """

    def __init__(self, langs: tuple[str, ...]) -> None:
        data, words = load("names"), load("words")
        lists = ("fillers", "again", "references")
        fillers = frozenset(word for key in lists for word in words[key].split())
        shared = ("both", "stages", "temperature", "chained")
        known = [form for key in shared for form in data[key].split()]
        attached: list[str] = []
        weak: set[str] = set()
        self._shorts: set[str] = set()
        for lang in langs:
            rules = get_lexicon(lang).data
            known += [*rules["names"].split(), *data[lang].split(), *rules["scores"].split()]
            known += rules["pressures"].split()
            attached += rules["attached"].split()
            shorts, longs = _list_weak(lang)
            self._shorts |= {short for short in shorts if short.lower() not in fillers}
            weak |= {fold_by_char(form) for form in shorts | longs}
        for forms in data["implied"].values():
            known += forms.split()
        known = [fold_by_char(form) for form in known]
        self._known = {plain(form) for form in known}
        skipped = [fold_by_char(form) for form in data["not_names"].split()]
        self._skipped = {plain(form) for form in skipped}
        names = words_pattern([*known, *map(_to_form, weak), *skipped])
        joined = words_pattern(fold_by_char(form) for form in attached)
        self._pattern = re.compile(
            rf"(?<![^\W_])(?:(?P<joined>{joined}){_MIN_ATTACHED}|(?P<name>{names})(?![^\W_]))"
        )
        self.stages = forms_of(data["stages"])
        self.temperature = forms_of(data["temperature"])
        self.implied = {
            form: unit for unit, forms in data["implied"].items() for form in forms_of(forms)
        }
        self.pressures = forms_of(data["pressures"])
        self.vitals = frozenset([*self.implied, *self.pressures, *self.temperature])
        self.lists = forms_of(data["lists"])
        self.amounts = forms_of(data["amounts"])
        self.fractions = forms_of(data["fractions"])
        self.sides = forms_of(data["sides"])
        self.scored = forms_of(data["scored"]) | forms_of(data["both"])
        for lang in langs:
            self.scored |= forms_of(get_lexicon(lang).data["scores"])
        self.densities = forms_of(data["densities"])
        self.negatives = forms_of(data["negatives"])
        self.words = forms_of(data["words"])
        self.chained = forms_of(data["chained"])
        self.plausible = {
            plain(name): tuple(map(float, limits.split()))
            for name, limits in data["plausible"].items()
        }

    def find(self, text: str, entities: Iterable[tuple[int, int]]) -> list[Name]:
        """Find names, of overlapping ones the longest.

        entities (Iterable[tuple[int, int]]): Places that a component has marked as tests.
        RETURNS (list[Name]): In order, not overlapping.
        """
        folded = fold_by_char(text)
        found = [
            Name(match.start(), match.end(), "tnm", True, False) for match in _TNM.finditer(text)
        ]
        for match in self._pattern.finditer(folded):
            key, (start, end) = plain(match[0]), match.span()
            # A short form is one as it is written only: "AT", not "at".
            if key in self._known or " " in key or len(key) > 6 or text[start:end] in self._shorts:
                found.append(Name(start, end, key, key in self._known, False))
        for start, end in entities:
            key = plain(folded[start:end])
            found.append(Name(start, end, key, key in self._known, True))
        found.sort(key=lambda name: (name.start - name.end, not name.is_entity, name.start))
        taken: list[Name] = []
        covered: set[int] = set()
        for name in found:
            if covered.isdisjoint(range(name.start, name.end)):
                covered.update(range(name.start, name.end))
                taken.append(name)
        kept = sorted(name for name in taken if name.key not in self._skipped)
        return list(self._join_stages(text, kept))

    def _join_stages(self, text: str, names: list[Name]) -> Iterator[Name]:
        """Join "FIGO stage": the name of a staging system, and a word for stage."""
        last: Name | None = None
        for name in names:
            is_stage = last is not None and name.key in _STAGES and last.key in self.stages
            if last is not None and is_stage and text[last.end : name.start].isspace():
                last = last._replace(end=name.end)
                continue
            if last is not None:
                yield last
            last = name
        if last is not None:
            yield last


def load(name: str) -> dict[str, Any]:
    """Load one of the files of data beside this module."""
    data: dict[str, Any] = srsly.read_yaml(Path(__file__).with_name(f"{name}.yml"))
    return data


def plain(form: str) -> str:
    """Write a form of the data, or of a folded text, with single blanks."""
    return " ".join(form.replace(BLANK, " ").split())


def forms_of(forms: str) -> frozenset[str]:
    """Get forms of the data in lower case without accents."""
    return frozenset(plain(fold_by_char(form)) for form in str(forms).split())


def _to_form(name: str) -> str:
    return name.replace(" ", BLANK)


def _list_weak(lang: str) -> tuple[set[str], set[str]]:
    """List short forms that mean a test before anything else, and their long forms."""
    shorts: set[str] = set()
    longs: set[str] = set()
    for meanings in load_short_forms(lang).values():
        if meanings[0].kind == "test" and len(meanings[0].short) > 1:
            shorts.add(meanings[0].short)
            longs.update(meanings[0].long)
    return shorts, longs


@cache
def get_names(langs: tuple[str, ...]) -> Names:
    """Get the names of some languages; they are loaded once."""
    return Names(langs)


def find_limit(names: list[Name], at: int, text: str) -> int:
    """Find where the next name begins."""
    following = bisect_left(names, at, key=lambda name: name.start)
    return names[following].start if following < len(names) else len(text)


def is_in(at: int, rows: list[tuple[int, int]]) -> bool:
    """Check whether a place is in one of some places, which are in order."""
    row = bisect_right(rows, at, key=lambda place: place[0]) - 1
    return row >= 0 and at < rows[row][1]
