"""First names and surnames from many origins, for invented persons."""

import hashlib
import random
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from ...errors import BioclinError
from ...text import fold_alnum
from ..surrogates.name_lists import provider_names

NAMES = Path(__file__).with_name("names.yml")
SHARES = ("training", "held-out")
HELD_OUT = 5  # one name in so many
MIN_WORD = 4  # letters of a word that decides on the share of a name of several
MIX = 0.06  # share of surnames that are made of two others: "Zubel" + "arraín"
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[^\W\d_][\w' ’.-]*\Z")


class Origin(NamedTuple):
    """Names of one origin.

    surnames (int): How many surnames a person usually has.
    """

    male: tuple[str, ...]
    female: tuple[str, ...]
    surname: tuple[str, ...]
    surnames: int


class NamePools(NamedTuple):
    """The names of a language's notes.

    weights (list[float]): Cumulative shares of the origins among the patients.
    nicks (dict[str, tuple[str, ...]]): "m" and "f" -> nicknames.
    own_nicks (dict[str, str]): First name -> its nickname.
    """

    origins: list[Origin]
    weights: list[float]
    nicks: dict[str, tuple[str, ...]]
    own_nicks: dict[str, str]
    share: str

    def draw_origin(self, rng: random.Random) -> Origin:
        """Draw an origin, the frequent ones more often."""
        return rng.choices(self.origins, cum_weights=self.weights)[0]

    def draw_first(self, rng: random.Random, sex: str, origin: Origin | None = None) -> str:
        """Draw a first name; of any origin if none is given."""
        origin = origin or self.draw_origin(rng)
        return rng.choice(origin.male if sex == "m" else origin.female)

    def draw_surname(self, rng: random.Random, origin: Origin | None = None) -> str:
        """Draw a surname; of any origin if none is given. Some are made of two others."""
        origin = origin or self.draw_origin(rng)
        if rng.random() < MIX:
            for _ in range(20):
                one, other = rng.choice(origin.surname), rng.choice(origin.surname)
                mixed = one[: max(2, len(one) // 2)] + other[len(other) // 2 :].lower()
                if mixed.isalpha() and is_in_share(mixed, self.share):
                    return mixed
        return rng.choice(origin.surname)


def is_held_out(word: str) -> bool:
    """Check whether a word is among the names that are only for evaluation."""
    digest = hashlib.sha256(fold_alnum(word).encode()).digest()
    return digest[0] % HELD_OUT == 0


def is_in_share(name: str, share: str) -> bool:
    """Check whether a name belongs to a share; with words of both shares, it belongs to none."""
    words = _WORD.findall(name)
    longest = [word for word in words if len(word) >= MIN_WORD] or words
    return all(is_held_out(word) == (share == "held-out") for word in longest)


def take_share(names: Iterable[str], share: str) -> tuple[str, ...]:
    """Take the names of a share, without duplicates, in alphabetical order.

    share (str): "training", or "held-out" for one name in five, which the others never have.
    RAISES (BioclinError): There is no such share.
    """
    if share not in SHARES:
        raise BioclinError(f"names = {share!r}: want one of {', '.join(SHARES)}")
    return tuple(sorted({name for name in names if is_in_share(name, share)}))


@lru_cache(maxsize=8)
def load_names(lang: str, share: str) -> NamePools:
    """Read names.yml and the lists of Faker that it names, about 0.3 s, once.

    lang (str): Language of the notes.
    share (str): See `take_share`.
    """
    raw: dict[str, Any] = srsly.read_yaml(NAMES)
    origins: list[Origin] = []
    weights: list[float] = []
    for entry in raw["origins"].values():
        pools = [
            take_share(_read(entry, kind, attribute), share)
            for kind, attribute in (
                ("male", "first_names_male"),
                ("female", "first_names_female"),
                ("surname", "last_names"),
            )
        ]
        if all(pools):
            origins.append(Origin(pools[0], pools[1], pools[2], entry.get("surnames", 1)))
            weights.append(entry["weight"][lang])
    nicks: dict[str, str] = raw["nicks"][lang]
    own = {
        name: nick
        for name, nick in nicks.items()
        if is_in_share(nick, share) and is_in_share(name, share)
    }
    others = {sex: take_share(raw["other_nicks"][lang][sex].split(), share) for sex in "mf"}
    return NamePools(origins, list(accumulate(weights)), others, own, share)


def _read(entry: dict[str, Any], kind: str, attribute: str) -> Iterable[str]:
    own = str(entry.get(kind, "")).split()
    yield from (name.replace("_", " ") for name in own)
    for locale in entry.get("locales", ()):
        for name in provider_names(locale, attribute):
            if _is_usable(name):
                yield name


@lru_cache(maxsize=65536)
def _is_usable(name: str) -> bool:
    """Check for a name in Latin letters that is not a remark or an abbreviation."""
    if not _LATIN.match(name) or len(name) < 2 or "." in name or name == "Doe":
        return False
    return all(unicodedata.name(c, "").startswith("LATIN") for c in name if c.isalpha())
