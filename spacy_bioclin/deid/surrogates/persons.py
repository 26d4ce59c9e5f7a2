"""Surrogates of persons' names, word by word.

Each word has one surrogate for each patient, in every context: "García", "Dr. García López" and
"GARCIA" agree. The first letter of a surrogate depends only on the first letter of the original, by
a keyed cycle through the alphabet, so that initials ("J. García", "JGL") agree with full names
without a lookup table. First names become first names of the same gender, surnames surnames; titles
and particles stay.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from ...rewrite import rewrite
from ...text import compose, drop_invisible, fold_alnum
from ..secret import Secret
from .context import DIGITS, SurrogateContext, keyed_cycle
from .name_lists import (
    ABBREVIATIONS,
    FEMALE,
    FEMALE_TITLES,
    FIRST_NAME_TITLES,
    MALE,
    MOSTLY_SURNAMES,
    PARTICLES,
    SURNAME,
    TITLES,
    load_names,
)
from .wording import is_upper, match_case

_TOKEN = re.compile(r"M\.?ª|[^\W\d_]+|\d+", re.IGNORECASE)
# The gender that the end of an unknown first name shows: "Casilda", "Eutimio".
_ENDINGS = {"a": FEMALE, "cion": FEMALE, "dad": FEMALE, "o": MALE, "os": MALE, "us": MALE}
_DEGREE = re.compile(r"\bM\.\s?D\.?\s*$")


class Word(NamedTuple):
    """A word of a name.

    kind (str): "title", "particle", "initials", "digits" or "name".
    folded (str): What decides on the surrogate; an abbreviation in full ("Mª": maria).
    """

    start: int
    end: int
    kind: str
    folded: str


def make_name(value: str, context: SurrogateContext) -> str | None:
    """Make another person's name: American in English notes, else Spanish.

    value (str): "García López, Ana María", "DRA. ANA Mª GARCIA-LOPEZ", "J. M. Gómez", "JGL".
    RETURNS (str | None): The same number of words, in the same case; None if there is nothing to
        replace.
    """
    value = compose(value)
    words = _split(value, context.lang)
    unknown = {**_unknown_first_names(value, words, context.lang), **context.first_names}
    roles = _roles(value, words, context.lang, unknown)
    replacements = []
    for word in words:
        old = value[word.start : word.end]
        if word.kind == "initials":
            letters = (_map_letter(fold_alnum(char)[:1], context) for char in old)
            new: str | None = "".join(map(match_case, old, letters))
        elif word.kind == "digits":
            new = context.draw_other([DIGITS] * len(old), "name digits", old)
        elif word.kind == "name":
            new = _choose_name(word.folded, roles[word], context)
            is_short = word.folded != fold_alnum(old)
            new = None if new is None else match_case(value if is_short else old, new)
        else:
            continue
        if new is None:
            return None
        replacements.append((word.start, word.end, new))
    return rewrite(value, replacements)[0] if replacements else None


def _split(value: str, lang: str) -> list[Word]:
    tokens = list(_TOKEN.finditer(value))
    degree = _DEGREE.search(value) if lang == "en" else None
    words: list[Word] = []
    for i, token in enumerate(tokens):
        text, start, end = token.group(), token.start(), token.end()
        following = value[end : end + 1]
        folded = fold_alnum(text)
        short = ABBREVIATIONS.get(folded)
        if short and (following == "." or text[-1] == "ª" or len(folded) > 2):
            words.append(Word(start, end + (following == "."), "name", short))
            continue
        kind = "name"
        if text.isdigit():
            kind = "digits"
        elif _is_title(words, tokens, following, lang) or (
            degree is not None and start >= degree.start() > 0
        ):
            kind = "title"
        elif (following in ("'", "’") and len(text) == 1) or _is_particle(value, i, tokens):
            kind = "particle"
        elif _is_initials(value, text, lang):
            kind = "initials"
        words.append(Word(start, end, kind, folded))
    return words


def _is_title(words: list[Word], tokens: list[re.Match[str]], following: str, lang: str) -> bool:
    """Check whether the next word is a title: "D." is one in "D. José", not in "D. García"."""
    i = len(words)
    folded = fold_alnum(tokens[i].group())
    if folded not in ("d", "da") or lang == "en":
        return folded in TITLES
    if i + 1 == len(tokens) or any(word.kind != "title" for word in words):
        return False
    is_don = MALE in load_names(lang).known.get(fold_alnum(tokens[i + 1].group()), ())
    return folded == "da" or (is_don and following == ".")


def _is_particle(value: str, i: int, tokens: list[re.Match[str]]) -> bool:
    token = tokens[i]
    text = token.group()
    if fold_alnum(text) not in PARTICLES or len(tokens) == 1:
        return False
    if len(text) > 1:
        return True
    # "Ramón y Cajal", "RAMON Y CAJAL", but "E. Gómez".
    inside = 0 < i < len(tokens) - 1 and value[token.end() : token.end() + 1] != "."
    return inside and (text.islower() or (text == "Y" and is_upper(value)))


def _is_initials(value: str, text: str, lang: str) -> bool:
    """Check for one letter, or a few capitals that are not a name ("JGL", "AMG Pérez")."""
    if len(text) == 1:
        return True
    if not text.isupper() or len(text) > 4 or fold_alnum(text) in load_names(lang).known:
        return False
    if not re.search("[AEIOUY]", fold_alnum(text).upper()):
        return True
    others = value.replace(text, "")
    return len(text) < 4 and (not others.isupper() or not any(map(str.isalpha, others)))


def find_first_names(values: Iterable[str], lang: str) -> dict[str, str]:
    """Find first names that the lists do not have, by their place in a full name.

    values (Iterable[str]): Names of persons, as in a note.
    lang (str): Language of the note.
    RETURNS (dict[str, str]): Folded first names, and their gender or "".
    """
    found: dict[str, str] = {}
    surnames: set[str] = set()
    for value in map(drop_invisible, values):
        words = _split(value, lang)
        first = _unknown_first_names(value, words, lang)
        names = [word.folded for word in words if word.kind == "name"]
        surnames.update(word for word in names if len(names) > 1 and word not in first)
        found |= first
    return {word: gender for word, gender in found.items() if word not in surnames}


def _unknown_first_names(value: str, words: list[Word], lang: str) -> dict[str, str]:
    """Find unknown words where a full name has its first name: first, or after the comma."""
    names = [word for word in words if word.kind == "name"]
    title = next((word.folded for word in words if word.kind == "title"), "")
    order = _surnames_end(value, names)
    first = next((word for word in names if word.start > order), None)
    known = load_names(lang).known
    if (
        first is None
        or len(names) < 2
        or first.folded in known
        or first.folded != fold_alnum(value[first.start : first.end])
    ):
        return {}
    endings = (gender for end, gender in _ENDINGS.items() if first.folded.endswith(end))
    gender = FEMALE if title in FEMALE_TITLES else next(endings, "")
    return {first.folded: gender}


def _surnames_end(value: str, names: list[Word]) -> int:
    """Find the comma of "García López, Ana"; -1 if the first name comes first."""
    comma = value.find(",")
    has_order = comma >= 0 and any(w.start < comma for w in names) and names[-1].start > comma
    return comma if has_order else -1


def _roles(value: str, words: list[Word], lang: str, unknown: Mapping[str, str]) -> dict[Word, str]:
    """Classify each word of a name: "male", "female" or "surname", or two ("male or surname").

    Of two, the first is the more likely one here; "" is a first name of either gender.
    unknown (Mapping[str, str]): First names that the lists do not have, and their gender.
    """
    names = [word for word in words if word.kind == "name"]
    known = load_names(lang).known
    comma = _surnames_end(value, names)
    has_order = comma >= 0
    title = next((word for word in words if word.kind == "title"), None)
    roles: dict[Word, str] = {}
    gender: str | None = None
    for i, word in enumerate(names):
        if word.folded in unknown:
            roles[word] = gender = unknown[word.folded]
            continue
        kinds = known.get(word.folded, frozenset({SURNAME}))
        genders = sorted(kinds - {SURNAME})
        if not genders or value[: word.start].endswith(("'", "’")):
            roles[word] = SURNAME
            gender = None
            continue
        own = genders[0] if len(genders) == 1 else ""
        if SURNAME not in kinds:
            is_first_name = True
        elif has_order:
            is_first_name = word.start > comma
        elif len(names) == 1:
            is_first_name = title is None or title.folded in FIRST_NAME_TITLES
        elif lang == "en":
            is_first_name = i < len(names) - 1
        else:
            is_first_name = i == 0 or word.folded not in MOSTLY_SURNAMES
        if not is_first_name:
            roles[word] = f"{SURNAME} or {own}" if own else SURNAME
            gender = None
            continue
        # "María José" is a woman's name, "José María" a man's.
        role = gender if gender and gender != own and len(genders) else own
        roles[word] = f"{role} or {SURNAME}" if SURNAME in kinds and role == own else role
        gender = gender or own or None
    return roles


@lru_cache(maxsize=1024)
def letter_cycle(secret: Secret, lang: str) -> dict[str, str]:
    """Map each letter that many names begin with to the first letter of their surrogates."""
    return keyed_cycle(load_names(lang).letters, secret, "letters")


def _map_letter(letter: str, context: SurrogateContext) -> str:
    """Map any folded letter; rare ones (k, w) share theirs with another."""
    cycle = letter_cycle(context.secret, context.lang)
    if letter in cycle:
        return cycle[letter]
    letters = load_names(context.lang).letters
    return letters[context.secret.number("rare letter", letter, len(letters))]


def _choose_name(folded: str, role: str, context: SurrogateContext) -> str | None:
    """Choose a name; None if all names are forbidden."""
    lists = load_names(context.lang)
    letter = _map_letter(folded[:1], context)
    first, _, second = role.partition(" or ")
    if not first:
        first = (MALE, FEMALE)[context.secret.number("gender", folded, 2)]
    kinds = [(first, letter), (first, "")]
    if second:
        # A word that is both becomes one that is both, so that its role here does not matter. If
        # there is none, the more frequent role decides.
        gender = first if second == SURNAME else second
        mostly = SURNAME if context.lang != "en" and folded in MOSTLY_SURNAMES else gender
        kinds = [(f"{gender} or {SURNAME}", letter), (mostly, letter), (mostly, "")]
    chosen = (context.choose(lists.pools.get(kind, ()), "name", folded) for kind in kinds)
    return next((name for name in chosen if name is not None), None)
