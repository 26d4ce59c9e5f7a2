"""The little language in which values and look-alikes are written."""

import random
import re
import string

PART = re.compile(r"<([^<>]*)>|\\#|#|§")
RANGE = re.compile(r"(\d+)(?:([.,])(\d+))?-(\d+)(?:[.,](\d+))?")


def _draw(inside: str, rng: random.Random) -> str:
    found = RANGE.fullmatch(inside)
    if not found or "|" in inside:
        return rng.choice(inside.split("|"))
    low, point, low_rest, high, high_rest = found.groups()
    if point:
        places = len(low_rest)
        number = rng.randint(int(low + low_rest), int(high + high_rest))
        return f"{number // 10**places}{point}{number % 10**places:0{places}}"
    return f"{rng.randint(int(low), int(high)):0{len(low) if low[0] == '0' else 1}}"


def expand(template: str, rng: random.Random) -> str:
    """Fill a template: # a digit, § a capital, <a|b> one of these, <1-99> or <0,5-9,9> a number of
    the range (leading noughts as in its start), \\# a #.

    RETURNS (str): The text.
    """

    def fill(part: re.Match[str]) -> str:
        if part[0] == "#":
            return rng.choice(string.digits)
        if part[0] == "§":
            return rng.choice(string.ascii_uppercase)
        return "#" if part[1] is None else _draw(part[1], rng)

    return PART.sub(fill, template)
