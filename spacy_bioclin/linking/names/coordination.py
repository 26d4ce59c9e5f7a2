"""The words of a coordinated name and what they are, by the lists in composites.yml."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import srsly

from ...errors import BioclinError
from ...text import fold_by_char

LISTS = Path(__file__).with_name("composites.yml")
LANGS = ("en", "es")

# Blanks and commas of phrases that stay together.
_HIDDEN = str.maketrans(" ,/", "\ue000\ue001\ue002")
_SHOWN = str.maketrans("\ue000\ue001\ue002", " ,/")
_TOKEN = re.compile(r",(?=\s)|/(?=\s)|(?:\([^()]*\)|[^\s,(]|,(?!\s)|\()+(?:\s+\([^()]*\))*")
_SLASH = re.compile(r"[^\W\d_][\w'-]{2,}(?:/[^\W\d_][\w'-]{2,})+")
# "hypo- and hyperglycemia": letters that "glycemia" has at least.
_STEM_LETTERS = 4

Words = list[str]


class WordRules(NamedTuple):
    """The lists of a language as patterns of whole folded words.

    lang (str): The language.
    mark (re.Pattern[str]): What every coordinated name holds, as a mention has it.
    fixed (re.Pattern[str]): Phrases that stay together.
    coordinator, preposition, article, filler, shared, alone, head, noun, adjective, adverb, whole,
        compound (re.Pattern[str]): See composites.yml.
    prefixes (tuple[str, ...]): Beginnings of words, the longest first.
    """

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
    adverb: re.Pattern[str]
    whole: re.Pattern[str]
    compound: re.Pattern[str]
    prefixes: tuple[str, ...]

    def is_adjective(self, word: str) -> bool:
        """Whether a word describes and is no name."""
        if matches(self.head, word) or matches(self.noun, word):
            return False
        return matches(self.adjective, word) or matches(self.shared, word)


def matches(pattern: re.Pattern[str], word: str) -> bool:
    """Whether a word, without what it has in brackets, is in a list."""
    return pattern.fullmatch(fold_by_char(word.partition(" (")[0])) is not None


def n_leading(words: Words, pattern: re.Pattern[str]) -> int:
    """How many words at the beginning are in a list."""
    n = 0
    while n < len(words) and matches(pattern, words[n]):
        n += 1
    return n


def show(words: Words) -> str:
    """Words as one name, phrases as they were."""
    return " ".join(words).translate(_SHOWN)


@lru_cache(maxsize=len(LANGS))
def load_word_rules(lang: str) -> WordRules:
    """Read the lists of a language, once.

    lang (str): "en" or "es".
    RETURNS (WordRules): The patterns.
    RAISES (BioclinError): If there are no lists for the language.
    """
    if lang not in LANGS:
        raise BioclinError(
            f"No rules to split composite names of language '{lang}'."
            f" Use one of {', '.join(LANGS)}."
        )
    data = srsly.read_yaml(LISTS)
    lists = data[lang]

    def pattern(name: str) -> re.Pattern[str]:
        # An empty list matches no word: none is empty.
        return re.compile("|".join(lists[name]).replace("*", r"[\w-]*"))

    coordinators = "|".join(lists["coordinators"]).replace("asi", "as[ií]")
    fixed = [*lists["fixed"], *(word for word in lists["coordinators"] if " " in word)]
    return WordRules(
        lang=lang,
        mark=re.compile(rf"\s(?:{coordinators})\s|/", re.IGNORECASE),
        fixed=re.compile(rf"\b(?:{'|'.join(sorted(fixed, key=len, reverse=True))})\b"),
        coordinator=pattern("coordinators"),
        preposition=pattern("prepositions"),
        article=pattern("articles"),
        filler=pattern("fillers"),
        shared=re.compile(rf"(?:{pattern('shared').pattern})(?:e?s)?"),
        alone=pattern("alone"),
        head=pattern("heads"),
        noun=pattern("nouns"),
        adjective=pattern("adjectives"),
        adverb=pattern("adverbs"),
        whole=pattern("whole"),
        compound=pattern("compounds"),
        prefixes=tuple(sorted(data["prefixes"], key=len, reverse=True)),
    )


def split_conjuncts(mention: str, rules: WordRules) -> list[Words]:
    """The words between coordinators and commas.

    mention (str): A name.
    rules (WordRules): Of its language.
    RETURNS (list[Words]): Two or more lists of words, none empty; or [] if nothing is coordinated.
        Phrases and what stands in brackets behind a word belong to one word. A list has its
        coordinator at the end and its brackets closed.
    """
    if mention.count("(") != mention.count(")"):
        return []
    folded = fold_by_char(mention)
    if len(folded) == len(mention):
        for match in rules.fixed.finditer(folded):
            start, end = match.span()
            mention = mention[:start] + mention[start:end].translate(_HIDDEN) + mention[end:]
    conjuncts: list[Words] = [[]]
    coordinated = False
    n_commas = 0  # since the last coordinator: what follows them is said of one part or of all
    tokens = _TOKEN.findall(mention)
    for token in tokens:
        if _is_coordinator(token, mention, rules):
            coordinated, n_commas = True, 0
            conjuncts.append([])
        elif token == ",":
            n_commas += 1
            conjuncts.append([])
        elif len(tokens) > 1 and _SLASH.fullmatch(token) and not token.isupper():
            coordinated, n_commas = True, 0
            first, *others = token.split("/")
            conjuncts[-1].append(first)
            conjuncts.extend([other] for other in others)
        elif matches(rules.whole, token):
            return []
        else:
            conjuncts[-1].append(token)
    if not coordinated or n_commas or not conjuncts[0] or not conjuncts[-1]:
        return []
    conjuncts = [words for words in conjuncts if words]
    return _whole_words(conjuncts, rules) if len(conjuncts) > 1 else []


def _is_coordinator(token: str, mention: str, rules: WordRules) -> bool:
    """In a name with small letters a capital is none ("hepatitis E"), and E is none anyway."""
    if token == "/":
        return True
    if token.isupper() and len(token) == 1 and (token in "EU" or not mention.isupper()):
        return False
    return rules.coordinator.fullmatch(fold_by_char(token).translate(_SHOWN)) is not None


def _whole_words(conjuncts: list[Words], rules: WordRules) -> list[Words]:
    """Complete words that leave out their end: "hypo- and hyperglycemia"."""
    whole = [conjuncts[-1]]
    for words in reversed(conjuncts[:-1]):
        start = words[-1].rstrip("-") or words[-1]
        following = whole[0]
        end = ""
        if fold_by_char(start) in rules.prefixes:
            end = _without_prefix(following[0], rules.prefixes)
        elif start != words[-1]:
            hyphened = next((word for word in following if "-" in word[1:-1]), "")
            end = "-" + hyphened.rpartition("-")[2] if hyphened else ""
        whole.insert(0, [*words[:-1], start + end])
    return whole


def _without_prefix(word: str, prefixes: Sequence[str]) -> str:
    folded = fold_by_char(word)
    for prefix in prefixes:
        if folded.startswith(prefix) and len(word) - len(prefix) >= _STEM_LETTERS:
            return word[len(prefix) :].lstrip("-")
    return ""
