"""Split a coordinated name into words, and classify them by the lists in composites.yml."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import takewhile
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
# Fewest letters of a stem such as "glycemia" in "hypo- and hyperglycemia".
_STEM_LETTERS = 4

Words = list[str]


class WordRules(NamedTuple):
    """The lists of a language as patterns of whole folded words.

    lang (str): The language.
    mark (re.Pattern[str]): Occurs in every coordinated name.
    fixed (re.Pattern[str]): Phrases that stay together.
    lists (Mapping[str, re.Pattern[str]]): The other lists, see composites.yml.
    prefixes (tuple[str, ...]): Beginnings of words, the longest first.
    """

    lang: str
    mark: re.Pattern[str]
    fixed: re.Pattern[str]
    lists: Mapping[str, re.Pattern[str]]
    prefixes: tuple[str, ...]

    def matches(self, name: str, word: str) -> bool:
        """Check whether a word is in a list. See `matches`."""
        return matches(self.lists[name], word)

    def is_adjective(self, word: str) -> bool:
        """Check whether a word is an adjective, and not a name."""
        if self.matches("heads", word) or self.matches("nouns", word):
            return False
        return self.matches("adjectives", word) or self.matches("shared", word)

    def n_leading(self, words: Words, name: str) -> int:
        """Count the words at the beginning that are in a list."""
        return len(list(takewhile(partial(self.matches, name), words)))


def matches(pattern: re.Pattern[str], word: str) -> bool:
    """Check whether a word, without what it has in brackets, matches a pattern."""
    return pattern.fullmatch(fold_by_char(word.partition(" (")[0])) is not None


def show(words: Words) -> str:
    """Join words to one name, with phrases as they were."""
    return " ".join(words).translate(_SHOWN)


@lru_cache(maxsize=len(LANGS))
def load_word_rules(lang: str) -> WordRules:
    """Read the lists of a language, once.

    lang (str): "en" or "es".
    RETURNS (WordRules): The patterns.
    RAISES (BioclinError): There are no lists for the language.
    """
    if lang not in LANGS:
        raise BioclinError(
            f"No rules to split composite names of language '{lang}'."
            f" Use one of {', '.join(LANGS)}."
        )
    data = srsly.read_yaml(LISTS)
    words = data[lang]
    # An empty list matches no word, since no word is empty.
    lists = {
        name: re.compile("|".join(values).replace("*", r"[\w-]*")) for name, values in words.items()
    }
    lists["shared"] = re.compile(rf"(?:{lists['shared'].pattern})(?:e?s)?")
    coordinators = "|".join(words["coordinators"]).replace("asi", "as[ií]")
    fixed = [*words["fixed"], *(word for word in words["coordinators"] if " " in word)]
    return WordRules(
        lang=lang,
        mark=re.compile(rf"\s(?:{coordinators})\s|/", re.IGNORECASE),
        fixed=re.compile(rf"\b(?:{'|'.join(sorted(fixed, key=len, reverse=True))})\b"),
        lists=lists,
        prefixes=tuple(sorted(data["prefixes"], key=len, reverse=True)),
    )


def split_conjuncts(mention: str, rules: WordRules) -> list[Words]:
    """Split a name at coordinators and commas.

    mention (str): A name.
    rules (WordRules): The rules of its language.
    RETURNS (list[Words]): Two or more lists of words, none empty; or [] if nothing is coordinated.
        Phrases count as one word, and brackets after a word belong to it. A valid list has a
        coordinator before its last part, and its brackets are closed.
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
    n_commas = 0  # since the last coordinator; words after them belong to one part or to all
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
        elif rules.matches("whole", token):
            return []
        else:
            conjuncts[-1].append(token)
    if not coordinated or n_commas or not conjuncts[0] or not conjuncts[-1]:
        return []
    conjuncts = [words for words in conjuncts if words]
    return _whole_words(conjuncts, rules) if len(conjuncts) > 1 else []


def _is_coordinator(token: str, mention: str, rules: WordRules) -> bool:
    """Check for a coordinator. A capital in a name with small letters is not one ("hepatitis E"),
    and E never is."""
    if token == "/":
        return True
    if token.isupper() and len(token) == 1 and (token in "EU" or not mention.isupper()):
        return False
    return rules.lists["coordinators"].fullmatch(fold_by_char(token).translate(_SHOWN)) is not None


def _whole_words(conjuncts: list[Words], rules: WordRules) -> list[Words]:
    """Complete words whose end is left out: "hypo- and hyperglycemia"."""
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
