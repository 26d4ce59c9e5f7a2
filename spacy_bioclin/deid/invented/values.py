"""Write invented values with the rules of values_es.yml and values_en.yml.

A rule is a name and alternatives in the syntax of layouts, whose slots are other rules.
"""

import random
import string
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import srsly

from ...errors import BioclinError
from ...text import fold_alnum
from .layouts import Nodes, Slot, choose, parse
from .names import NamePools, load_names, take_share

# Ends the span within a value: what follows is plain text ("67" + "yo").
END = "\x1f"
DIGITS = "0123456789"
# Slots of rules that are drawn character by character: `{digits.4}`. `{upto.99}` is a number from
# 1 to 99.
ALPHABETS = {
    "digits": DIGITS,
    "letters": string.ascii_uppercase,
    "lower": string.ascii_lowercase,
    "hex": f"{DIGITS}abcdef",
    "mixed": f"{DIGITS}{string.ascii_uppercase}",
    "consonants": "BCDFGHJKLMNPRSTVWXYZ",
}
DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
MIN_PLACE = 3  # letters
Env = Mapping[str, str]


class Values:
    """The rules of a language, and the share of names that may be used."""

    def __init__(self, lang: str, names: str) -> None:
        """Read the rules.

        lang (str): Language, "es" or "en".
        names (str): Share of the names, see `names.take_share`.
        """
        raw: dict[str, Any] = srsly.read_yaml(Path(__file__).with_name(f"values_{lang}.yml"))
        self.lang = lang
        self.names: NamePools = load_names(lang, names)
        self.lists: dict[str, list[str]] = {
            key: [str(value) for value in values] for key, values in raw["lists"].items()
        }
        rules: dict[str, list[str]] = {}
        for key, values in {**raw["words"], **raw["rules"]}.items():
            words = [word.replace("_", " ") for word in str(values).split()]
            rules[key] = words if isinstance(values, str) else list(map(str, values))
        self._places = [*rules["city"], *rules["state"], *rules["country"]]
        rules["city"] = list(take_share(rules["city"], names))
        self._texts = rules
        # A rule is parsed when it is needed first: some are long lists.
        self._rules: dict[str, list[Nodes | None]] = {
            key: [None] * len(texts) for key, texts in rules.items()
        }
        self._built_in: dict[str, Callable[[random.Random], str]] = {
            "first": self._first_name,
            "surname": lambda rng: self.names.draw_surname(rng),
            "first_ascii": lambda rng: _to_ascii(self._first_name(rng)),
            "surname_ascii": lambda rng: _to_ascii(self.names.draw_surname(rng)),
            "dni": _draw_dni,
            "nie": _draw_nie,
        }

    def keys(self) -> list[str]:
        """List the names of the rules."""
        return list(self._rules)

    def texts(self, key: str) -> list[str]:
        """List the alternatives of a rule."""
        return self._texts[key]

    def places(self) -> set[str]:
        """List the folded words of cities, states and countries, of all shares of names."""
        words = (word for value in self._places for word in value.replace("-", " ").split())
        return {fold_alnum(word) for word in words if len(word) >= MIN_PLACE}

    def write(self, key: str, rng: random.Random, env: Env | None = None) -> str:
        """Write a value.

        key (str): Name of a rule; "date.short" is a form.
        env (Mapping[str, str] | None): Values that the rule may use as slots beside other rules.
        """
        return self.fill(self._draw(key, rng), rng, env or {})

    def fill(self, nodes: Nodes, rng: random.Random, env: Env) -> str:
        """Fill a parsed rule. See `write`."""
        parts = []
        for part in choose(nodes, rng):
            parts.append(part if isinstance(part, str) else self._value(part, rng, env))
        return "".join(parts)

    def _draw(self, key: str, rng: random.Random) -> Nodes:
        """Draw an alternative of a rule."""
        texts, parsed = self._texts[key], self._rules[key]
        at = rng.randrange(len(texts))
        nodes = parsed[at]
        if nodes is None:
            nodes = parsed[at] = parse(texts[at], None, f"values_{self.lang}.yml, {key}")
        return nodes

    def _value(self, slot: Slot, rng: random.Random, env: Env) -> str:
        name, form = slot
        if name in env:
            return env[name]
        if name in ALPHABETS:
            return "".join(rng.choices(ALPHABETS[name], k=int(form)))
        if name == "upto":
            return str(rng.randint(1, int(form)))
        if name == "end":
            return END
        if name in self._built_in:
            return self._built_in[name](rng)
        key = f"{name}.{form}" if form else name
        if key in self._rules:
            return self.write(key, rng, env)
        if name.lower() in self._rules:
            return self.write(name.lower(), rng, env).upper()
        raise BioclinError(f"values_{self.lang}.yml: no rule {{{key}}}")

    def _first_name(self, rng: random.Random) -> str:
        return self.names.draw_first(rng, rng.choice("mf"))


def _to_ascii(name: str) -> str:
    """Write a name as addresses on the net do."""
    return "".join(char for char in fold_alnum(name) if char.isascii()) or "info"


def _draw_dni(rng: random.Random) -> str:
    number = rng.randrange(10**6, 10**8)
    letter = DNI_LETTERS[number % 23] if rng.random() < 0.8 else rng.choice(DNI_LETTERS)
    text = f"{number:08}"
    dotted = f"{text[:2]}.{text[2:5]}.{text[5:]}"
    shown = rng.choice((text, text, text, dotted))
    return f"{shown}{rng.choice(('', '', '', '-', ' '))}{letter}"


def _draw_nie(rng: random.Random) -> str:
    first, number = rng.randrange(3), rng.randrange(10**7)
    letter = DNI_LETTERS[(first * 10**7 + number) % 23]
    gap = rng.choice(("", "", "-"))
    return f"{'XYZ'[first]}{gap}{number:07}{gap}{letter}"


@lru_cache(maxsize=8)
def load_values(lang: str, names: str) -> Values:
    """Read the rules of a language, once. See `Values`."""
    return Values(lang, names)
