"""Find the results of a text: names with their values, flags, reference ranges and dates."""

import re
from functools import lru_cache
from typing import NamedTuple

from ..rules.find import Finder
from ..rules.trie import words_pattern
from .marks import Marks, Trail, is_alike
from .names import Name, Names, find_limit, get_names, is_in, load
from .result import Result
from .tables import read_tables
from .values import BARE_UNITS, Value, ValueReader, read_tnm

_BLANKS = re.compile(r"[^\S\n]+")
_SEPARATOR = re.compile(r"[:=|]|\.{2,}|…+|_{2,}|[-–](?=\s)")
_PAREN = re.compile(r"[(\[]([^()\[\]\n]{1,40})[)\]]")
_CLOCK = re.compile(
    r"(?i)(?:(?:a\slas?|at|@)\s)?(?:\d{1,2}[:h][0-5]\d\s?(?:h(?:s|rs?|oras)?|am|pm)?(?![\w.,/])"
    r"|\d{1,2}\s?(?:h(?:s|rs?|oras|ours)?|am|pm)(?![\w/])|\d{3,4}(?=\s?:))\s?:?(?=\s*[<>]?\s?\d)"
)
_AFTER_HOURS = re.compile(
    r"(?i)(?:a\slas?|at)\s(?:\d{1,2}\s?h(?:s|rs?|oras|ours)?(?![\w/])|[0-2]\d:?[0-5]\d(?![\w.,]))"
)
_PLAIN_WORDS = re.compile(r"[^\W\d_]{2,15}(?:\s[^\W\d_]{2,15}){0,3}:\s?(?=[<>]?\s?\d)")
_WORD = re.compile(r"[^\W\d_]+\d?\.?|\d?[º°]")
_ARROW = re.compile(
    r"(?i)[^\S\n]*(?:-{1,2}>|→|=>|⟶|➔)[^\S\n]*|(?<=\d)\s?>\s?(?=\d)"
    r"|\s(?:(?:up|down|rose|fell|sube|baja|bajó)\s)?(?:to|a)\s(?=\d)"
)
_CELL = re.compile(r"[^\S\n]*(?:\t|[^\S\n]{2,}|\|)[^\S\n]*")
_DIGITS = re.compile(r"(?<![^\W_])\d+(?![^\W_]|-[A-Za-z])")
_AGAIN_SEPARATOR = re.compile(r"[\s,;/:|(]+")
_SENTENCE = re.compile(r"[.;!?]\s|\n")
_CHAIN = re.compile(r"[\s,;/|()\[\]·•*+-]*(?:y|and|e)?\s?")
_ASIDE = re.compile(r"[^\S\n]*\((?=[<>]?\s?\d)")
_END_OF_VALUE = re.compile(r"\s?(?:[,.;)\]|\n*↑↓]|$)|\s*\(")
_COUNTED = re.compile(r"\s[^\W\d_]{5,}")
_BEGINS = re.compile(r"(?:^|\n|:)[\s•*-]*$")
_NUMBER_NEXT = re.compile(r"\s?[:=]?\s?\d")
_NOT_AGAIN = frozenset(["on", "con", "with", "en", "in"])
_ONE_NUMBER = re.compile(r"[<>]?\s?\d+(?:[.,]\d+)?\s?%?(?:\s[^\W\d_]+)?")
_ONLY_SIGNS = re.compile(r"[\s,;/:(]+")
_END_OF_ASIDE = re.compile(r"\s?(?:[^\W\d_]+\s?){0,3}\)")
_DAY_BEFORE = re.compile(r"(?<![\d/.-])\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}(?=\)?\s?:)")
_PAIR = re.compile(r"\s?/\s?")
_LONGEST_LEAD, _LONGEST_AGAIN, _MAX_WORDS = 60, 45, 6
_LONGEST_LINE, _LONGEST_CONDITION = 400, 30  # characters


class Lead(NamedTuple):
    """What is between a name and its value: where it ends, and what it says of the value."""

    end: int
    unit: str | None
    flag: str | None
    date: str | None


class ResultFinder:
    """Find results in texts.

    finder (Finder): Reads numbers, units and dates; its language decides how.
    names (Names): The names of tests.
    """

    def __init__(self, finder: Finder, names: Names) -> None:
        self._finder, self.names = finder, names
        self.values = ValueReader(finder, names)
        self.marks = Marks(finder)
        words = load("words")
        self._fillers = frozenset(words["fillers"].split())
        self._again = frozenset(words["again"].split())
        conditions = words_pattern(words["conditions"].split())
        self._condition = re.compile(
            rf"(?i)(?<![^\W_])(?:{conditions})(?![^\W_])\W+(?:\S+\s+){{0,3}}\W*$"
        )
        forms = finder.lexicon.data["comparators"].values()
        comparators = words_pattern(form for each in forms for form in each.split())
        self._comparators = re.compile(rf"(?i)(?:{comparators})(?![^\W_])")

    def find(self, text: str, entities: list[tuple[int, int]]) -> list[Result]:
        """Find the results of a text.

        entities (list[tuple[int, int]]): Places that a component has marked as tests.
        RETURNS (list[Result]): In order of their values.
        """
        names = self.names.find(text, entities)
        results, rows = read_tables(text, names, self)
        names = [name for name in names if not is_in(name.start, rows)]
        floor = condition = 0
        for at, name in enumerate(names):
            if name.start < floor:
                continue
            end = 0
            following = names[at + 1] if at + 1 < len(names) else None
            if name.key == "tnm":
                found = [self._make(text, name, read_tnm(text, name), None, None)]
            elif not self._may_be(text, name, floor):
                continue
            elif self._is_wished(text, name, condition):
                condition = name.end
                continue
            else:
                found = self._read_pair(text, name, following)
                if not found:
                    found, end = self._read(text, name, names)
            if found:
                day = self._find_day(text, name.start)
                results += [one._replace(date=one.date or day) for one in found]
                floor = max(end, *(each.end_char for each in found))
        return sorted(results, key=lambda one: (one.start_char, one.name_start))

    def read_cell(
        self, text: str, name: Name, start: int, end: int, date: str | None
    ) -> list[Result]:
        """Read a cell of a table whose name is in another row or column."""
        value = self.values.read(text, start, name, start)
        if value is None or value.end > end:
            return []
        trail = self.marks.read_trail(text, value.end, value) if value.end < end else None
        if trail and trail.end > end:
            trail = None
        lead = Lead(start, None, None, date)
        return [self._make(text, name, value, lead, trail)]

    def read_day(self, text: str, start: int, end: int) -> str | None:
        """Read a cell that is a date."""
        day = self.marks.match_date(text, start)
        return day[0] if day and day[1] == end else None

    def _find_day(self, text: str, at: int) -> str | None:
        """Find the date that begins a list of results: "Labs (12/03/2024): …"."""
        line = text.rfind("\n", max(0, at - _LONGEST_LINE), at) + 1 or max(0, at - _LONGEST_LINE)
        for found in reversed(list(_DAY_BEFORE.finditer(text, line, at))):
            if day := self.marks.match_date(text, found.start()):
                return day[0]
        return None

    def _may_be(self, text: str, name: Name, floor: int) -> bool:
        """Check whether a name is one here: no word, no condition or wish."""
        is_lower = text[name.start : name.end].islower()
        is_word = name.key in self.names.words and is_lower
        if (
            name.key == "mg"
            and is_lower
            and text[name.start - 2 : name.start].strip()[-1:].isdigit()
        ):
            is_word = True  # "10 mg max 2"
        if (
            is_word
            and name.key not in self.names.chained
            and _BEGINS.search(text[max(0, name.start - 4) : name.start])
        ):
            return _NUMBER_NEXT.match(text, name.end) is not None
        if not name.is_entity and (is_word or name.key in self.names.chained):
            is_next = floor > 0 and _CHAIN.fullmatch(text, floor, name.start) is not None
            if not is_next or name.start - floor > 12:
                return False
        return True

    def _is_wished(self, text: str, name: Name, last: int) -> bool:
        """Check whether a name is in a condition or a wish: "si TA > 180", "goal INR 2-3".

        last (int): End of the last such name: "si FC < 50 o TAS < 100".
        """
        start = max(0, name.start - _LONGEST_CONDITION, last - 1)
        window = _SENTENCE.split(text[start : name.start])[-1]
        if self._condition.search(window):
            return True
        goes_on = last > 0 and name.start - last < _LONGEST_CONDITION
        return goes_on and _SENTENCE.search(text, last, name.start) is None

    def _read_pair(self, text: str, name: Name, following: Name | None) -> list[Result]:
        """Read "Na/K 133/4,8", "H/H 8.4/25"."""
        if following and _PAIR.fullmatch(text, name.end, following.start):
            other = following
        elif name.key in self.names.sides or ("/" in name.key and name.key != "t/a"):
            other = name
        else:
            return []
        lead = self._lead(text, other.end, [])
        first = self.values.read_reference(text, lead.end)
        slash = _PAIR.match(text, first[1]) if first else None
        if first is None or slash is None or slash.end() == slash.start():
            return []
        second = self.values.read(text, slash.end(), other, slash.end())
        if second is None:
            return []
        one = second._replace(value=first[0], start=lead.end, end=first[1])
        pair = [(name, one), (other, second)]
        return [self._make(text, each, value, lead, None) for each, value in pair]

    def _read(self, text: str, name: Name, names: list[Name]) -> tuple[list[Result], int]:
        """Read the values of a name, and where what follows the last of them ends."""
        has_dates = name.key not in self.names.lists
        lead = self._lead(text, name.end, names, has_dates=has_dates)
        value = self.values.read(text, lead.end, name, name.end)
        if value is None:
            before = self.values.read_before(text, name)
            return [self._make(text, name, before, None, None)] if before else [], 0
        if not name.is_known and not self._is_likely(text, name, value, lead):
            return [], 0
        results = []
        trail = self.marks.read_trail(text, value.end, value)
        results.append(self._make(text, name, value, lead, trail))
        while again := self._read_again(text, name, results[-1], trail.end, names):
            lead, value, trail = again
            results.append(self._make(text, name, value, lead, trail))
        return _share_unit(results), trail.end

    def _is_likely(self, text: str, name: Name, value: Value, lead: Lead) -> bool:
        """Check the value of a short form or a marked entity that no list knows."""
        if value.kind == "text" or value.unit or lead.unit or value.comparator or value.out_of:
            return True
        after = _END_OF_VALUE.match(text, value.end)
        if name.is_entity:
            return after is not None or not _COUNTED.match(text, value.end)
        is_decimal = isinstance(value.value, float) and not value.value.is_integer()
        return is_decimal or (":" in text[name.end : value.start] and after is not None)

    def _lead(self, text: str, at: int, names: list[Name], *, has_dates: bool = True) -> Lead:
        """Read what is between a name and its value.

        has_dates (bool): "9-10-10" is a date, and not the value.
        """
        unit = flag = date = None
        place, words = at, 0
        limit = find_limit(names, at, text)
        while place < min(limit, at + _LONGEST_LEAD):
            if found := _BLANKS.match(text, place) or _SEPARATOR.match(text, place):
                place = found.end()
            elif (found := _PAREN.match(text, place)) and (
                found.end() <= limit or not _DIGITS.search(found[1])
            ):
                inner, end = self._read_paren(text, found)
                if inner is None:
                    place = found.start(1) if _ONE_NUMBER.fullmatch(found[1]) else place
                    break
                unit, flag, date = inner[0] or unit, inner[1] or flag, inner[2] or date
                place = end
                limit = find_limit(names, place, text)
            elif has_dates and (day := self.marks.match_date(text, place)) and day[1] < limit:
                date, place = day
            elif found := _CLOCK.match(text, place):
                place = found.end()
            elif (marked := self.marks.match_flag(text, place, is_after=False)) is not None:
                flag, place = marked
            elif found := _PLAIN_WORDS.match(text, place):
                if found.end() > limit:
                    break
                place = found.end()
            elif (found := _WORD.match(text, place)) and words < _MAX_WORDS:
                if found[0].lower().rstrip(".") not in self._fillers or found.end() > limit:
                    break
                words, place = words + 1, found.end()
            elif found := self._comparators.match(text, place):
                place = found.end()
            else:
                break
        return Lead(place, unit, flag, date)

    def _read_paren(
        self, text: str, found: re.Match[str]
    ) -> tuple[tuple[str | None, str | None, str | None] | None, int]:
        """Read a unit, a date, a method or a flag in brackets before the value."""
        inner, start = found[1], found.start(1)
        unit, end = self._finder.reader.unit_at(text, start)
        if unit is not None and not text[end : found.end(1)].strip():
            return (unit, None, None), found.end()
        if (day := self.marks.match_date(text, start)) and day[1] >= found.end(1) - 1:
            return (None, None, day[0]), found.end()
        if marked := self.marks.match_flag(text, found.start(), is_after=False):
            return (None, marked[0], None), found.end()
        is_value = re.fullmatch(r"(?i)[+-]|neg\.?|pos\.?", inner.strip())
        is_method = re.match(r"\d+\W?[A-Za-z]", inner)  # "(25-OH)"
        if is_value or (not is_method and re.match(r"[<>]?\s?\d", inner)):
            return None, found.end()
        return (None, None, None), found.end()

    def _read_again(
        self, text: str, name: Name, last: Result, at: int, names: list[Name]
    ) -> tuple[Lead, Value, Trail] | None:
        """Read a further value of the same name: "1,2 -> 1,8", "(basal 1,4)", "35 al alta"."""
        limit, date = find_limit(names, at, text), None
        if arrow := _ARROW.match(text, at):
            place = arrow.end()
        else:
            place, date = self._skip_words(text, at, limit)
            if place == at:
                return None
        if (
            place >= limit
            or (last.kind == "text" and name.key not in self.names.fractions)
            or not re.match(r"[<>]?\s?\d", text[place : place + 3])
        ):
            return None
        value = self.values.read(text, place, name, place)
        if value is None or value.kind == "list" or (value.kind == "text" and last.kind != "text"):
            return None
        aside = _ASIDE.match(text, at)
        is_bare = not aside and _ONLY_SIGNS.fullmatch(text, at, place)
        if is_bare and not is_alike(text, last, value):
            return None
        if aside and value.unit is None and not self._is_closed(text, value.end):
            return None  # "Hb 9,1 (2 CH)"
        if last.unit is None and value.unit in BARE_UNITS:
            return None  # "8,1 post 1 U"
        differs = value.unit is not None and value.unit != last.unit
        if differs and not (aside and value.unit == "%") and last.unit is not None:
            return None
        is_closed = re.match(r"\s?\)", text[value.end : value.end + 2])
        if aside and is_closed and value.unit is None and last.unit is not None:
            return None  # "Hb 9,8 g/dL (3)"
        if last.kind != value.kind and "blood_pressure" in (last.kind, value.kind):
            return None
        trail = self.marks.read_trail(text, value.end, value)
        if closed := re.match(r"[^\S\n]?(?:[^\W\d_]+\s?){0,3}\)", text[trail.end : trail.end + 40]):
            trail = trail._replace(end=trail.end + closed.end())
        return Lead(place, None, None, date), value, trail

    def _is_closed(self, text: str, at: int) -> bool:
        """Check whether only words of time follow a value in brackets."""
        found = _END_OF_ASIDE.match(text, at)
        return found is not None and all(
            word.lower() in self._again for word in re.findall(r"\w+", found[0])
        )

    def _skip_words(self, text: str, at: int, limit: int) -> tuple[int, str | None]:
        """Skip what may be between two values of one name: words of time, dates, cells.

        RETURNS (tuple[int, str | None]): Where the next value may begin, `at` if there is none.
        """
        place, date = at, None
        has_reason = False
        word = ""
        while place < min(limit, at + _LONGEST_AGAIN):
            if found := _CELL.match(text, place):
                place, has_reason = found.end(), True
            elif (found := _AGAIN_SEPARATOR.match(text, place)) and "\n" not in found[0]:
                has_reason = has_reason or any(sign in found[0] for sign in ",;(|")
                place = found.end()
            elif (day := self.marks.match_date(text, place)) and self.marks.begins_value(
                text, day[1]
            ):
                date, place, has_reason = day[0], day[1], True
            elif found := _CLOCK.match(text, place) or _AFTER_HOURS.match(text, place):
                place, has_reason = found.end(), True
            elif found := _WORD.match(text, place):
                word = found[0].lower().rstrip(".")
                if word not in self._again:
                    return at, None
                place, has_reason = found.end(), True
            elif text[place] == ")":
                place += 1
            else:
                break
        is_number = re.match(r"[<>]?\s?\d", text[place : place + 3])
        if text[place - len(word) - 1 : place - 1].lower() == word and word in _NOT_AGAIN:
            return at, None  # "90 on 28% oxygen"
        return (place, date) if is_number and has_reason and place < limit else (at, None)

    def _make(
        self, text: str, name: Name, value: Value, lead: Lead | None, trail: Trail | None
    ) -> Result:
        unit = trail.unit if trail else value.unit
        if unit is None and lead is not None and value.kind in ("quantity", "range"):
            unit = lead.unit
        return Result(
            name="TNM" if name.key == "tnm" else text[name.start : name.end],
            kind=value.kind,
            value=value.value,
            high=value.high,
            comparator=value.comparator,
            unit=unit,
            out_of=value.out_of,
            low_limit=trail.low if trail else None,
            high_limit=trail.high if trail else None,
            flag=(trail and trail.flag) or (lead and lead.flag) or value.flag,
            date=(trail and trail.date) or (lead and lead.date),
            name_start=name.start,
            name_end=name.end,
            start_char=value.start,
            end_char=value.end,
        )


def _share_unit(results: list[Result]) -> list[Result]:
    """Give the unit of the last of several values to those before it: "1,2 -> 1,8 mg/dl"."""
    unit = results[-1].unit
    if unit is None or unit == "%":
        return results
    return [one._replace(unit=one.unit or unit) if one.kind != "text" else one for one in results]


@lru_cache(maxsize=8)
def make_result_finder(langs: tuple[str, ...], finder: Finder) -> ResultFinder:
    """Make the finder of some languages; it is made once."""
    return ResultFinder(finder, get_names(langs))
