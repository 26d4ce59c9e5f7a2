"""Find what is done with the drugs of a sentence: started, stopped, held, changed, taken."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..measurements.measurement import Measurement
from .parts import Part, find_bare, find_parts, keep_before, keep_near
from .words import Words

MAX_DRUGS_BEFORE = 12  # a verb holds for so many drugs after it
STOPS = ("stop", "hold")
_DONE = re.compile(r"(?i)(?:ad|id)[oa]s?$")  # "losartan omitido"
_UNTIL = re.compile(r"(?i)(?:hasta|luego|despu[eé]s|then|until|\sy|\sand)\s*$")


class Action(NamedTuple):
    """A verb: its kind in words.yml, or "maybe", and its characters."""

    kind: str
    start: int
    end: int


class Drug(NamedTuple):
    """A drug of a sentence, with the text that belongs to it.

    start (int), end (int): Characters of its name.
    begin (int): Where the words before it begin that belong to it.
    before (list[Part]): Parts right before it ("500 mg de").
    after (list[Part]): Parts after it, in order.
    verbs (list[Action]): Verbs between the drug before it and its name.
    """

    start: int
    end: int
    begin: int
    before: list[Part]
    after: list[Part]
    verbs: list[Action]

    @property
    def parts(self) -> list[Part]:
        """The parts of its order: those after it first."""
        return [*self.after, *self.before]

    @property
    def last(self) -> int:
        """Where its order ends."""
        return max([self.end, *(part.end for part in self.after)])

    @property
    def first(self) -> int:
        """Where its order begins."""
        return min([self.start, *(part.start for part in self.before)])

    def has(self, *kinds: str) -> bool:
        """Check whether its order has a part of some kinds."""
        return any(part.kind in kinds for part in self.parts)


class Reader(NamedTuple):
    """Read the drugs of a sentence.

    text (str): The whole text.
    start (int), end (int): Characters of the sentence.
    measured (Sequence[Measurement]): Its measurements.
    lang (str): How digits are read.
    strict (bool): A number without a unit is a dose only before another part.
    """

    text: str
    start: int
    end: int
    measured: Sequence[Measurement]
    words: Words
    lang: str
    strict: bool

    def read(self, places: Sequence[tuple[int, int]]) -> list[Drug]:
        """Give each drug the parts of its order, and the verbs before it.

        places (Sequence[tuple[int, int]]): Characters of the drugs, in order.
        """
        actions = find_actions(self.text, self.start, self.end, self.words)
        floors = [self.start, *(end for _, end in places)]
        verbs = [
            [one for one in actions if floor <= one.start and one.end <= first]
            for floor, (first, _) in zip(floors, places, strict=False)
        ]
        begins = [
            self._find_begin(floor, first, own)
            for floor, (first, _), own in zip(floors, places, verbs, strict=False)
        ]
        drugs = []
        for at, (first, last) in enumerate(places):
            limit = begins[at + 1] if at + 1 < len(places) else self.end
            before = self._find_parts(begins[at], first)
            kept = keep_before(self.text, first, before, self.words)
            after = self._read_after(last, limit, actions)
            drugs.append(Drug(first, last, begins[at], kept, after, verbs[at]))
        return drugs

    def _find_parts(self, start: int, end: int) -> list[Part]:
        within = [one for one in self.measured if start <= one.start_char and one.end_char <= end]
        return find_parts(self.text, start, end, within, self.words, self.lang)

    def _read_after(self, start: int, end: int, actions: Sequence[Action]) -> list[Part]:
        """Read the parts after a drug, and the verbs between them."""
        text, words = self.text, self.words
        found = self._find_parts(start, end)
        tapers = [part for part in found if part.kind == "taper"]
        for one in actions:
            if one.start < start or one.end > end:
                continue
            is_taper = any(part.start < one.end and one.start < part.end for part in tapers)
            kind, is_later = one.kind, False
            if kind in STOPS and _UNTIL.search(text[start : one.start]):
                kind = "until"
            elif kind in (*STOPS, "change", "replace"):
                is_end = words.ends.match(text, one.end) or _DONE.search(text[one.start : one.end])
                is_later = not is_end or words.if_after.match(text, one.end) is not None
            if not is_taper and not is_later:
                found.append(Part("action", one.start, one.end, kind))
        found.sort(key=lambda part: part.start)
        if bare := find_bare(text, start, end, found, self.lang, strict=self.strict):
            found.append(bare)
            found.sort(key=lambda part: (part.start, part.kind))
        return keep_near(text, start, end, found, words)

    def _find_begin(self, start: int, end: int, actions: Sequence[Action]) -> int:
        """Find where the words begin that belong to the drug after them."""
        text = self.text
        ends = [match.end() for match in self.words.boundary.finditer(text, start, end)]
        if ends:
            return ends[-1]
        for action in actions:
            if is_small(text, action.end, end, self.words):
                return action.start
        if start == self.start:
            return start
        for one in reversed(self.measured):  # "enalapril 5 mg 2 puffs of salbutamol"
            between = text[one.end_char : end]
            if start <= one.start_char and re.fullmatch(r"(?i)\s+(?:de|of)\s+", between):
                return one.start_char
        return end


def is_small(text: str, start: int, end: int, words: Words) -> bool:
    """Check whether a stretch of text has only small words, such as articles."""
    found = words.only_small.match(text, start, end) if start <= end else None
    return found is not None and found.end() == end and not re.search(r"[.,;]\s", text[start:end])


def find_actions(text: str, start: int, end: int, words: Words) -> list[Action]:
    """Find the verbs of a stretch of text. "Inicia tratamiento con" is one, of its first kind."""
    found: list[Action] = []
    for match in words.action.finditer(text, start, end):
        kind = str(match.lastgroup)
        before = text[max(start, match.start() - 30) : match.start()]
        if words.not_action.search(before):
            kind = "continue" if kind in STOPS else "avoid"
        elif words.maybe.search(before):
            kind = "maybe"
        if kind == "take" and found and is_small(text, found[-1].end, match.start(), words):
            found[-1] = found[-1]._replace(end=match.end())
        else:
            found.append(Action(kind, match.start(), match.end()))
    return found


def find_done(text: str, drugs: Sequence[Drug], at: int, words: Words) -> str | None:
    """Find what is done with a drug of a sentence.

    at (int): The number of the drug.
    RETURNS (str | None): The kind of its verb, "if" for "suspender metformina si diarrea", "until"
        for "5 días y suspender"; None without a verb.
    """
    drug = drugs[at]
    after = _done_after(drug)
    before = _done_before(text, drugs, at, words)
    if before in STOPS:
        kinds = ("needed", "reason", "action")
        last = max([drug.end, *(part.end for part in drug.after if part.kind not in kinds)])
        before = "if" if words.if_after.match(text, last) else before
    if before == "replace":
        before = _find_replaced(text, drugs, at, words)
    if after == "replace":
        after = "stop" if _is_new(text, drugs, at + 1, words) else "change"
    if after is not None and not (
        before and after in ("take", "past", "continue", "start", "until")
    ):
        return after
    if before is None and at + 1 < len(drugs):  # "aspirin and clopidogrel were held"
        other = drugs[at + 1]
        is_joined = words.joined.fullmatch(text, drug.last, other.first)
        if is_joined and _own_before(text, other, words) is None:
            after = _done_after(other)
            return after if after in STOPS else None
    return before


def _done_after(drug: Drug) -> str | None:
    return next((part.value for part in drug.after if part.kind == "action"), None)


def _own_before(text: str, drug: Drug, words: Words) -> Action | None:
    """Find the verb right before a drug, with only small words and its dose between them."""
    for action in reversed(drug.verbs):
        end = drug.first if action.end <= drug.first else drug.start
        if is_small(text, action.end, end, words):
            return action
    return None


def _done_before(text: str, drugs: Sequence[Drug], at: int, words: Words) -> str | None:
    """Find the verb before a drug, or that of the drugs before it in the same list."""
    carried: str | None = None
    for number in range(max(0, at - MAX_DRUGS_BEFORE), at + 1):
        drug = drugs[number]
        if own := _own_before(text, drug, words):
            carried = own.kind
            continue
        if carried is None:
            continue
        joined = words.joined.fullmatch(text, drugs[number - 1].last, drug.first)
        if carried == "replace" and _is_new(text, drugs, number, words):
            carried = "start"
        elif joined is None:
            carried = None
        elif carried in (*STOPS, "replace"):
            is_ordered = drug.has("frequency", "when", "schedule", "needed")
            carried = "stop" if carried == "replace" else carried
            if is_ordered or not (
                words.joining.search(joined[0]) or _goes_on(text, drugs, number, words)
            ):
                carried = None
    return carried


def _goes_on(text: str, drugs: Sequence[Drug], at: int, words: Words) -> bool:
    """Check whether "and" follows the drug of a list, as in "stop A, B and C"."""
    if at + 1 >= len(drugs) or drugs[at].has("dose", "bare"):
        return False
    between = words.joined.fullmatch(text, drugs[at].last, drugs[at + 1].first)
    return between is not None and words.joining.search(between[0]) is not None


def _is_new(text: str, drugs: Sequence[Drug], at: int, words: Words) -> bool:
    """Check whether a drug takes the place of the one before it: "losartán" of "a losartán"."""
    if at >= len(drugs):
        return False
    return words.new.search(text[drugs[at - 1].end : drugs[at].start]) is not None


def _find_replaced(text: str, drugs: Sequence[Drug], at: int, words: Words) -> str:
    """Tell the drug that is replaced from the new one, and both from a change of the dose."""
    if _is_new(text, drugs, at + 1, words):
        return "stop"
    drug = drugs[at]
    return "start" if words.new.search(text[drug.begin : drug.start]) else "change"
