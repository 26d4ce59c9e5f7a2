"""Names that stand for several concepts: "breast and ovarian cancer", "cáncer de mama y ovario".

What the parts share is said once, and which words these are follows from the order of words in the
language and from the lists in composites.yml:

- codes: "type 1 and 2 diabetes", "hepatitis B y C";
- beginnings of words: "hypo- and hyperglycemia", "supra e infratentorial";
- words around a preposition: "cancer of the breast and ovary", "dolor y rigidez de rodilla";
- English, the words at the end: "Duchenne or Becker muscular dystrophy"; or those before the last
  word of the first part: "ventricular tachycardia and fibrillation";
- Spanish, the words before the adjectives: "metástasis hepáticas y pulmonares".

Names that are known as a whole ("head and neck cancer syndrome") are the caller's affair.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import srsly

from ..errors import BioclinError

RULES = Path(__file__).with_name("composites.yml")
LANGS = ("en", "es")
# Longer mentions, and mentions of more parts, are left whole.
MAX_CHARACTERS, MAX_PARTS = 250, 12

# Blanks and commas of phrases that stay together.
_HIDDEN = str.maketrans(" ,", "\ue000\ue001")
_SHOWN = str.maketrans("\ue000\ue001", " ,")
_TOKEN = re.compile(r",(?=\s)|/(?=\s)|(?:\([^()]*\)|[^\s,(]|,(?!\s)|\()+(?:\s+\([^()]*\))*")
_SLASH = re.compile(r"[^\W\d_][\w'-]{2,}(?:/[^\W\d_][\w'-]{2,})+")
_CODE = re.compile(r"[A-Z]?\d{1,4}[A-Za-z]?|[IVX]{1,4}[ABCabc]?|[A-Zα-ω]")
_STEM_AND_CODE = re.compile(r"([^\W\d_]{2,}-?)(\d{1,3}[A-Za-z]?)")
_STEM_LETTERS = 4

Words = list[str]


class _Rules(NamedTuple):
    """The lists of a language as patterns of whole folded words."""

    lang: str
    mark: re.Pattern[str]
    fixed: re.Pattern[str]
    coordinator: re.Pattern[str]
    preposition: re.Pattern[str]
    article: re.Pattern[str]
    filler: re.Pattern[str]
    shared: re.Pattern[str]
    alone: re.Pattern[str]
    head: re.Pattern[str]
    noun: re.Pattern[str]
    adjective: re.Pattern[str]
    prefixes: tuple[str, ...]

    def is_adjective(self, word: str) -> bool:
        folded = _fold(word)
        if self.head.fullmatch(folded) or self.noun.fullmatch(folded):
            return False
        return bool(self.adjective.fullmatch(folded) or self.shared.fullmatch(folded))

    def is_head(self, word: str) -> bool:
        return bool(self.head.fullmatch(_fold(word)))

    def is_shared(self, word: str) -> bool:
        return bool(self.shared.fullmatch(_fold(word)))

    def is_preposition(self, word: str) -> bool:
        return bool(self.preposition.fullmatch(_fold(word)))


def split_composite(mention: str, lang: str) -> tuple[str, ...]:
    """Take a coordinated name apart.

    mention (str): What a text calls one or several concepts.
    lang (str): "en" or "es".
    RETURNS (tuple[str, ...]): The name of each part, or the mention alone if it has no parts.
    RAISES (BioclinError): If there are no rules for the language.
    """
    rules = _load_rules(lang)
    if len(mention) > MAX_CHARACTERS or not rules.mark.search(mention):
        return (mention,)
    parts = _parts(_conjuncts(mention, rules), rules)
    names = tuple(dict.fromkeys(" ".join(part).translate(_SHOWN) for part in parts))
    if not 1 < len(names) <= MAX_PARTS:
        return (mention,)
    return names


@lru_cache(maxsize=4)
def _load_rules(lang: str) -> _Rules:
    if lang not in LANGS:
        raise BioclinError(
            f"No rules to split composite names of language '{lang}'."
            f" Use one of {', '.join(LANGS)}."
        )
    data = srsly.read_yaml(RULES)
    lists = data[lang]

    def pattern(name: str) -> re.Pattern[str]:
        return re.compile("|".join(lists.get(name, ())).replace("*", r"[\w-]*"))

    marks = "|".join(lists["coordinators"]).replace("asi", "as[ií]")
    fixed = "|".join(sorted(lists["fixed"], key=len, reverse=True))
    return _Rules(
        lang=lang,
        mark=re.compile(rf"\s(?:{marks})\s|/", re.IGNORECASE),
        fixed=re.compile(
            rf"\b(?:{fixed}|{'|'.join(c for c in lists['coordinators'] if ' ' in c)})\b"
        ),
        coordinator=pattern("coordinators"),
        preposition=pattern("prepositions"),
        article=pattern("articles"),
        filler=pattern("fillers"),
        shared=re.compile(rf"(?:{pattern('shared').pattern})(?:e?s)?"),
        alone=pattern("alone"),
        head=pattern("heads"),
        noun=pattern("nouns"),
        adjective=pattern("adjectives"),
        prefixes=tuple(sorted(data["prefixes"], key=len, reverse=True)),
    )


def _fold(text: str) -> str:
    """Lower case without accents; of the same length, but for letters such as "İ"."""
    lower = text.lower()
    if lower.isascii():
        return lower
    return "".join(unicodedata.normalize("NFD", char)[0] for char in lower)


# --- from a mention to its conjuncts ---


def _conjuncts(mention: str, rules: _Rules) -> list[Words]:
    """The words between coordinators and commas; empty if nothing is coordinated."""
    folded = _fold(mention)
    if len(folded) == len(mention):
        for match in rules.fixed.finditer(folded):
            start, end = match.span()
            mention = mention[:start] + mention[start:end].translate(_HIDDEN) + mention[end:]
    conjuncts: list[Words] = [[]]
    coordinated = False
    tokens = _TOKEN.findall(mention)
    for token in tokens:
        if _is_coordinator(token, mention, rules):
            coordinated = True
            conjuncts.append([])
        elif token == ",":
            conjuncts.append([])
        elif len(tokens) > 1 and _SLASH.fullmatch(token) and not token.isupper():
            coordinated = True
            first, *others = token.split("/")
            conjuncts[-1].append(first)
            conjuncts.extend([other] for other in others)
        else:
            conjuncts[-1].append(token)
    if not coordinated or not conjuncts[0] or not conjuncts[-1]:
        return []
    return [words for words in conjuncts if words]


def _is_coordinator(token: str, mention: str, rules: _Rules) -> bool:
    """In a name with small letters a capital is none: "hepatitis E"."""
    if token == "/":
        return True
    if token.isupper() and (len(token) == 1 and (token in "EU" or not mention.isupper())):
        return False
    return bool(rules.coordinator.fullmatch(_fold(token).translate(_SHOWN)))


# --- what the parts share ---


def _parts(conjuncts: list[Words], rules: _Rules) -> list[Words]:
    """The words of each part; less than two where the name is no composite."""
    if len(conjuncts) < 2:
        return []
    coded = _codes(conjuncts)
    if coded:
        return coded
    conjuncts = _whole_words(conjuncts, rules)
    fillers = [_n_leading(words, rules.filler) for words in conjuncts]
    conjuncts = [words[n:] for words, n in zip(conjuncts, fillers, strict=True)]
    if not all(conjuncts):
        return []
    if rules.lang == "en" and fillers[-1] and len(conjuncts[-1]) == 1:  # "and other cancers"
        head = conjuncts[-1]
        return [w if rules.is_head(w[-1]) else w + head for w in conjuncts[:-1]] + [head]
    return _around_preposition(conjuncts, rules) or _without_preposition(conjuncts, rules)


def _codes(conjuncts: list[Words]) -> list[Words]:
    """Letters and numbers: "type 1 and (type) 2 diabetes", "MEN1 and 2"."""
    first, others = conjuncts[0], conjuncts[1:]
    prefix, code = first[:-1], first[-1]
    stem = _STEM_AND_CODE.fullmatch(code)
    if not _CODE.fullmatch(code) and not stem:
        return []
    leader = _fold(prefix[-1]) if prefix else None
    others = [words[1:] if _fold(words[0]) == leader and words[1:] else words for words in others]
    if any(len(words) > 1 for words in others[:-1]):
        return []
    codes, tail = [words[0] for words in others], others[-1][1:]
    if not all(map(_CODE.fullmatch, codes)) or not (prefix or tail or stem):
        return []
    if stem:
        codes = [stem[1] + word if word[0].isdigit() else word for word in codes]
    return [[*prefix, word, *tail] for word in (code, *codes)]


def _whole_words(conjuncts: list[Words], rules: _Rules) -> list[Words]:
    """Complete words that leave out their end: "hypo- and hyperglycemia"."""
    whole = [conjuncts[-1]]
    for words in reversed(conjuncts[:-1]):
        start = words[-1].rstrip("-")
        following = whole[0]
        end = ""
        if _fold(start) in rules.prefixes:
            end = _without_prefix(following[0], rules.prefixes)
        elif start != words[-1]:
            hyphened = next((word for word in following if "-" in word[1:-1]), "")
            end = "-" + hyphened.rpartition("-")[2] if hyphened else ""
        whole.insert(0, [*words[:-1], start + end] if end else words)
    return whole


def _without_prefix(word: str, prefixes: Sequence[str]) -> str:
    folded = _fold(word)
    for prefix in prefixes:
        if folded.startswith(prefix) and len(word) - len(prefix) >= _STEM_LETTERS:
            return word[len(prefix) :].lstrip("-")
    return ""


def _n_leading(words: Words, pattern: re.Pattern[str]) -> int:
    n = 0
    while n < len(words) and pattern.fullmatch(_fold(words[n])):
        n += 1
    return n


def _around_preposition(conjuncts: list[Words], rules: _Rules) -> list[Words]:
    """Parts that share what stands before a preposition, or what stands after it."""
    found = _first_preposition(conjuncts, rules)
    if found is None:
        return []
    index, position = found
    words = conjuncts[index]
    left = [*conjuncts[:index], words[:position]]
    rest = words[position + 1 :]
    n_articles = _n_leading(rest, rules.article)
    link, right = words[position : position + 1 + n_articles], [rest[n_articles:]]
    right += conjuncts[index + 1 :]
    if not right[0]:
        return []
    left_parts = _without_preposition(left, rules) if index else left
    if not left_parts:
        return []
    tails, names = _tails(link, right, rules)
    with_tail = [w for w in left_parts if not rules.alone.fullmatch(_fold(w[-1]))]
    with_tail = with_tail or left_parts[-1:]
    bare = [words for words in left_parts if words not in with_tail]
    return bare + [[*words, *tail] for words in with_tail for tail in tails] + names


def _first_preposition(conjuncts: list[Words], rules: _Rules) -> tuple[int, int] | None:
    """Conjunct and position of the first preposition that has words before it."""
    for index, words in enumerate(conjuncts):
        for position in range(1, len(words) - 1):
            if rules.is_preposition(words[position]):
                return index, position
    return None


def _tails(link: Words, right: list[Words], rules: _Rules) -> tuple[list[Words], list[Words]]:
    """What follows a preposition, once for each part, and parts that are names of their own."""
    names: list[Words] = []
    while len(right) > 1 and _is_name(right[-1], rules) and not _is_name(right[0], rules):
        names.insert(0, right.pop())
    if len(right) > 1:
        right = _spanish_tails(right, rules) if rules.lang == "es" else _english_tails(right, rules)
    tails = []
    for words in right:
        own = rules.is_preposition(words[0])
        if rules.lang == "es" and words is not right[0]:
            own = own or rules.is_adjective(words[0])  # "dolor de cabeza y abdominal"
        article = bool(rules.article.fullmatch(_fold(words[0])))
        tails.append(words if own else [*link[: 1 if article else None], *words])
    return tails, names


def _english_tails(right: list[Words], rules: _Rules) -> list[Words]:
    """ "of the small and large bowel" shares a word at the end; most share none."""
    first, last = right[0], right[-1]
    shares = len(first) == 1 < len(last) and rules.is_adjective(first[0])
    return _english(right, rules) if shares else right


def _spanish_tails(right: list[Words], rules: _Rules) -> list[Words]:
    """Adjectives of the noun after the preposition ("de células grandes y pequeñas"), and one at
    the end that holds for all ("de mama y ovario hereditario")."""
    if all(rules.is_adjective(words[0]) for words in right[1:]):
        return _spanish(right, rules) if rules.is_adjective(right[0][-1]) else right
    shared = right[-1][-1:]
    n_shared = sum(rules.is_shared(words[-1]) for words in right)
    if len(right[-1]) > 1 and n_shared == 1 and rules.is_shared(shared[0]):
        return [*([*words, *shared] for words in right[:-1]), right[-1]]
    return right


def _is_name(words: Words, rules: _Rules) -> bool:
    """Whether words are a name of their own: in Spanish the first, in English the last counts."""
    return rules.is_head(words[0] if rules.lang == "es" else words[-1])


def _without_preposition(conjuncts: list[Words], rules: _Rules) -> list[Words]:
    return _spanish(conjuncts, rules) if rules.lang == "es" else _english(conjuncts, rules)


def _english(conjuncts: list[Words], rules: _Rules) -> list[Words]:
    """Shared words at the end, and some at the beginning."""
    n_articles = [_n_leading(words, rules.article) for words in conjuncts]
    conjuncts = [words[n:] or words for words, n in zip(conjuncts, n_articles, strict=True)]
    first, last = conjuncts[0], conjuncts[-1]
    if len(last) == 1:
        if len(first) > 1 and rules.is_adjective(first[0]):
            others = [
                [*first[:-1], *words] if len(words) == 1 else words for words in conjuncts[1:]
            ]
            return [first, *others]
        return conjuncts
    lead = _lead(first, last, rules)
    head = _english_head(first, last, rules)
    parts = [words if rules.is_head(words[-1]) else [*words, *head] for words in conjuncts[:-1]] + [
        last
    ]
    if rules.is_head(first[-1]) and first[-1] != last[-1]:
        lead = []
    return [parts[0], *([*lead, *words] for words in parts[1:])]


def _lead(first: Words, last: Words, rules: _Rules) -> Words:
    """Words that hold for all parts: "hereditary breast and ovarian cancer"."""
    n = _n_leading(first[:-1], rules.shared)
    return first[:n] if n and not rules.is_shared(last[0]) else []


def _english_head(first: Words, last: Words, rules: _Rules) -> Words:
    """The last word, and adjectives before it that cannot be all of what is said of it."""
    start = len(last) - 1
    if not rules.is_shared(last[0]) or rules.is_shared(first[-1]):
        while start > 1 and rules.is_adjective(last[start - 1]):
            start -= 1
    return last[start:]


def _spanish(conjuncts: list[Words], rules: _Rules) -> list[Words]:
    """Shared words at the beginning: the noun of the first part for the adjectives of others."""
    first = conjuncts[0]
    parts = [first]
    for words in conjuncts[1:]:
        if rules.is_adjective(words[0]) or rules.is_preposition(words[0]):
            parts.append([*_noun_phrase(first, rules, rules.is_shared(words[0])), *words])
        else:
            parts.append(words)
    return parts


def _noun_phrase(words: Words, rules: _Rules, same_kind: bool = False) -> Words:
    """Words without their last adjectives: those of course and degree, and another one; only one
    kind of them where the adjective that comes instead is of that kind."""
    end = len(words)
    while end > 1 and rules.is_shared(words[end - 1]):
        end -= 1
    if same_kind and end < len(words):
        return words[:end]
    if end > 1 and rules.is_adjective(words[end - 1]):
        end -= 1
    return words[:end]
