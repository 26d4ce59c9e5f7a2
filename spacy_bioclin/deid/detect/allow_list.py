"""Recognise eponyms and drugs that look like names or places, by the lists in allow_list.yml.

Recall comes first: a span is removed from the PHI only if all of these conditions hold.

1. Each of its words is listed (eponym or drug), a head ("enfermedad", "syndrome"), a particle
   ("de", "y") or a possessive "s"; one word at least is listed. A single word that is not listed is
   accepted after or before an open head ("síndrome de Xyz", "Xyz sign"), unless it is a usual name.
2. Nothing beside it suggests a person or place: no title ("Dr. Parkinson"), no label of a field
   ("Apellidos: Wilson"), no relative ("su hija, Crohn"), no initial ("J. Crohn", "Crohn, J."), no
   other word with a capital except heads, listed words, acronyms and ordinary words that open a
   sentence ("María Crohn", "Crohn, María", but "Posible Crohn"), no place before it ("Hospital de
   Santa Lucía") or, with a capital, after it ("Wilson Street").
3. A word that is a surname, a given name or a town too (also_names) has evidence: a head before it
   with "de" or nothing between ("enfermedad de Wilson", "signos de Murphy y Blumberg", "escala
   modificada de Marsh"), a head after it ("Graves disease", "Glasgow coma scale"); a result after
   a sign, test, stain, scale or bacterium ("Murphy positivo", "Glasgow: 15"); a dose or a word of
   treatment beside a drug. Of several words joined by hyphens, one with evidence is enough.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import srsly

from ...text import fold_alnum, fold_plain
from ..surrogates.name_lists import provider_names

ALLOW_LIST = Path(__file__).with_name("allow_list.yml")
# Size of the context on either side of a span, in characters.
CONTEXT_CHARS = 90
MAX_PHRASE = 4
NAME_LOCALES = ("es_ES", "es_MX", "es_AR", "es_CO", "en_US", "en_GB")
WITH_RESULT = {"sign", "test", "stain", "scale", "bacterium"}
WORD_LISTS = (
    *("titles", "titles_after", "places", "persons", "particles", "openers"),
    *("heads", "open_heads", "heads_after", "results", "drug_words"),
)
# A word of a folded text.
WORD = re.compile(r"[^\W\d_]+")
_CLAUSE_END = re.compile(r"[;:()\[\]\r]|[.!?](?=\s|$)|\n\s*\n")
_SENTENCE_END = re.compile(r"(?:^|[.!?:;\n•*\"«(\-–])\s*$")
_RESULT = re.compile(r"\s*(?:[:=(]|de|score)?\s*(?:\d|[IVX]+\b|[+\-−]|[A-D]\b)")
_GRADE = re.compile("[IVX]+[ABCabc]?|[A-F]")
_DOSE = re.compile(r"\s*\d+(?:[.,/]\d+)*\s*(?:mg|g|mcg|[µμ]g|ml|ui|%|comp|c[aá]ps)", re.IGNORECASE)


class Near(NamedTuple):
    """A word beside a span."""

    text: str
    folded: str
    gap: str  # the text between it and the next word or the span

    @property
    def capital(self) -> bool:
        """Whether it begins with a capital."""
        return self.text[0].isupper()


@cache
def usual_names() -> frozenset[str]:
    """Load the folded given names and surnames of Faker's lists."""
    fields = ("first_names", "first_names_male", "first_names_female", "last_names")
    return frozenset(
        fold_alnum(word)
        for locale in NAME_LOCALES
        for field in fields
        for name in provider_names(locale, field)
        for word in name.split()
    )


class AllowList:
    """Decide whether a span is an eponym or a drug; the rules are in the module's docstring.

    lang (str): Language of the ordinary words; a language without any gets those of all.
    """

    def __init__(self, lang: str) -> None:
        data = srsly.read_yaml(ALLOW_LIST)
        self.entries: dict[tuple[str, ...], set[str]] = {}
        for category, phrases in {**data["eponyms"], "drug": data["drugs"]}.items():
            for phrase in phrases:
                self.entries.setdefault(_key(phrase), set()).add(category)
        self._also_names = {_key(phrase) for phrase in data["also_names"]}
        self._labels = frozenset(fold_alnum(label) for label in data["labels"])
        self._acronyms = frozenset(data["acronyms"])
        words = {name: frozenset(map(fold_alnum, data[name])) for name in WORD_LISTS}
        self._open_heads = words["open_heads"]
        self._heads = words["heads"] | words["open_heads"]
        self._heads_after = words["heads_after"] | words["open_heads"]
        self._results, self._drug_words = words["results"], words["drug_words"]
        self._titles, self._titles_after = words["titles"], words["titles_after"]
        self._places, self._persons = words["places"], words["persons"]
        self._particles, self._openers = words["particles"], words["openers"]
        self._fill = self._heads | self._heads_after | self._particles
        self._not_names = self._fill | self._results | self._drug_words
        ordinary = data["ordinary"]
        lists = [ordinary[lang]] if lang in ordinary else ordinary.values()
        self._ordinary = frozenset(fold_alnum(word) for words in lists for word in words)

    def is_ordinary(self, word: str) -> bool:
        """Check for a word of the language that is a name too, or nearly one ("Blanco")."""
        return fold_alnum(word) in self._ordinary

    def is_acronym(self, word: str) -> bool:
        """Check for capitals such as TAC, which are not initials."""
        return word in self._acronyms

    def is_title(self, word: str) -> bool:
        """Check for a word that precedes a name ("Dra", "señor")."""
        return fold_alnum(word) in self._titles

    def covers(self, text: str, start: int, end: int) -> bool:
        """Check whether a span that looks like a name or a place is an eponym or a drug.

        start (int): Start of the span, in code points.
        end (int): Its end, exclusive.
        RETURNS (bool): True if it is not PHI.
        """
        window = max(0, start - 2 * CONTEXT_CHARS), end + 2 * CONTEXT_CHARS
        parts = text[window[0] : start], text[start:end], text[end : window[1]]
        before_body, body, after_body = map(fold_plain, parts)
        text, start = before_body + body + after_body, len(before_body)
        end = start + len(body)
        if any(char.isdigit() or char in "@_" for char in body):
            return False
        words = [fold_alnum(word) for word in WORD.findall(body)]
        found = self._read(words)
        before, after = _before(text, start), _after(text, end)
        unlisted = found is None and self._is_unknown_eponym(words, before, after)
        if (not found and not unlisted) or self._is_person_or_place(text, start, before, after):
            return False
        named = [key for key in found or () if key in self._also_names]
        if not named or (len(named) < len(found or ()) and "-" in body):
            return True
        categories = set[str]().union(*(self.entries[key] for key in named))
        own_head = any(word in self._heads or word in self._heads_after for word in words)
        return own_head or self._has_evidence(categories, before, after, text[end:])

    def _read(self, words: list[str]) -> list[tuple[str, ...]] | None:
        """Find the entries in a phrase, beside heads and particles; None if it has other words."""
        found, i = [], 0
        while i < len(words):
            for n in range(min(MAX_PHRASE, len(words) - i), 0, -1):
                key = tuple(words[i : i + n])
                if key in self.entries:
                    found.append(key)
                    i += n
                    break
            else:
                if words[i] not in self._fill:
                    return None
                i += 1
        return found

    def _is_unknown_eponym(self, words: list[str], before: list[Near], after: list[Near]) -> bool:
        if not 1 <= len(words) <= 2 or any(
            word in usual_names() or word in self._titles or word in self._places or len(word) < 4
            for word in words
        ):
            return False
        of = next((i for i, near in enumerate(before) if near.folded not in self._particles), None)
        if of is not None and before[of].folded in self._open_heads:
            return of > 0 and all(near.gap.isspace() for near in before[: of + 1])
        return bool(after) and after[0].folded in self._open_heads and after[0].gap.isspace()

    def _is_person_or_place(
        self, text: str, start: int, before: list[Near], after: list[Near]
    ) -> bool:
        if self.is_introduced(text, start, before):
            return True
        if before and before[0].folded in self._persons and not before[0].gap.strip(" ,\n"):
            return True  # "su hija, Crohn"
        for near in before:
            is_place = near.folded in self._places and not near.gap.strip(" \n/.-")
            if is_place and (len(near.folded) > 1 or "/" in near.gap):  # "C/ Wilson"
                return True
            if near.folded not in self._particles:
                break
        if before and self._is_name_beside(before[0], is_before=True):
            return not self._opens_sentence(text, start, before[0])
        return bool(after) and (
            (after[0].capital and after[0].folded in self._places and after[0].gap.isspace())
            or self._is_name_beside(after[0], is_before=False)
        )

    def is_introduced(self, text: str, start: int, before: list[Near] | None = None) -> bool:
        """Check for a title, or the label of a field with a name or a place, before an offset.

        text (str): A folded text (see `text.fold_plain`).
        """
        before = _before(text, start) if before is None else before
        if before and before[0].folded in self._titles and not before[0].gap.strip(" .:\n"):
            return True
        line = text[max(0, start - CONTEXT_CHARS) : start].rpartition("\n")[2]
        head, _, rest = line.rpartition(":")
        words = [fold_alnum(word) for word in WORD.findall(head)][-3:]
        labelled = any("".join(words[i:]) in self._labels for i in range(len(words)))
        return labelled and all(
            w[0].isupper() or fold_alnum(w) in self._particles for w in WORD.findall(rest)
        )

    def _is_name_beside(self, near: Near, *, is_before: bool) -> bool:
        """Check whether the next word may be another part of a person's name."""
        gap = near.gap.replace("\n", " ")
        if near.text in self._acronyms or not near.capital:
            return False
        if len(near.text) > 1 and _GRADE.fullmatch(near.text):
            return False
        if len(near.folded) == 1:  # an initial: "J. Crohn", "Crohn, J."
            separators = " .," if is_before else " ,"
            return not gap.strip(separators) and near.folded not in self._particles
        if near.text.isupper() and near.folded in self._titles_after:
            return not gap.strip(" ,")
        if not gap.strip(" -") or (gap.strip() == "," and near.folded in usual_names()):
            return near.folded not in self._not_names and (near.folded,) not in self.entries
        return False

    def _opens_sentence(self, text: str, start: int, near: Near) -> bool:
        at = start - len(near.gap) - len(near.text)
        opens = bool(_SENTENCE_END.search(text[max(0, at - 10) : at]))
        ordinary = near.folded in self._ordinary or near.folded in self._openers
        return opens and ordinary and near.folded not in usual_names()

    def _has_evidence(
        self, categories: set[str], before: list[Near], after: list[Near], rest: str
    ) -> bool:
        if self._head_before(before) or self._head_after(after):
            return True
        if "drug" in categories and (_DOSE.match(rest) or self._drug_word_before(before)):
            return True
        if not categories & WITH_RESULT:
            return False
        is_score = "scale" in categories and bool(_RESULT.match(rest))
        return is_score or bool(after and after[0].folded in self._results)

    def _drug_word_before(self, before: list[Near]) -> bool:
        """Check for "toma X", "tratamiento con X"."""
        of = bool(before) and before[0].folded in ("con", "de", "with", "of")
        nearest = before[of] if len(before) > of else None
        return nearest is not None and nearest.folded in self._drug_words

    def _head_before(self, before: list[Near]) -> bool:
        """Check for a head, followed by at most one plain word, listed words and particles."""
        plain = 0
        for near in before:
            if _CLAUSE_END.search(near.gap) or near.folded in self._persons:
                return False
            if near.folded in self._heads:
                return True
            if near.folded in self._particles or (near.folded,) in self.entries:
                continue
            plain += 1
            is_name = near.capital and not _GRADE.fullmatch(near.text)
            if is_name or plain > 1 or before[0].folded not in self._particles or "," in near.gap:
                return False
        return False

    def _head_after(self, after: list[Near]) -> bool:
        for near in after:
            if near.gap.strip(" \n-'’"):
                return False
            if near.folded in self._heads_after:
                return True
            if (near.folded,) not in self.entries and near.folded != "s":
                return False
        return False


def _key(phrase: str) -> tuple[str, ...]:
    return tuple(fold_alnum(word) for word in re.split(r"[\s-]+", phrase))


def _before(text: str, start: int) -> list[Near]:
    """List the words before an offset, the nearest first."""
    found, right = [], start
    for match in reversed(list(WORD.finditer(text, max(0, start - CONTEXT_CHARS), start))):
        found.append(Near(match.group(), fold_alnum(match.group()), text[match.end() : right]))
        right = match.start()
    return found


def _after(text: str, end: int) -> list[Near]:
    found, left = [], end
    for match in WORD.finditer(text, end, end + CONTEXT_CHARS):
        found.append(Near(match.group(), fold_alnum(match.group()), text[left : match.start()]))
        left = match.end()
    return found


@cache
def load_allow_list(lang: str) -> AllowList:
    """Load the list that ships, with the ordinary words of a language."""
    return AllowList(lang)
