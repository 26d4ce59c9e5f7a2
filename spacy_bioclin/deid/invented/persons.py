"""Invented persons, and the forms in which a note may write their names."""

import random
from typing import NamedTuple

from .names import NamePools
from .values import Values

SECOND_FIRST = {"es": 0.2, "en": 0.1}  # share of persons with two first names
MIDDLE = 0.35  # share of persons with a middle initial in English
SUFFIX = 0.03
ONE_SURNAME = 0.2  # share of those with usually two surnames who have one


class Person(NamedTuple):
    """An invented person.

    sex (str): "m" or "f".
    first, last (tuple[str, ...]): First names and surnames.
    middle (str): Middle initial, or "".
    suffix (str): "Jr", "III" or "".
    """

    sex: str
    first: tuple[str, ...]
    last: tuple[str, ...]
    nick: str
    middle: str = ""
    suffix: str = ""


def draw_person(values: Values, rng: random.Random, sex: str = "") -> Person:
    """Draw a person; of either sex if none is given."""
    names: NamePools = values.names
    sex = sex or rng.choice("mf")
    origin = names.draw_origin(rng)
    first = [names.draw_first(rng, sex, origin)]
    if " " not in first[0] and rng.random() < SECOND_FIRST[values.lang]:
        first.append(names.draw_first(rng, sex, origin))
    n_surnames = origin.surnames
    if n_surnames == 2 and rng.random() < ONE_SURNAME:
        n_surnames = 1
    elif n_surnames == 1 and values.lang == "es" and rng.random() < ONE_SURNAME:
        n_surnames = 2  # a person from elsewhere who has become Spanish
    last = [names.draw_surname(rng, origin) for _ in range(n_surnames)]
    middle = suffix = ""
    if values.lang == "en":
        if len(last) == 1 and rng.random() < 0.06:
            last = [f"{last[0]}-{names.draw_surname(rng)}"]
        elif rng.random() < MIDDLE:
            middle = rng.choice("ABCDEFGHJKLMNPRSTVW")
        if rng.random() < SUFFIX:
            suffix = rng.choice(("Jr", "Jr.", "Sr", "II", "III"))
    nick = names.own_nicks.get(first[0]) or rng.choice(names.nicks[sex])
    return Person(sex, tuple(first), tuple(last), nick, middle, suffix)


def write_person(person: Person, form: str, values: Values, rng: random.Random) -> str:
    """Write the name of a person in a form of layouts; "" is any usual full one."""
    first, last = " ".join(person.first), " ".join(person.last)
    words = [word for name in (*person.first, *person.last) for word in name.split()]
    capitals = [word[0].upper() for word in words if word[:1].isupper()] or ["X"]
    if person.middle:
        capitals.insert(1, person.middle)
    env = {
        "first": first,
        "first1": person.first[0],
        "last": last,
        "last1": person.last[0],
        "FIRST": first.upper(),
        "LAST": last.upper(),
        "LAST1": person.last[0].upper(),
        "F": person.first[0][0].upper(),
        "L": person.last[0][0].upper(),
        "nick": person.nick,
        "middle": f" {person.middle}." if person.middle else "",
        "mid": f" {person.middle}" if person.middle else "",
        "suffix": f" {person.suffix}" if person.suffix else "",
        "dotted": ". ".join(capitals) + ".",
        "tight": ".".join(capitals) + ".",
        "bare": "".join(capitals),
        "lower_bare": "".join(capitals).lower(),
    }
    return values.write(f"person.{form}" if form else "person", rng, env)
