"""Surrogates of persons' names, word by word.

Each word has one surrogate a patient, whatever stands around it: "García", "Dr. García López" and
"GARCIA" agree. The first letter of a surrogate depends on the first letter of the original alone,
by a keyed cycle through the alphabet, so that initials ("J. García", "JGL") agree with full names,
with no table to guard. First names become first names of the same gender, surnames surnames; titles
and particles stay.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from ...text import compose, fold_alnum
from ..secret import Secret
from .identifiers import DIGITS, draw
from .name_lists import FEMALE, MALE, MOSTLY_SURNAMES, SURNAME, load_names
from .wording import choose, is_upper, keyed_cycle, match_case, word_set

_TOKEN = re.compile(r"M\.?ª|[^\W\d_]+|\d+", re.IGNORECASE)
_INITIALS = "initials"
_DEGREE = re.compile(r"\bM\.\s?D\.?\s*$")
TITLES = word_set(
    "dr dra drs dras dres doctor doctora don dona dna sr sra sres sras srta senor senora senorita"
    " prof profa profesor profesora lic lcdo lcda licenciado licenciada ing fdo sor mr mrs ms miss"
    " mx md phd msc mph facs rn esq dds jr ii iii iv enfermero enfermera enf"
)
# A first name follows; after the others, a surname.
FIRST_NAME_TITLES = word_set("d da don dona dna sor")
PARTICLES = word_set(
    "de del la las los lo el y i e da das do dos di du le van von der den ten ter al el ibn ben bin"
    " san santa mc mac st"
)
ABBREVIATIONS = {
    **{"ma": "maria", "fco": "francisco", "fca": "francisca", "jph": "joseph", "wm": "william"},
    **{"fdez": "fernandez", "hdez": "hernandez", "rguez": "rodriguez", "rdguez": "rodriguez"},
    **{"glez": "gonzalez", "gzlez": "gonzalez", "mtnez": "martinez", "mtez": "martinez"},
    **{"mnez": "martinez", "gmez": "gomez", "dguez": "dominguez", "jmnez": "jimenez"},
    **{"jmez": "jimenez", "alvz": "alvarez", "snchez": "sanchez", "schez": "sanchez"},
    **{"vzqz": "vazquez", "gtrrez": "gutierrez", "gtez": "gutierrez", "prez": "perez"},
}


class Word(NamedTuple):
    """A word of a name.

    kind (str): "title", "particle", "initials", "digits" or "name".
    folded (str): What decides on the surrogate; an abbreviation in full ("Mª": maria).
    """

    start: int
    end: int
    kind: str
    folded: str


def make_name(value: str, secret: Secret, lang: str, forbidden: Collection[str] = ()) -> str | None:
    """Make another person's name.

    value (str): "García López, Ana María", "DRA. ANA Mª GARCIA-LOPEZ", "J. M. Gómez", "JGL".
    lang (str): "en": American names; else Spanish ones.
    forbidden (Collection[str]): Folded words that must not come out.
    RETURNS (str | None): The same number of words, in the same case; None if there is nothing to
        replace.
    """
    value = compose(value)
    words = _split(value, lang)
    names = [word for word in words if word.kind == "name"]
    roles = _roles(value, words, names, lang)
    new, place = [], 0
    for word in words:
        old = value[word.start : word.end]
        if word.kind in ("title", "particle"):
            written = old
        elif word.kind == _INITIALS:
            written = "".join(_map_initial(char, secret, lang) for char in old)
        elif word.kind == "digits":
            digits = draw([DIGITS] * len(old), secret, "name digits", old)
            written = next(other for other in digits if other != old)
        else:
            surrogate = _choose_name(word.folded, roles[word], secret, lang, forbidden)
            if surrogate is None:
                return None
            is_short = word.folded != fold_alnum(old)
            written = match_case(value if is_short else old, surrogate)
        new += [value[place : word.start], written]
        place = word.end
    if all(word.kind in ("title", "particle") for word in words):
        return None
    return "".join(new) + value[place:]


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
            kind = _INITIALS
        words.append(Word(start, end, kind, folded))
    return words


def _is_title(words: list[Word], tokens: list[re.Match[str]], following: str, lang: str) -> bool:
    """RETURNS (bool): The next word is a title. "D. José" is one in Spanish (don), "D. García" is
    an initial."""
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
    """RETURNS (bool): One letter; or a few capitals that are no name ("JGL", "AMG Pérez")."""
    if len(text) == 1:
        return True
    if not text.isupper() or len(text) > 4 or fold_alnum(text) in load_names(lang).known:
        return False
    if not re.search("[AEIOUY]", fold_alnum(text).upper()):
        return True
    others = value.replace(text, "")
    return len(text) < 4 and (not others.isupper() or not any(map(str.isalpha, others)))


def _roles(value: str, words: list[Word], names: list[Word], lang: str) -> dict[Word, str]:
    """Say what each word of a name is: "male", "female" or "surname", or both ("male or surname"),
    where the first is what it seems to be here."""
    known = load_names(lang).known
    comma = value.find(",")
    has_order = comma >= 0 and any(w.start < comma for w in names) and names[-1].start > comma
    title = next((word for word in words if word.kind == "title"), None)
    roles: dict[Word, str] = {}
    gender: str | None = None
    for i, word in enumerate(names):
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
    """RETURNS (dict[str, str]): Letter that many names begin with -> the letter of their
    surrogates."""
    return keyed_cycle(load_names(lang).letters, secret, "letters")


def _map_letter(letter: str, secret: Secret, lang: str) -> str:
    """RETURNS (str): Any folded letter has one; rare ones (k, w) share it with another."""
    cycle = letter_cycle(secret, lang)
    if letter in cycle:
        return cycle[letter]
    letters = load_names(lang).letters
    return letters[secret.number("rare letter", letter, len(letters))]


def _map_initial(char: str, secret: Secret, lang: str) -> str:
    return match_case(char, _map_letter(fold_alnum(char)[:1], secret, lang))


def _choose_name(
    folded: str, role: str, secret: Secret, lang: str, forbidden: Collection[str]
) -> str | None:
    """RETURNS (str | None): None if all names are forbidden."""
    lists = load_names(lang)
    letter = _map_letter(folded[:1], secret, lang)
    first, _, second = role.partition(" or ")
    if not first:
        first = (MALE, FEMALE)[secret.number("gender", folded, 2)]
    pools = [(first, letter), (first, "")]
    if second:
        # A word that is both becomes one that is both, so that it does not matter which it is here.
        # Where there is none, what it mostly is decides.
        gender = first if second == SURNAME else second
        mostly = SURNAME if lang != "en" and folded in MOSTLY_SURNAMES else gender
        pools = [(f"{gender} or {SURNAME}", letter), (mostly, letter), (mostly, "")]
    for pool in pools:
        surrogate = choose(lists.pools.get(pool, ()), secret, "name", folded, forbidden)
        if surrogate is not None:
            return surrogate
    return None
