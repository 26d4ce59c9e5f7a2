"""Find structured PHI by the rules in rules_common.yml, rules_LANG.yml and rules_LANG_notes.yml.

A text is folded first (text.py): no rule sees its untouched form, so that invisible characters or
another kind of blank, dash or digit hide nothing. It is then read three times: by words (labels
such as "NHC", titles, street types), by tokens with a digit, and by marks such as "@". The word,
token or mark decides which rules may begin there, and only these are tried. Every quantifier has a
bound, so that any input takes linear time.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ...errors import BioclinError
from ...text import FoldedText
from ..spans import PhiSpan
from .checks import Check
from .rule_data import LANGS, Rule, expand, first_names, make_label_rules, make_rule, read_entries

# Characters before a match, on its line or the line above, in which context words count.
CONTEXT_WINDOW = 80
# The longest token (letters and digits) that rules look at, and the longest word before it.
MAX_TOKEN, MAX_PREFIX = 40, 12
# Characters to search for a value before its label ("4960926 (NHC)"), and for a line break in it.
BEHIND_WINDOW, BREAK_WINDOW = 40, 30
# Different values of a text that are checked; a phone number takes 0.1 ms.
MAX_CHECKS = 1000
# "Tel. 961622403 / 961622404 / ..."
MAX_VALUES = 4

_WORD = re.compile("[a-z]+")
_BREAK = re.compile(r"(?<!\n)\n(?!\n)")
# Text before the T. of C.U.I.T., the F of 54F321, the dl of mg/dl.
_INSIDE = re.compile(r"(?:[a-z][.]|.?[0-9]|[gl]/)\Z", re.DOTALL)
_DIGITS = re.compile("[0-9][0-9a-z]*")
_PREFIX = re.compile(r"(?<![0-9a-z])[a-z]{1,4}(?:[ ./-]{1,2}| [/-] )\Z")
_SHAPE = {ord(char): "a" for char in "abcdefghijklmnopqrstuvwxyz"} | {
    ord(char): "9" for char in "0123456789"
}


class View(NamedTuple):
    """A folded text in the forms that rules match, all of the same length.

    plain (str): See `text.fold_plain`.
    folded (str): The same in lower case.
    joined (str): The same with single line breaks as blanks.
    checked (dict[tuple[Check, str], bool]): Results of checks, by value.
    """

    plain: str
    folded: str
    joined: str
    checked: dict[tuple[Check, str], bool]


def make_view(text: FoldedText) -> View:
    """Make the forms of a text."""
    return View(text.plain, text.lower, _BREAK.sub(" ", text.lower), {})


class RuleSet:
    """Rules of one or more languages, indexed by how they begin."""

    def __init__(self) -> None:
        self.by_word: dict[str, list[Rule]] = {}
        self.by_shape: list[tuple[re.Pattern[str], Rule]] = []
        self.by_mark: list[tuple[re.Pattern[str], str, str, Rule]] = []
        self.kinds: dict[str, str] = {}
        self._rules_at = lru_cache(maxsize=4096)(self._find_rules)

    def add(self, entry: dict[str, Any], macros: dict[str, str]) -> None:
        """Compile a rule.

        entry (dict[str, Any]): See rules_common.yml.
        macros (dict[str, str]): Name in <name> -> pattern.
        RAISES (BioclinError): A label does not begin with a whole word.
        """
        self.kinds[entry["kind"]] = entry["type"]
        if "first" in entry:
            self.by_shape.append((re.compile(entry["first"]), make_rule(entry, macros)))
        elif "mark" in entry:
            rule = make_rule(entry, macros)
            gap = " " if entry.get("gap") else ""
            mark = re.compile(expand(entry["mark"], macros))
            self.by_mark.append((mark, gap, entry.get("back", ""), rule))
        elif "labels" in entry:
            for word, rule in make_label_rules(entry, macros):
                self.by_word.setdefault(word, []).append(rule)
        else:
            rule = make_rule(entry, macros)
            names = entry.get("names")
            for word in first_names(**names) if names else entry["words"]:
                self.by_word.setdefault(word, []).append(rule)

    def _find_rules(self, shape: str) -> tuple[Rule, ...]:
        return tuple(rule for first, rule in self.by_shape if first.match(shape))

    def find(self, text: str) -> list[PhiSpan]:
        """Find PHI.

        RETURNS (list[PhiSpan]): Sorted, without overlaps: of two, the more confident, then the
            longer one stays. The label is a PHI type, the detector is the kind of the rule. Many
            have a low confidence.
        """
        folded = FoldedText(text)
        view = make_view(folded)
        found = _resolve(
            [*self._find_words(view), *self._find_numbers(view), *self._find_marks(view)]
        )
        if folded.places is None:
            return found
        return [
            phi._replace(start=start, end=end)
            for phi in found
            for start, end in [folded.place(phi.start, phi.end)]
        ]

    def _find_words(self, view: View) -> Iterator[PhiSpan]:
        by_word = self.by_word
        for word in _WORD.finditer(view.folded):
            rules = by_word.get(word[0])
            if rules is not None:
                inside = len(word[0]) < 3 and _INSIDE.match(
                    view.folded, max(0, word.start() - 2), word.start()
                )
                for rule in rules:
                    if rule.label is None:
                        yield from _match(view, rule, word.start())
                    elif not inside:
                        yield from _match_label(view, rule, word.start())

    def _find_numbers(self, view: View) -> Iterator[PhiSpan]:
        folded = view.folded
        for token in _DIGITS.finditer(folded):
            start, end = token.span()
            end = min(end, start + MAX_TOKEN)
            before = folded[max(0, start - MAX_PREFIX) : start]
            if before and before[-1].isalnum():
                start -= len(before) - len(before.rstrip("abcdefghijklmnopqrstuvwxyz"))
            elif before and before[-1] in " ./-" and (prefix := _PREFIX.search(before)):
                at = start - len(before) + prefix.start()
                for rule in self._rules_at(folded[at : end + 2].translate(_SHAPE)):
                    yield from _match(view, rule, at)
            for rule in self._rules_at(folded[start : end + 2].translate(_SHAPE)):
                yield from _match(view, rule, start)

    def _find_marks(self, view: View) -> Iterator[PhiSpan]:
        for mark, gap, back, rule in self.by_mark:
            text = view.plain if rule.case else view.folded
            for found in mark.finditer(text):
                before = text[max(0, found.start() - 64) : found.start()]
                kept = before.removesuffix(gap).rstrip(back)
                yield from _match(view, rule, found.start() - len(before) + len(kept))


def _match(view: View, rule: Rule, at: int) -> Iterator[PhiSpan]:
    """Match a rule at a place."""
    found = rule.pattern.match(view.plain if rule.case else view.folded, at)
    if found is not None:
        yield _make_match(view, rule, found)


def _match_label(view: View, rule: Rule, at: int) -> Iterator[PhiSpan]:
    """Match the values after a label, or before it."""
    assert rule.label is not None and rule.separator is not None
    label = rule.label.match(view.folded, at)
    separator = rule.separator.match(view.folded, label.end()) if label is not None else None
    if separator is None:
        return
    text, start = view.plain if rule.case else view.folded, separator.end()
    joined = text if rule.case else view.joined
    found = rule.pattern.match(text, start)
    if found is None and not rule.case and "\n" in text[start : start + BREAK_WINDOW]:
        found = rule.pattern.match(joined, start)
    if found is None and rule.behind is not None:
        found = rule.behind.search(joined, max(0, at - BEHIND_WINDOW), at)
        if found is not None:
            yield _make_match(view, rule, found)
        return
    for _ in range(MAX_VALUES):
        if found is None:
            return
        yield _make_match(view, rule, found)
        more = rule.more.match(text, found.end()) if rule.more is not None else None
        found = rule.pattern.match(text, more.end()) if more is not None else None


def _make_match(view: View, rule: Rule, found: re.Match[str]) -> PhiSpan:
    """Make the span of a value, with the bracket that opens before it: "(555) 123-4567"."""
    start, end = found.span("v" if "v" in found.re.groupindex else 0)
    if view.folded[start - 1 : start] == "(":
        value = view.folded[start:end]
        if ")" in value and "(" not in value:
            start -= 1
    return PhiSpan(start, end, rule.phi_type, _score(view, rule, start, end), rule.kind)


def _score(view: View, rule: Rule, start: int, end: int) -> float:
    """Compute the confidence: the rule's own, changed by its check, then raised by context."""
    confidence = rule.confidence
    if rule.check is not None:
        key = rule.check, view.folded[start:end]
        if key not in view.checked and len(view.checked) < MAX_CHECKS:
            view.checked[key] = rule.check(key[1])
        if key in view.checked:
            confidence = rule.passed if view.checked[key] else rule.failed
    if rule.with_context > confidence and _has_context(view.folded, rule, start, end):
        confidence = rule.with_context
    return confidence


def _has_context(folded: str, rule: Rule, start: int, end: int) -> bool:
    if rule.before is not None and rule.before.search(folded, max(0, start - 40), start):
        return True
    if rule.after is not None and rule.after.match(folded, end):
        return True
    if not rule.context:
        return False
    window = max(0, start - CONTEXT_WINDOW)
    line = folded.rfind("\n", window, start)
    above = folded.rfind("\n", window, line) if line > 0 else -1
    words = _WORD.findall(folded, max(window, above), start)
    return not rule.context.isdisjoint(words)


def _resolve(matches: list[PhiSpan]) -> list[PhiSpan]:
    """Sort matches by start and resolve overlaps."""
    matches.sort(key=lambda m: (-m.confidence, m.start - m.end, m.start))
    taken = bytearray(max((match.end for match in matches), default=0))
    kept: list[PhiSpan] = []
    for match in matches:
        if taken.find(1, match.start, match.end) < 0:
            taken[match.start : match.end] = b"\1" * (match.end - match.start)
            kept.append(match)
    return sorted(kept)


@cache
def load_rules(*langs: str) -> RuleSet:
    """Load the rules of some languages, and those of every language.

    langs (str): "es", "en" or both.
    RETURNS (RuleSet): Cached.
    RAISES (BioclinError): There are no rules for a language.
    """
    unknown = [lang for lang in langs if lang not in LANGS]
    if unknown or not langs:
        raise BioclinError(
            f"langs = {list(langs)}: there are PHI rules for {', '.join(LANGS)}; choose of these"
        )
    rules = RuleSet()
    for entry, macros in read_entries(*langs):
        rules.add(entry, macros)
    return rules
