"""Surrogates of streets, hospitals, health centres and organisations.

The words that say what a thing is stay (Calle, Hospital General Universitario, nº, piso); each run
of words that say which one it is becomes a name from a list (places.yml); numbers become others.
"""

import re
from collections.abc import Collection
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ...text import compose, fold_alnum
from ..secret import Secret
from .identifiers import DIGITS, LETTERS, NON_ZERO, draw
from .places import load_gazetteer, load_places, make_place, make_postcode
from .wording import choose, is_upper, match_case

MAX_ACRONYM = 6
DOORS = "ABCDEFGH"
COMPASS = frozenset("nsew")
_TOKEN = re.compile(r"\bs/n\b|\bc[/\\]|\b[pn]\.?[ºª°]|[^\W\d_ºª]+(?:['’]s\b)?|\d+", re.IGNORECASE)
# Between the words of one name there is nothing else than this.
_GAP = re.compile(r"[\s\"'“”«»‘’&.®™-]*")
_ARTICLES = frozenset(("la", "las", "el", "los", "les", "els", "del", "the"))
GENERIC, CONNECTOR, NAME, NUMBER, LETTER = "generic", "connector", "name", "number", "letter"


class Run(NamedTuple):
    """A stretch of an address that is replaced.

    kind (str): "name", "number" or "letter".
    lead (str): What is written before the surrogate, of the words that fall out: "de " of "del".
    own_start (int): Where the name begins without its article.
    """

    start: int
    end: int
    kind: str
    lead: str
    own_start: int


@cache
def _load_words(kind: str) -> frozenset[str]:
    return frozenset(fold_alnum(word) for word in load_places()[kind].split())


def make_street(
    value: str, secret: Secret, lang: str, forbidden: Collection[str] = ()
) -> str | None:
    """Make another address: "C/ Ramón y Cajal, nº 3, 2º B" becomes "C/ Los Robles, nº 7, 5º F".

    RETURNS (str | None): None if there is nothing to replace.
    """
    return _replace(value, "street", secret, lang, forbidden)


def make_institution(
    value: str, kind: str, secret: Secret, lang: str, forbidden: Collection[str] = ()
) -> str | None:
    """Make another hospital, health centre or organisation.

    kind (str): "hospital", "health_centre" or "organization". Of generic words alone
        ("Hospital Clínico") the noun gets a name.
    RETURNS (str | None): None if there is nothing to replace.
    """
    return _replace(value, kind, secret, lang, forbidden)


def _replace(
    value: str, kind: str, secret: Secret, lang: str, forbidden: Collection[str]
) -> str | None:
    value = compose(value)
    runs = find_runs(value, kind == "street", lang)
    if kind != "street" and not any(run.kind == NAME for run in runs):
        return _name_generic(value, kind, secret, lang, forbidden)
    new, place = [], 0
    for run in runs:
        surrogate = _make_run(value, run, kind, secret, lang, forbidden)
        if surrogate is None:
            return None
        new += [value[place : run.start], run.lead, surrogate]
        place = run.end
    new.append(value[place:])
    text = "".join(new)
    return text if fold_alnum(text) != fold_alnum(value) else None


def _name_generic(
    value: str, kind: str, secret: Secret, lang: str, forbidden: Collection[str]
) -> str | None:
    """RETURNS (str | None): "Hospital Clínico" as "Hospital San Telmo": the noun and a name. None
    for a noun alone."""
    words = value.split()
    name = choose(_pool(kind, lang), secret, kind, value, forbidden)
    if name is None or len(words) < 2:
        return None
    name = name.upper() if is_upper(value) else name
    return f"{name} {words[-1]}" if lang == "en" else f"{words[0]} {name}"


def find_runs(value: str, is_street: bool, lang: str) -> list[Run]:
    """RETURNS (list[Run]): What is to be replaced, in order."""
    tokens = list(_TOKEN.finditer(value))
    kinds = _kinds(tokens, is_street, lang)
    joined = [
        _GAP.fullmatch(value[one.end() : two.start()]) is not None for one, two in pairwise(tokens)
    ]
    runs: list[Run] = []
    i = 0
    while i < len(tokens):
        if kinds[i] in (NUMBER, LETTER) and not (not is_street and _leads(kinds, joined, i)):
            start, end = tokens[i].span()
            runs.append(Run(start, end, kinds[i], "", start))
        elif kinds[i] in (NAME, NUMBER):
            last = _last_of_run(kinds, joined, i, is_street)
            runs.extend(_name_runs(value, tokens, kinds, joined, i, last, lang))
            i = last
        i += 1
    return runs


def _kinds(tokens: list[re.Match[str]], is_street: bool, lang: str) -> list[str]:
    generic = _load_words("street_words" if is_street else "institution_words")
    connectors = _load_words("connectors")
    kinds: list[str] = []
    for token in tokens:
        text, folded = token.group(), fold_alnum(token.group())
        if text.isdigit():
            kinds.append(NUMBER)
        elif folded in COMPASS and lang == "en":
            kinds.append(GENERIC)
        elif is_street and len(folded) == 1 and kinds and kinds[-1] in (NUMBER, LETTER):
            kinds.append(LETTER)
        elif folded in generic:
            kinds.append(GENERIC)
        elif folded in connectors:
            kinds.append(CONNECTOR)
        elif len(folded) == 1:
            kinds.append(LETTER if is_street else GENERIC)
        else:
            kinds.append(NAME)
    return kinds


def _leads(kinds: list[str], joined: list[bool], i: int) -> bool:
    """RETURNS (bool): A number begins a name: "12 de Octubre"."""
    while i < len(joined) and joined[i]:
        i += 1
        if kinds[i] != CONNECTOR:
            return kinds[i] == NAME
    return False


def _last_of_run(kinds: list[str], joined: list[bool], i: int, is_street: bool) -> int:
    last = i
    while i < len(joined) and joined[i] and kinds[i + 1] in (NAME, CONNECTOR, NUMBER):
        i += 1
        if kinds[i] == NUMBER and (is_street or not _leads(kinds, joined, i)):
            break
        if kinds[i] == NAME:
            last = i
    return last


def _name_runs(
    value: str,
    tokens: list[re.Match[str]],
    kinds: list[str],
    joined: list[bool],
    first: int,
    last: int,
    lang: str,
) -> list[Run]:
    """RETURNS (list[Run]): One, or two where a known town ends it ("Carlos Haya de Málaga")."""
    own_start, end = tokens[first].start(), tokens[last].end()
    start, lead = own_start, ""
    if first and joined[first - 1] and tokens[first - 1].group().lower() in _ARTICLES:
        article = tokens[first - 1]
        start = article.start()
        lead = match_case(article.group(), "de ") if article.group().lower() == "del" else ""
    for i in range(first + 1, last + 1):
        tail = value[tokens[i].start() : end]
        if kinds[i - 1] == CONNECTOR and _is_known(tail, lang):
            before = max(j for j in range(first, i) if kinds[j] != CONNECTOR)
            return [
                Run(start, tokens[before].end(), NAME, lead, own_start),
                Run(tokens[i].start(), end, NAME, "", tokens[i].start()),
            ]
    return [Run(start, end, NAME, lead, own_start)]


def _is_known(text: str, lang: str) -> bool:
    places = load_gazetteer(lang)
    return fold_alnum(text) in places.towns or fold_alnum(text) in places.areas


def _make_run(
    value: str, run: Run, kind: str, secret: Secret, lang: str, forbidden: Collection[str]
) -> str | None:
    whole, own = value[run.start : run.end], value[run.own_start : run.end]
    if run.kind == NUMBER:
        if len(own) == 5:
            return make_postcode(own, secret, lang, forbidden)
        alphabets = ["0" if own[0] == "0" and len(own) > 1 else NON_ZERO] + [DIGITS] * (
            len(own) - 1
        )
        return _draw_other(own, alphabets, secret)
    if run.kind == LETTER:
        return match_case(own, _draw_other(own.upper(), [DOORS], secret))
    if _is_known(whole, lang) or _is_known(own, lang):
        known = whole if _is_known(whole, lang) else own
        return make_place(known, secret, lang, forbidden)
    is_word = own.isalpha() and len(own) <= MAX_ACRONYM
    if is_word and own.isupper() and (own == value or not is_upper(value)):
        return _draw_other(own, [LETTERS] * len(own), secret)
    name = choose(_pool(kind, lang), secret, kind, own, forbidden)
    if name is None:
        return None
    # One word in lower case ("Hospital La paz") says nothing.
    return name.upper() if is_upper(value) else name.lower() if value.islower() else name


def _draw_other(old: str, alphabets: list[str], secret: Secret) -> str:
    drawn = draw(alphabets, secret, "address", old)
    return next((new for new in drawn if new != old), old)


@cache
def _pool(kind: str, lang: str) -> tuple[str, ...]:
    names = {"street": "streets", "health_centre": "streets", "hospital": "hospitals"}
    language = "en" if lang == "en" else "es"
    return tuple(load_places()[f"{names.get(kind, 'organizations')}_{language}"])
