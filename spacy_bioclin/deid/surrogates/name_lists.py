"""First names and surnames of Faker's lists, to recognise a name and to choose one."""

import importlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import srsly

from ...text import fold_alnum
from .wording import word_set

LOCALES = {"es": "es_ES", "en": "en_US"}
# Locales for names that the language's own does not know, in this order.
OTHER_LOCALES = {
    "es": ("es_MX", "es_CO", "es_AR", "es_CL", "es_CA", "en_US"),
    "en": ("es_ES", "es_MX", "en_GB", "en_IE", "en_IN"),
}
ATTRIBUTES = {"male": "first_names_male", "female": "first_names_female", "surname": "last_names"}
MALE, FEMALE, SURNAME = ATTRIBUTES
MIN_LETTERS = 3
# Surrogates begin with a letter if so many names of each kind do, and at least one that is both a
# man's first name and a surname.
MIN_NAMES = 6
WORDS = srsly.read_yaml(Path(__file__).with_name("names.yml"))
ABBREVIATIONS: dict[str, str] = WORDS["abbreviations"]
GENDERS: dict[str, str] = WORDS["genders"]
TITLES = word_set(WORDS["titles"])
FIRST_NAME_TITLES = word_set(WORDS["first_name_titles"])
FEMALE_TITLES = word_set(WORDS["female_titles"])
WITHOUT_ACCENT = word_set(WORDS["without_accent"])
PARTICLES = word_set(WORDS["particles"])
MOSTLY_SURNAMES = word_set(WORDS["mostly_surnames"])


class NameLists(NamedTuple):
    """Names of one language.

    known (dict[str, frozenset[str]]): Folded word -> what it can be: "male", "female", "surname".
    pools (dict[tuple[str, str], tuple[str, ...]]): Kind and first letter -> names to choose from.
        Kinds are "male", "female", "surname" (exclusively), "male or surname", "female or
        surname". The letter "" means all letters.
    letters (str): Folded letters that surrogates begin with.
    """

    known: dict[str, frozenset[str]]
    pools: dict[tuple[str, str], tuple[str, ...]]
    letters: str


def provider_names(locale: str, attribute: str) -> tuple[str, ...]:
    """Read Faker's names in alphabetical order: its own may change with the version."""
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    return tuple(sorted(getattr(provider, attribute, ())))


def _kinds(locale: str) -> dict[str, frozenset[str]]:
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for kind, attribute in ATTRIBUTES.items():
        for name in provider_names(locale, attribute):
            for word in name.replace("-", " ").split():
                kinds[fold_alnum(word)].add(kind)
    for word, gender in GENDERS.items():
        kinds[word].difference_update((MALE, FEMALE))
        kinds[word].add(gender)
    return {word: frozenset(found) for word, found in kinds.items()}


def _with_accents(names: Iterable[str]) -> list[str]:
    """Keep one spelling of each name, the one with accents: "Fernández", not "Fernandez"."""
    spellings: dict[str, str] = {}
    for name in sorted(names):  # ASCII before accents
        folded = fold_alnum(name)
        if folded not in spellings or folded not in WITHOUT_ACCENT:
            spellings[folded] = name
    return sorted(spellings.values())


@cache
def own_first_names(lang: str, *, only: bool = False) -> tuple[str, ...]:
    """List the folded first names of a language's own locales.

    lang (str): "en", or Spanish for all others.
    only (bool): Leave out those that are surnames too.
    """
    language = "en" if lang == "en" else "es"
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for locale in (LOCALES[language], *OTHER_LOCALES[language]):
        if locale.startswith(language):
            for word, found in _kinds(locale).items():
                kinds[word] |= found
    unwanted = {SURNAME} if only else set()
    return tuple(
        sorted(
            word for word, found in kinds.items() if found & {MALE, FEMALE} and not found & unwanted
        )
    )


@cache
def load_names(lang: str) -> NameLists:
    """Read Faker's lists; about 0.2 s, once.

    lang (str): "en", or Spanish for all others.
    """
    language = "en" if lang == "en" else "es"
    own = _kinds(LOCALES[language])
    known = dict(own)
    for locale in OTHER_LOCALES[language]:
        for word, kinds in _kinds(locale).items():
            known.setdefault(word, kinds)
    pools: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    names = chain.from_iterable(
        provider_names(LOCALES[language], attribute) for attribute in ATTRIBUTES.values()
    )
    for name in _with_accents(set(names)):
        folded = fold_alnum(name)
        if len(folded) < MIN_LETTERS or not name.isalpha() or not "a" <= folded[0] <= "z":
            continue
        kind = " or ".join(kind for kind in ATTRIBUTES if kind in own[folded])
        for letter in (folded[0], ""):
            pools[kind, letter].append(name)
    letters = "".join(
        letter
        for letter in "abcdefghijklmnopqrstuvwxyz"
        if all(len(pools[kind, letter]) >= MIN_NAMES for kind in ATTRIBUTES)
        and pools[f"{MALE} or {SURNAME}", letter]
    )
    return NameLists(known, {key: tuple(pool) for key, pool in pools.items()}, letters)
