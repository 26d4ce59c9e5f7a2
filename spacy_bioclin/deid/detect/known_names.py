"""Find the names of a known patient in a note: whole, in part, in any order, misspelt, as initials.

Texts and names here are folded (`text.fold_plain`), as `known_patient` gives them.

Confidences:

- EXACT: a word that is a part of the name, apart from case and accents.
- COMMON: one that is an ordinary word as well ("Rosa", "May"). It counts only with a capital and
  not at the start of a sentence, unless another part, a title or a label is beside it.
- FUZZY: a word with a capital that is one edit from a part of 5 letters, or two from one of 9; it
  may be an eponym or a drug too.
- INITIALS: "JGL" or "J. G.", which other people and other terms share.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import OSA

from ...text import fold_alnum
from ..spans import KNOWN_PATIENT, PhiSpan
from .allow_list import WORD, AllowList

EXACT, COMMON, FUZZY, INITIALS = 0.99, 0.9, 0.8, 0.7
MIN_LETTERS = 3
ONE_EDIT, TWO_EDITS = 5, 9
DETECTOR = KNOWN_PATIENT
LABEL = "patient_name"
# Between the words of a name: "García-López,\nJ."; a full stop only after an initial.
_GAP = re.compile(r"[\s,_\-/]{0,20}\Z")
_STOP = re.compile(r"\.[\s,_\-/]{0,20}\Z")
# Inside a word: "Gar-\ncía".
_BREAK = re.compile(r"-\s*\n\s*\Z")
_SENTENCE_END = re.compile(r"(?:^|[.!?:;\n*\"(])\s*\Z")
PARTICLES = frozenset(
    ["de", "del", "la", "las", "los", "y", "i", "e", "da", "do", "dos", "van", "von", "der", "den"]
)


class Names(NamedTuple):
    """The names of a patient, prepared for the search.

    parts (frozenset[str]): Folded words of the names, without particles and titles.
    particles (frozenset[str]): Particles of the names.
    first_letters (frozenset[str]): Folded first letters of the parts.
    initials (frozenset[str]): "jgl", in the order of the name.
    """

    parts: frozenset[str]
    particles: frozenset[str]
    first_letters: frozenset[str]
    initials: frozenset[str]


class Word(NamedTuple):
    """A word of a text."""

    start: int
    end: int
    text: str
    folded: str


def split_words(text: str, pattern: re.Pattern[str] = WORD) -> list[Word]:
    """Split a text into the words that match a pattern."""
    found = pattern.finditer(text)
    return [Word(*match.span(), match.group(), fold_alnum(match.group())) for match in found]


def read_names(names: Sequence[str], allow_list: AllowList) -> Names:
    """Prepare names for the search; "García López, Juan" is "Juan García López"."""
    parts: set[str] = set()
    particles: set[str] = set()
    initials: set[str] = set()
    for name in names:
        surnames, _, given = name.partition(",")
        words = [word.folded for word in split_words(f"{given} {surnames}")]
        particles.update(PARTICLES.intersection(words))
        words = [w for w in words if w not in PARTICLES and not allow_list.is_title(w)]
        parts.update(word for word in words if len(word) > 1)
        letters = "".join(word[0] for word in words)
        initials.add(letters)
        if len(words) >= 4:  # the second given name is mostly left out
            initials.add(letters[0] + letters[2:])
    return Names(
        frozenset(parts),
        frozenset(particles),
        frozenset(part[0] for part in parts),
        frozenset(letters for letters in initials if len(letters) > 1),
    )


def find_names(text: str, names: Names, allow_list: AllowList) -> list[PhiSpan]:
    """Find the patient's names.

    text (str): A folded text.
    RETURNS (list[PhiSpan]): Sorted, not overlapping; neighbouring parts are one span.
    """
    fuzzy: dict[str, bool] = {}
    runs: list[list[tuple[Word, str]]] = [[]]
    for word in _join_broken(split_words(text), text, names):
        kind = _kind(word, names, allow_list, fuzzy)
        if runs[-1] and not (kind and _joined(text, runs[-1][-1][0], word)):
            runs.append([])
        leads = kind == "particle" and word.text[0].isupper() and word.folded in names.particles
        if kind and (runs[-1] or kind != "particle" or leads):
            runs[-1].append((word, kind))
    return [span for run in runs for span in _make_spans(text, run, names, allow_list)]


def _join_broken(words: list[Word], text: str, names: Names) -> list[Word]:
    """Join two words that a hyphen separates if together they are a part of the name."""
    joined = words[:1]
    for word in words[1:]:
        last, gap = joined[-1], text[joined[-1].end : word.start]
        folded = last.folded + word.folded
        if folded in names.parts and len(gap) < 20 and _BREAK.match(gap):
            joined[-1] = Word(last.start, word.end, last.text, folded)
        else:
            joined.append(word)
    return joined


def _kind(word: Word, names: Names, allow_list: AllowList, fuzzy: dict[str, bool]) -> str:
    """Classify a word of the note.

    RETURNS (str): "exact" or "common" (a part of the name), "fuzzy" (nearly one), "initial",
        "initials" (all of them), "particle", or "".
    """
    if word.folded in names.parts:
        short = len(word.folded) < MIN_LETTERS
        return "common" if short or allow_list.is_ordinary(word.folded) else "exact"
    capital = word.text[0].isupper()
    if capital and len(word.folded) == 1 and word.folded in names.first_letters:
        return "initial"
    if word.folded in PARTICLES:
        return "particle"
    if not capital:
        return ""
    if len(word.text) >= MIN_LETTERS and word.text.isupper() and word.folded in names.initials:
        return "" if allow_list.is_acronym(word.text) else "initials"
    if word.folded not in fuzzy:
        fuzzy[word.folded] = _is_nearly(word.folded, names)
    return "fuzzy" if fuzzy[word.folded] else ""


def _is_nearly(word: str, names: Names) -> bool:
    """Check for one edit from a part of 5 letters or more, or two from one of 9.

    An edit changes, adds or removes a letter, or swaps two neighbours.
    """
    for part in names.parts:
        edits = (len(part) >= ONE_EDIT) + (len(part) >= TWO_EDITS)
        if edits and OSA.distance(word, part, score_cutoff=edits) <= edits:
            return True
    return False


def _joined(text: str, left: Word, right: Word) -> bool:
    gap = text[left.end : right.start]
    if _GAP.match(gap):
        return bool(gap)
    return len(left.folded) == 1 and bool(_STOP.match(gap))


def _make_spans(
    text: str, run: list[tuple[Word, str]], names: Names, allow_list: AllowList
) -> Iterator[PhiSpan]:
    """Make one span of a run of neighbouring words, or none."""
    while run and run[-1][1] == "particle":
        run.pop()
    confidence = _confidence(text, run, names, allow_list) if run else 0.0
    if confidence:
        start, end = run[0][0].start, run[-1][0].end
        end += run[-1][1] == "initial" and text[end : end + 1] == "."
        yield PhiSpan(start, end, LABEL, confidence, DETECTOR)


def _confidence(
    text: str, run: list[tuple[Word, str]], names: Names, allow_list: AllowList
) -> float:
    """Rate a run of words; 0 if it is not a name."""
    kinds = Counter(kind for _, kind in run)
    common = [word for word, kind in run if kind == "common"]
    fuzzy = [word for word, kind in run if kind == "fuzzy"]
    if kinds["exact"]:
        return EXACT
    if not common and not fuzzy:
        return INITIALS if _are_initials(text, run, names) else 0.0
    capitals = [word for word in common if word.text[0].isupper()]
    if len(capitals) > 1:
        return EXACT
    if len(common) > 1 and not capitals and not kinds["particle"]:
        return COMMON  # "rosa blanco"; not "rosa y dolores"
    supported = bool(kinds["initial"]) or allow_list.is_introduced(text, run[0][0].start)
    if capitals and (supported or fuzzy or not _opens_sentence(text, capitals[0])):
        return COMMON
    if fuzzy and (supported or any(_is_unknown_word(text, word, allow_list) for word in fuzzy)):
        return FUZZY
    return 0.0


def _opens_sentence(text: str, word: Word) -> bool:
    """Check whether a word opens a sentence, or is too short to tell."""
    before = text[max(0, word.start - 20) : word.start]
    return len(word.folded) < MIN_LETTERS or bool(_SENTENCE_END.search(before))


def _is_unknown_word(text: str, word: Word, allow_list: AllowList) -> bool:
    is_word = allow_list.is_ordinary(word.folded)
    return not is_word and not allow_list.covers(text, word.start, word.end)


def _are_initials(text: str, run: list[tuple[Word, str]], names: Names) -> bool:
    end = run[-1][0].end
    if text[end : end + 1] == "." and text[end + 1 : end + 2].isalnum():
        return False  # "A.L." of "A.L.T."
    letters = "".join(word.folded for word, kind in run if kind.startswith("initial"))
    return letters in names.initials
