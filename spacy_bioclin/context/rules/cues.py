"""Find cues and terminators in the words of a text; the longest at a place counts."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .phrases import Words
from .rule_data import CUE, TERMINATOR, Rule, RuleSet, Terminator


class Cue(NamedTuple):
    """A cue by its words [start, end). Without rules it blocks other cues."""

    start: int
    end: int
    rules: tuple[Rule, ...]


def find_cues(words: Words, rules: RuleSet) -> tuple[list[Cue], list[tuple[int, int, Terminator]]]:
    """Find the cues, which do not overlap, and the terminators outside of them.

    words (Words): The words of the text.
    rules (RuleSet): The rules.
    RETURNS (tuple): The cues in order; and start, end and value of each terminator, in order.
    """
    cues: list[Cue] = []
    terminators: list[tuple[int, int, Terminator]] = []
    matched = _find_patterns(words, rules)
    for start, end, terminator in _find_ends(words, rules):
        terminators.append((start, end, terminator))
    root, longest, texts, blocks = rules.table.root, rules.table.longest, words.words, words.blocks
    following: list[str | None] = [*texts[1:], None][: len(texts)]  # none without words
    places = [
        at
        for at, (word, after) in enumerate(zip(texts, following, strict=True))
        if (word in root and (None in root[word] or after in root[word])) or at in matched
    ]
    free = block = 0  # where the last cue ends, and the block of the place
    for at in places:
        if at < free:
            continue
        while blocks[block + 1] <= at:
            block += 1
        found = longest(texts, at, blocks[block + 1])
        end, cue_rules = found[CUE]
        last, ending = found[TERMINATOR]
        if at in matched and end <= matched[at].end <= blocks[block + 1]:
            _, end, cue_rules = matched[at]
        if ending is not None and (last >= end or cue_rules):
            terminators.extend((at, last, one) for one in ending)
            if last > end:  # "sin embargo" is no "sin"
                cue_rules = None
        if cue_rules is not None:
            cues.append(Cue(at, end, cue_rules))
            free = end
    terminators.sort(key=lambda one: one[0])
    return list(_drop_concord(cues, terminators, words)), terminators


def _drop_concord(
    cues: Iterable[Cue], terminators: Sequence[tuple[int, int, Terminator]], words: Words
) -> Iterator[Cue]:
    """Leave out cues that agree with an earlier one of their kind: "no hay ninguna lesión"."""
    reached: dict[str, int] = {}  # kind -> where the scope of its last cue ends at the latest
    at = 0
    for cue in cues:
        while at < len(terminators) and terminators[at][0] < cue.start:
            start, _, terminator = terminators[at]
            if terminator.forward:
                for kind in terminator.kinds:
                    reached[kind] = min(reached.get(kind, 0), start)
            at += 1
        if cue.rules and all(
            rule.concord and cue.start < reached.get(rule.kind, 0) for rule in cue.rules
        ):
            continue
        for rule in cue.rules:
            if rule.direction in ("forward", "both", "either"):
                reached[rule.kind] = words.blocks[bisect_right(words.blocks, cue.start)]
        yield cue


def _find_patterns(words: Words, rules: RuleSet) -> dict[int, Cue]:
    """Find the matches of the regular expressions by their first word, the longest of each."""
    found: dict[int, Cue] = {}
    for pattern, rule in rules.patterns:
        group = "cue" if "cue" in pattern.groupindex else 0
        for match in pattern.finditer(words.folded):
            start = bisect_right(words.ends, match.start(group))
            end = bisect_left(words.starts, match.end(group))
            if start < end and (start not in found or found[start].end < end):
                found[start] = Cue(start, end, (rule,) if rule else ())
    return found


def _find_ends(words: Words, rules: RuleSet) -> Iterator[tuple[int, int, Terminator]]:
    """Find the terminators that are regular expressions."""
    for pattern, terminator in rules.endings:
        group = "cue" if "cue" in pattern.groupindex else 0
        for match in pattern.finditer(words.folded):
            start = bisect_right(words.ends, match.start(group))
            yield start, bisect_left(words.starts, match.end(group)), terminator
