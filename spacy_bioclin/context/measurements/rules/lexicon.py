"""Load what a language writes around numbers: es.yml and en.yml."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import srsly

from .numbers import NumberWords
from .trie import BLANK, words_pattern

LANGS = ("es", "en")
_ARTICLES = frozenset(["a", "an", "un", "una", "los", "las", "el", "the"])


class Lexicon:
    """The words of a language, as sets and patterns.

    lang (str): One of `LANGS`.
    """

    def __init__(self, lang: str) -> None:
        data = srsly.read_yaml(Path(__file__).with_name(f"{lang}.yml"))
        self.lang = lang
        self.data: dict[str, Any] = data
        self.numbers = NumberWords(data["number_words"], data["number_joins"])
        self.comparators = {
            squeeze(form): sign
            for sign, forms in data["comparators"].items()
            for form in forms.split()
        }
        self.comparator_pattern = re.compile(
            rf"(?i)(?<![^\W_])(?:{words_pattern(_forms(data['comparators']))})(?P<rest>\s(?:{'|'.join(_ARTICLES)}))?\s{{0,2}}$"
        )
        self.comparator_ends = _last_words(_forms(data["comparators"])) | _ARTICLES
        self.comparators_after = {
            squeeze(form): sign
            for sign, forms in data["comparators_after"].items()
            for form in forms.split()
        }
        after = words_pattern(_forms(data["comparators_after"]))
        self.after_pattern = re.compile(rf"(?i)\s({after})(?![^\W_])")
        self.names = self.words("names")
        self.last_words = frozenset(name.split()[-1] for name in self.names)
        self.fillers = self.words("fillers")
        self.scores = self.words("scores")
        self.pressures = self.words("pressures")
        self.max_words = max(len(name.split()) for name in self.names)

    def may_name(self, word: str) -> bool:
        """Check whether a word may be the last one of a name or stand between it and its number."""
        return (
            not word
            or word in self.fillers
            or word in self.last_words
            or word.rstrip(".") in self.last_words
        )

    def words(self, key: str) -> frozenset[str]:
        """Get the forms of a list in lower case, with blanks."""
        return frozenset(_plain(form) for form in str(self.data[key] or "").split())

    def pattern(self, *keys: str) -> str:
        """Match any of the forms of some lists, as whole words."""
        forms = [form for key in keys for form in str(self.data[key] or "").split()]
        return rf"(?:{words_pattern(forms)})(?![^\W_])" if forms else "(?!)"


def _plain(form: str) -> str:
    return form.replace(BLANK, " ").strip().lower()


def squeeze(form: str) -> str:
    """Write a form in lower case without blanks: they may be missing in a text."""
    return "".join(form.replace(BLANK, " ").lower().split())


def _last_words(forms: list[str]) -> frozenset[str]:
    """List the last words of forms, also with what is before them and no blank between."""
    found: set[str] = set()
    for form in forms:
        words = form.lower().rstrip(".").split(BLANK)
        found.update("".join(words[first:]) for first in range(len(words)))
    return frozenset(found)


def _forms(table: dict[str, str]) -> list[str]:
    return [form for forms in table.values() for form in forms.split()]


@cache
def get_lexicon(lang: str) -> Lexicon:
    """Get the words of a language; they are loaded once."""
    return Lexicon(lang)
