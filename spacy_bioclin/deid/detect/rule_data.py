"""Compile the entries of rules_*.yml; rules_common.yml explains the fields."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import phonenumbers
import srsly

from ...errors import BioclinError
from ...text import MIN_CHARS
from ..surrogates.name_lists import PARTICLES, own_first_names
from .allow_list import load_allow_list, usual_names
from .checks import CHECKS, Check, parse_phone

LANGS = ("es", "en")

# Most labels share their separator, and many words their rule.
_compile = cache(re.compile)

_MACRO = re.compile(r"(?<!\?P)<(\w+)>")
_LETTERS = re.compile(f"[a-z]{{{MIN_CHARS},}}")
# A letter or a choice of letters that a label begins with.
_LABEL_ITEM = re.compile(r"(?:(?P<letter>[a-z])|\[(?P<letters>[a-z]+)\])(?P<optional>\??)(?![*{+])")


class Rule(NamedTuple):
    """A compiled rule.

    case (bool): The pattern is case-sensitive.
    label, separator (re.Pattern | None): What is before a value.
    behind (re.Pattern | None): A value right before a label.
    more (re.Pattern | None): What is between two values of one label.
    """

    kind: str
    phi_type: str
    pattern: re.Pattern[str]
    case: bool
    confidence: float
    check: Check | None
    passed: float
    failed: float
    context: frozenset[str]
    before: re.Pattern[str] | None
    after: re.Pattern[str] | None
    with_context: float
    label: re.Pattern[str] | None
    separator: re.Pattern[str] | None
    behind: re.Pattern[str] | None
    more: re.Pattern[str] | None


@cache
def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = srsly.read_yaml(Path(__file__).with_name(f"rules_{name}.yml"))
    return content


def read_entries(*langs: str) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Read the rules of some languages after those of every language.

    langs (str): Of LANGS.
    YIELDS (tuple[dict, dict]): The entry of a rule, and its macros.
    """
    common: dict[str, str] = _read("common")["macros"]
    yield from ((entry, common) for entry in _read("common")["rules"])
    for lang in dict.fromkeys(langs):
        macros = common
        for name in (lang, f"{lang}_notes"):
            content = _read(name)
            macros = macros | content["macros"]
            for entry in content["rules"]:
                yield entry, macros


# First names that are other words first.
_NOT_FIRST = frozenset(
    ("del", "nacio", "alta", "che", "corona", "transito", "salud", "segundo", "gene")
)


@cache
def first_names(lang: str, *, alone: bool) -> tuple[str, ...]:
    """List folded first names of a language, in ASCII.

    alone (bool): Leave out those that are surnames or ordinary words as well: with them alone,
        nobody is named. Eponyms and drugs are always left out.
    """
    allow_list = load_allow_list(lang)
    return tuple(
        word
        for word in own_first_names(lang, only=alone)
        if len(word) >= MIN_CHARS + alone
        and word.isascii()
        and word not in _NOT_FIRST
        and (word,) not in allow_list.entries
        and not (alone and allow_list.is_ordinary(word))
    )


def make_rule(entry: dict[str, Any], macros: dict[str, str], label: str | None = None) -> Rule:
    """Compile a rule.

    entry (dict[str, Any]): See rules_common.yml.
    macros (dict[str, str]): Name in <name> -> pattern.
    label (str | None): Pattern of a label.
    """

    def compiled(key: str, suffix: str = "") -> re.Pattern[str] | None:
        return _compile(f"(?:{expand(entry[key], macros)}){suffix}") if key in entry else None

    source = expand(entry["pattern"], macros)
    pattern = _compile(source)
    confidence = entry["confidence"]
    check = CHECKS[entry["check"]] if "check" in entry else None
    if "ends_in_first_name" in entry:
        check = _make_name_check(entry["ends_in_first_name"])
    if entry.get("usual_name"):
        check = has_usual_name
    if "phone" in entry:
        check = _make_phone_check(entry["phone"])
    separator = behind = None
    if label is not None:
        separator = _compile(expand(entry.get("separator", "<separator>"), macros))
    if label is not None and "behind" in entry:
        value = source if "v" in pattern.groupindex else f"(?P<v>{source})"
        behind = _compile(rf"(?<![0-9a-z])(?<![a-z]-){value}{expand(entry['behind'], macros)}\Z")
    return Rule(
        kind=entry["kind"],
        phi_type=entry["type"],
        pattern=pattern,
        case=bool(entry.get("case")),
        confidence=confidence,
        check=check,
        passed=entry.get("passed", confidence),
        failed=entry.get("failed", confidence),
        context=frozenset(entry.get("context", "").split()),
        before=compiled("before", r"\Z"),
        after=compiled("after"),
        with_context=entry.get("with_context", 0.0),
        label=None if label is None else _compile(label),
        separator=separator,
        behind=behind,
        more=compiled("more"),
    )


def make_label_rules(entry: dict[str, Any], macros: dict[str, str]) -> Iterator[tuple[str, Rule]]:
    """Compile one rule for each first word of the labels, which is found faster.

    YIELDS (tuple[str, Rule]): First word, and the rule for the labels that begin with it.
    RAISES (BioclinError): A label does not begin with a whole word.
    """
    groups: dict[str, list[str]] = {}
    dotted = ["[.] ?".join(acronym) + "[.]?" for acronym in entry.get("acronyms", ())]
    for label in [*entry["labels"], *entry.get("acronyms", ()), *dotted]:
        for word in _first_words(label, entry["kind"]):
            groups.setdefault(word, []).append(expand(label, macros))
    for word, labels in groups.items():
        labels.sort(key=len, reverse=True)
        yield word, make_rule(entry, macros, rf"(?:{'|'.join(labels)})(?![a-z])")


def _first_words(label: str, kind: str) -> set[str]:
    """List the first words of a label: "medic[oa]s?[.]?" -> medico, medica, medicos, medicas."""
    words, at = {""}, 0
    while item := _LABEL_ITEM.match(label, at):
        letters = item["letters"] or item["letter"]
        longer = {word + letter for word in words for letter in letters}
        words, at = (words | longer if item["optional"] else longer), item.end()
    if "" in words or re.match(r"\(\?:[a-z]", label[at:]):
        raise BioclinError(
            f"{kind}: label {label!r} does not begin with a whole word; write one label for each"
        )
    return words


def expand(pattern: str, macros: dict[str, str]) -> str:
    """Replace every <name> in a pattern by its macro.

    pattern (str): A pattern of rules_*.yml.
    macros (dict[str, str]): Name in <name> -> pattern.
    RETURNS (str): A regular expression.
    """
    return _MACRO.sub(lambda m: f"(?:{expand(macros[m[1]], macros)})", pattern)


def _make_name_check(lang: str) -> Check:
    names = frozenset(first_names(lang, alone=False))

    def ends_in_first_name(value: str) -> bool:
        return value.rpartition(",")[2].split()[0] in names

    return ends_in_first_name


def has_usual_name(value: str) -> bool:
    """Check whether the first word of a value, folded, is a first name or surname of the lists.

    Initials and particles do not count ("m. de la torre").
    """
    words = (word for word in _LETTERS.findall(value) if word not in PARTICLES)
    first = next(words, "")
    return first in usual_names() and first not in _NOT_FIRST


def _make_phone_check(regions: list[str]) -> Check:
    def is_phone(number: str) -> bool:
        parsed = (parse_phone(number, region) for region in regions)
        return any(one is not None and phonenumbers.is_valid_number(one) for one in parsed)

    return is_phone
