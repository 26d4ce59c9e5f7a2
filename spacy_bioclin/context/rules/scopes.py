"""Find cues in a text and how far each reaches: ConText (Harkema et al. 2009), without spaCy.

Harkema H, Dowling JN, Thornblade T, Chapman WW. ConText: an algorithm for determining negation,
experiencer, and temporal status from clinical reports. J Biomed Inform 2009;42(5):839-851.

The longest cue at a place counts. A forward cue reaches to the end of its sentence or block, to a
terminator, to the next cue of its kind, to a cue of another kind after a comma or a conjunction, or
to the end of its enumeration; a backward cue likewise to the left. Time is linear in the text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .cues import Cue, find_cues
from .phrases import Words, cut_words
from .rule_data import KINDS, PSEUDO, Rule, RuleSet, Terminator

COMMA = ","
OPENERS = frozenset("([{¿¡\"'«“-*/|")
CLOSERS = frozenset(")]}\"'»”-*/|")
MARKS = OPENERS | CLOSERS | frozenset(".,;:=?!…")
BULLETS = frozenset("-–—•·*>+▪")
LIST_ITEMS = 25  # that a cue introduces at the most
LIST_HEAD = 4  # most words and marks of "presenta:" between a cue and its list
# A cue right after one of these begins a clause of its own.
SEPARATORS = frozenset((COMMA, "(", "/", "-", "+"))


class Found(NamedTuple):
    """A cue and its scope.

    kind (str): One of KINDS, or PSEUDO for a phrase that is no cue.
    rule (str): Name of the rule; empty for PSEUDO.
    cue (tuple[int, int]): Character offsets.
    scope (tuple[int, int] | None): Character offsets; None if nothing is in its reach.
    """

    kind: str
    rule: str
    cue: tuple[int, int]
    scope: tuple[int, int] | None


def find_context(text: str, borders: Iterable[int], rules: RuleSet) -> list[Found]:
    """Find the cues of a text and their scopes.

    text (str): Any text.
    borders (Iterable[int]): Character offsets that no scope crosses: where sentences and sections
        begin.
    rules (RuleSet): The rules.
    RETURNS (list[Found]): In the order of the cues.
    """
    words = cut_words(text, borders)
    cues, ends = find_cues(words, rules)
    reach = Reach(words, rules, cues, ends)
    found = [one for cue in cues for one in reach.found(cue)]
    return list(_drop_denied(found))


def _drop_denied(found: Iterable[Found]) -> Iterator[Found]:
    """Leave out cues of uncertainty that are negated: "no findings suggestive of"."""
    end = -1
    for one in found:
        if one.kind == "uncertain" and one.cue[0] < end:
            continue
        if one.kind == "negated" and one.scope is not None and one.cue < one.scope:
            end = one.scope[1]
        yield one


class Reach:
    """Where the scopes of a text end.

    words (Words): Its words.
    rules (RuleSet): The rules.
    cues (Sequence[Cue]): In order.
    terminators (Iterable[tuple]): Start and end of each, and what it ends; in order.
    """

    def __init__(
        self,
        words: Words,
        rules: RuleSet,
        cues: Sequence[Cue],
        terminators: Iterable[tuple[int, int, Terminator]],
    ) -> None:
        self.words = words
        self.rules = rules
        # By kind: words before which forward scopes end, and after which backward scopes begin. A
        # terminator right after a cue does not end its scope, another cue does.
        places: dict[Terminator, list[tuple[int, int]]] = {}
        for start, end, terminator in terminators:
            places.setdefault(terminator, []).append((start, end))
        ends: dict[str, set[int]] = {kind: set() for kind in KINDS}
        stops: dict[str, set[int]] = {kind: set() for kind in KINDS}
        begins: dict[str, set[int]] = {kind: set() for kind in KINDS}
        for terminator, found in places.items():
            for kind in terminator.kinds:
                if terminator.forward:
                    ends[kind].update(start for start, _ in found)
                if terminator.backward:
                    begins[kind].update(end for _, end in found)
        for cue in cues:
            own = {rule.kind for rule in cue.rules}
            for kind in own:
                stops[kind].add(cue.start)
                begins[kind].add(cue.end)
            before = words.words[cue.start - 1] if cue.start else ""
            if own and (before in SEPARATORS or before in rules.join):
                for kind in KINDS:
                    # "no angina or previous infarct": the conjunction carries the negation on.
                    if kind != "negated" or before not in rules.carry:
                        stops[kind].add(cue.start - 1)
        self.starts = {
            kind: [cue.start for cue in cues if any(rule.kind == kind for rule in cue.rules)]
            for kind in KINDS
        }
        self.ends = {kind: sorted(each) for kind, each in ends.items()}
        self.stops = {kind: sorted(each) for kind, each in stops.items()}
        self.begins = {kind: sorted(each) for kind, each in begins.items()}

    def found(self, cue: Cue) -> Iterator[Found]:
        """Find the scopes of a cue's rules, or what a phrase that is no cue covers."""
        if not cue.rules:
            yield Found(PSEUDO, "", self._offsets(cue.start, cue.end), None)
        known: set[tuple[str, tuple[int, int] | None]] = set()  # two rules may say the same
        for rule in cue.rules:
            for one in self.scopes(cue, rule):
                if (one.kind, one.scope) not in known:
                    known.add((one.kind, one.scope))
                    yield one

    def scopes(self, cue: Cue, rule: Rule) -> Iterator[Found]:
        """Find the scopes of a rule's cue: one, or two for both directions.

        YIELDS (Found): At least one; without scope if the cue has none.
        """
        reached: list[tuple[int, int]] = []
        if rule.direction == "self":
            reached.append((cue.start, cue.end))
        if rule.direction in ("forward", "both", "either"):
            words = self.words.words
            for first in (cue.end, *self._bullets(cue)):
                start, end = self._trim(*self._forward(first, rule))
                # "CD3 negative and CD20 positive": nothing after "and" belongs to the cue.
                if start < end and rule.not_before.isdisjoint((words[first], words[start])):
                    reached.append((start, end))
        if rule.direction in ("backward", "both") or (rule.direction == "either" and not reached):
            start, end = self._trim(*self._backward(cue, rule))
            if start < end:
                reached.append((start, end))
        places: list[tuple[int, int] | None] = [*reached] or [None]
        for scope in places:
            place = None if scope is None else self._offsets(*scope)
            yield Found(rule.kind, rule.name, self._offsets(cue.start, cue.end), place)

    def _offsets(self, start: int, end: int) -> tuple[int, int]:
        return self.words.starts[start], self.words.ends[end - 1]

    def _bullets(self, cue: Cue) -> Iterator[int]:
        """Find the items of a list that a cue introduces: "No presenta:", a bullet on each line."""
        words, blocks = self.words.words, self.words.blocks
        block = bisect_right(blocks, cue.start)
        last = blocks[block]
        if last == cue.end or (words[last - 1] == ":" and last - cue.end <= LIST_HEAD):
            for first in blocks[block : block + LIST_ITEMS]:
                if first == len(words) or words[first] not in BULLETS:
                    return
                yield first + 1

    def _forward(self, start: int, rule: Rule) -> tuple[int, int]:
        """Find the scope that begins with a word, in the block of the word before it."""
        words, blocks, stops = self.words.words, self.words.blocks, self.stops[rule.kind]
        if start < len(words) and words[start] in (COMMA, ";"):
            return start, start  # "HTA no, DM sí"
        end = min(blocks[bisect_right(blocks, start - 1)], start + rule.max_words)
        at = bisect_left(stops, start)
        if at < len(stops):
            end = min(end, stops[at])
        ends = self.ends[rule.kind]
        at = bisect_right(ends, start)
        # "Absent: cyanosis; edema": a list after a colon goes on to the end of the sentence.
        listed = rule.kind == "negated" and start < end and ":" in words[start - 1 : start + 1]
        while listed and at < len(ends) and words[ends[at]] in (COMMA, ";"):
            at += 1
        if at < len(ends):
            end = min(end, ends[at])
        return start, end if listed else self._end_of_list(start, end, rule)

    def _is_repeated(self, start: int, rule: Rule) -> bool:
        """Check whether the scope at a word is of a cue that an item before it has too."""
        starts, words = self.starts[rule.kind], self.words.words
        at = bisect_left(starts, start) - 1  # the cue
        block = self.words.blocks[bisect_right(self.words.blocks, starts[at]) - 1]
        return at > 0 and starts[at - 1] >= block and words[starts[at] - 1] == COMMA

    def _end_of_list(self, start: int, end: int, rule: Rule) -> int:
        """Find the comma, conjunction or label with which the enumeration from `start` ends."""
        words = self.words.words
        if rule.kind in ("negated", "uncertain"):
            for at in range(start + 1, end):
                if words[at] == ":":  # "no edemas ECG: ritmo sinusal"
                    end = at - 1 if at - 1 > start else at
                    break
        # The last item that is joined with the others by "ni".
        carried = max((at for at in range(start, end) if words[at] in self.rules.carry), default=0)
        if rule.until:
            places = range(max(start + 1, carried), end)
            last = next(
                (
                    at
                    for at in places
                    if words[at] in rule.until and words[at + 1 : at + 2] != ["/"]
                ),
                end,
            )
            # "sin fiebre, tos y disnea": there the conjunction joins the last item, but a reason
            # ends "se suspenden AAS, heparina y enoxaparina por sangrado".
            if COMMA not in words[start:last] or rule.until.isdisjoint(self.rules.join):
                end = last
        commas = [at for at in range(start, end) if words[at] == COMMA]
        if not commas:
            return end
        # "no rash, no stiff neck, vomited once": each item that is negated has a cue of its own.
        if rule.kind == "uncertain" or (not carried and self._is_repeated(start, rule)):
            return commas[0]
        for comma, following in zip(commas, [*commas[1:], end], strict=True):
            if comma < carried:
                continue
            item = self._without_time(words[comma + 1 : following])
            if self._count_words(item) > self.rules.max_words or any(
                word[0].isdigit() for word in item
            ):
                return comma
        return end

    def _without_time(self, item: Sequence[str]) -> Sequence[str]:
        """Cut off when it was: "tos y disnea en los últimos 3 días" ends an enumeration."""
        joined = False
        for at, word in enumerate(item):
            if joined and any(" ".join(item[at : at + n]) in self.rules.time for n in (2, 3)):
                return item[:at]
            joined = joined or word in self.rules.join
        return item

    def _count_words(self, item: Sequence[str]) -> int:
        """Count the words of the longest part between conjunctions, without marks."""
        longest = n_words = 0
        for word in item:
            n_words = 0 if word in self.rules.join else n_words + (word not in MARKS)
            longest = max(longest, n_words)
        return longest

    def _backward(self, cue: Cue, rule: Rule) -> tuple[int, int]:
        blocks, begins, words = self.words.blocks, self.begins[rule.kind], self.words.words
        start = max(blocks[bisect_right(blocks, cue.start) - 1], cue.start - rule.max_words)
        at = bisect_right(begins, cue.start) - 1
        if at >= 0:
            start = max(start, begins[at])
        end = cue.start
        while end > start and (words[end - 1] in MARKS or words[end - 1] in self.rules.link):
            end -= 1  # "fiebre: no", "HTA (-)", "cultivo, que fue negativo"
        joined = False
        for at in range(end - 1, start - 1, -1):
            if words[at] in (":", "("):
                return at + 1, end
            joined = joined or words[at] in self.rules.join
            if words[at] == COMMA and not joined:
                return at + 1, end
        return start, end

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        """Leave out marks and conjunctions at both ends, and articles and the like at the right."""
        words, join, dangling = self.words.words, self.rules.join, self.rules.dangling
        while start < end and (words[start] in MARKS or words[start] in join):
            start += 1
        while start < end and (
            words[end - 1] in MARKS or words[end - 1] in join or words[end - 1] in dangling
        ):
            end -= 1
        return start, end
