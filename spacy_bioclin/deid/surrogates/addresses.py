"""Surrogates of streets, hospitals, health centres and organisations.

The generic words stay (Calle, Hospital General Universitario, nº, piso); each run of words that
identify the place becomes a name from a list (places.yml); numbers become others.
"""

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ...rewrite import rewrite
from ...text import compose, fold_alnum
from .context import DIGITS, LETTERS, NON_ZERO, SurrogateContext
from .places import load_gazetteer, load_places, make_place, make_postcode
from .wording import is_upper, match_case

MAX_ACRONYM = 6
DOORS = "ABCDEFGH"
COMPASS = frozenset("nsew")
_TOKEN = re.compile(r"\bs/n\b|\bc[/\\]|\b[pn]\.?[ºª°]|[^\W\d_ºª]+(?:['’]s\b)?|\d+", re.IGNORECASE)
# What may be between the words of one name.
_GAP = re.compile(r"[\s\"'“”«»‘’&.®™-]*")
_ARTICLES = frozenset(("la", "las", "el", "los", "les", "els", "del", "the"))
GENERIC, CONNECTOR, NAME, NUMBER, LETTER = "generic", "connector", "name", "number", "letter"
# Kind of address -> list of places.yml, which has one for each language.
POOLS = {
    "street": {"es": "streets_es", "en": "streets_en"},
    "health_centre": {"es": "streets_es", "en": "streets_en"},
    "hospital": {"es": "hospitals_es", "en": "hospitals_en"},
    "organization": {"es": "organizations_es", "en": "organizations_en"},
}


class Token(NamedTuple):
    """A word, number or abbreviation of an address.

    kind (str): "generic", "connector", "name", "number" or "letter".
    joined (bool): It belongs together with the token before it: blanks or quotes are between them.
    """

    start: int
    end: int
    text: str
    kind: str
    joined: bool


class Run(NamedTuple):
    """A part of an address that is replaced.

    kind (str): "name", "number" or "letter".
    lead (str): What replaces the article before the name: "de " for "del".
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


@cache
def _pool(kind: str, lang: str) -> tuple[str, ...]:
    return tuple(load_places()[POOLS[kind]["en" if lang == "en" else "es"]])


def make_address(value: str, context: SurrogateContext, *, kind: str) -> str | None:
    """Make another address, hospital, health centre or organisation.

    "C/ Ramón y Cajal, nº 3, 2º B" becomes "C/ Los Robles, nº 7, 5º F".
    kind (str): Key of POOLS. If a value other than a street has generic words alone ("Hospital
        Clínico"), the noun gets a name.
    RETURNS (str | None): None if there is nothing to replace.
    """
    value = compose(value)
    runs = find_runs(value, kind == "street", context.lang)
    if kind != "street" and not any(run.kind == NAME for run in runs):
        return _name_generic(value, kind, context)
    replacements = []
    for run in runs:
        surrogate = _make_run(value, run, kind, context)
        if surrogate is None:
            return None
        replacements.append((run.start, run.end, run.lead + surrogate))
    text = rewrite(value, replacements)[0]
    return text if fold_alnum(text) != fold_alnum(value) else None


def _name_generic(value: str, kind: str, context: SurrogateContext) -> str | None:
    """Name "Hospital Clínico" "Hospital San Telmo"; None for a noun alone."""
    words = value.split()
    name = context.choose(_pool(kind, context.lang), kind, value)
    if name is None or len(words) < 2:
        return None
    name = name.upper() if is_upper(value) else name
    return f"{name} {words[-1]}" if context.lang == "en" else f"{words[0]} {name}"


def find_runs(value: str, is_street: bool, lang: str) -> list[Run]:
    """Find the parts of an address that are to be replaced, in order."""
    tokens = _split(value, is_street, lang)
    runs: list[Run] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == NAME or (token.kind == NUMBER and not is_street and _leads(tokens, i)):
            last = _last_of_run(tokens, i, is_street)
            runs.extend(_name_runs(value, tokens, i, last, lang))
            i = last
        elif token.kind in (NUMBER, LETTER):
            runs.append(Run(token.start, token.end, token.kind, "", token.start))
        i += 1
    return runs


def _split(value: str, is_street: bool, lang: str) -> list[Token]:
    tokens: list[Token] = []
    for found in _TOKEN.finditer(value):
        before = tokens[-1] if tokens else None
        kind = _kind(found.group(), before.kind if before else "", is_street, lang)
        joined = before is not None and bool(_GAP.fullmatch(value, before.end, found.start()))
        tokens.append(Token(*found.span(), found.group(), kind, joined))
    return tokens


def _kind(text: str, kind_before: str, is_street: bool, lang: str) -> str:
    folded = fold_alnum(text)
    if text.isdigit():
        return NUMBER
    if folded in COMPASS and lang == "en":
        return GENERIC
    if is_street and len(folded) == 1 and kind_before in (NUMBER, LETTER):
        return LETTER
    if folded in _load_words("street_words" if is_street else "institution_words"):
        return GENERIC
    if folded in _load_words("connectors"):
        return CONNECTOR
    if len(folded) == 1:
        return LETTER if is_street else GENERIC
    return NAME


def _leads(tokens: list[Token], i: int) -> bool:
    """Check whether a number begins a name: "12 de Octubre"."""
    for token in tokens[i + 1 :]:
        if not token.joined or token.kind != CONNECTOR:
            return token.joined and token.kind == NAME
    return False


def _last_of_run(tokens: list[Token], first: int, is_street: bool) -> int:
    last = first
    for i in range(first + 1, len(tokens)):
        kind = tokens[i].kind
        ends_name = kind == NUMBER and (is_street or not _leads(tokens, i))
        if not tokens[i].joined or kind not in (NAME, CONNECTOR, NUMBER) or ends_name:
            break
        if kind == NAME:
            last = i
    return last


def _name_runs(value: str, tokens: list[Token], first: int, last: int, lang: str) -> list[Run]:
    """Make one run of a name, or two if a known town ends it ("Carlos Haya de Málaga")."""
    words = tokens[first : last + 1]
    start = own_start = words[0].start
    end, lead = words[-1].end, ""
    if first and words[0].joined and (article := tokens[first - 1]).text.lower() in _ARTICLES:
        start = article.start
        lead = match_case(article.text, "de ") if article.text.lower() == "del" else ""
    before = words[0]
    for previous, word in pairwise(words):
        if previous.kind != CONNECTOR:
            before = previous
        elif _is_known(value[word.start : end], lang):
            return [
                Run(start, before.end, NAME, lead, own_start),
                Run(word.start, end, NAME, "", word.start),
            ]
    return [Run(start, end, NAME, lead, own_start)]


def _is_known(text: str, lang: str) -> bool:
    places = load_gazetteer(lang)
    return fold_alnum(text) in places.towns or fold_alnum(text) in places.areas


def _make_run(value: str, run: Run, kind: str, context: SurrogateContext) -> str | None:
    whole, own = value[run.start : run.end], value[run.own_start : run.end]
    if run.kind == NUMBER:
        if len(own) == 5:
            return make_postcode(own, context)
        first = "0" if own[0] == "0" and len(own) > 1 else NON_ZERO
        return context.draw_other([first] + [DIGITS] * (len(own) - 1), "address", own)
    if run.kind == LETTER:
        return match_case(own, context.draw_other([DOORS], "address", own.upper()))
    for known in (whole, own):
        if _is_known(known, context.lang):
            return make_place(known, context)
    is_word = own.isalpha() and len(own) <= MAX_ACRONYM
    if is_word and own.isupper() and (own == value or not is_upper(value)):
        return context.draw_other([LETTERS] * len(own), "address", own)
    name = context.choose(_pool(kind, context.lang), kind, own)
    if name is None:
        return None
    # One word in lower case ("Hospital La paz") says nothing.
    return name.upper() if is_upper(value) else name.lower() if value.islower() else name
