"""Load what differs between the languages from rules.yml."""

from pathlib import Path
from typing import NamedTuple

import srsly


class LanguageRules(NamedTuple):
    """The rules of one language. Words are in lower case, without a final point.

    titles (frozenset[str]): Abbreviations that are always followed by another word. Their point
        never ends a sentence, and the tokenizer keeps it with the word. None may be an entity
        ("Ac.", "Ca.").
    abbreviations (frozenset[str]): Abbreviations that can end a sentence, but only before a capital
        letter. Words without a vowel ("cm", "mg", "lpm") need not be listed.
    openers (frozenset[str]): Words that begin sentences. After a single capital letter ("E. coli",
        "J. Pérez", "vitamina C. Se inicia") only they show that a sentence ended.
    unfinished (frozenset[str]): Words that can end neither a line nor a sentence.
    tokens (tuple[str, ...]): Patterns of tokens that the shared patterns would split elsewhere.
    """

    titles: frozenset[str]
    abbreviations: frozenset[str]
    openers: frozenset[str]
    unfinished: frozenset[str]
    tokens: tuple[str, ...]


def _load_rules() -> dict[str, LanguageRules]:
    return {
        lang: LanguageRules(
            titles=frozenset(data["titles"].split()),
            abbreviations=frozenset(data["abbreviations"].split()),
            openers=frozenset(data["openers"].split()),
            unfinished=frozenset(data["unfinished"].split()),
            tokens=tuple(data["tokens"]),
        )
        for lang, data in srsly.read_yaml(Path(__file__).with_suffix(".yml")).items()
    }


RULES = _load_rules()
