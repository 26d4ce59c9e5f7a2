"""Small things that all surrogates share: case, and the choice from a list."""

import re
from collections.abc import Collection, Sequence

from ...text import fold_alnum
from ..secret import Secret

MIN_WORD = 4
_WORD = re.compile(r"[^\W_]+")
_ORDINALS = str.maketrans("", "", "ºª")


def word_set(text: str) -> frozenset[str]:
    """RETURNS (frozenset[str]): The words of a list written as one text."""
    return frozenset(text.split())


def is_upper(text: str) -> bool:
    """RETURNS (bool): All in capitals; "º" and "ª", which have none, do not count."""
    return text.translate(_ORDINALS).isupper()


def match_case(model: str, text: str) -> str:
    """Write a text in the case of another.

    model (str): "GARCÍA", "García" or "garcía". A single capital counts as "García".
    RETURNS (str): The text in capitals, with a capital in front (what else is in it stays), or in
        lower case.
    """
    letters = [char for char in model if char.isalpha()]
    if not letters or letters[0].islower():
        return text.lower()
    if len(letters) > 1 and is_upper(model):
        return text.upper()
    return text[:1].upper() + text[1:]


def is_forbidden(text: str, value: str, forbidden: Collection[str]) -> bool:
    """RETURNS (bool): The text is the value, or it or one of its words is among the folded words
    that must not come out. Of several words the short ones ("San", "de") do not count."""
    folded = fold_alnum(text)
    if folded == fold_alnum(value) or folded in forbidden:
        return True
    # "Vélez-Málaga" is one word, and two.
    words = {fold_alnum(word) for word in (*text.split(), *_WORD.findall(text))}
    return any(word in forbidden for word in words if len(word) >= MIN_WORD)


def keyed_cycle(items: Sequence[str], secret: Secret, purpose: str) -> dict[str, str]:
    """Give each item another one, all in one cycle (Sattolo, 1986): none stays, no two change
    places.

    items (Sequence[str]): Two or more, without doubles, in an order that is always the same.
    """
    order = list(items)
    for i in range(len(order) - 1, 0, -1):
        j = secret.number(purpose, str(i), i)
        order[i], order[j] = order[j], order[i]
    return dict(zip(items, order, strict=True))


def choose(
    pool: Sequence[str], secret: Secret, purpose: str, value: str, forbidden: Collection[str]
) -> str | None:
    """Choose from a list: where to start is keyed, what must not come out is passed over.

    pool (Sequence[str]): The list; its order must be the same on every machine.
    value (str): The original: what it folds to decides, and it is never chosen itself.
    forbidden (Collection[str]): Folded words.
    RETURNS (str | None): None if nothing is left.
    """
    if not pool:
        return None
    start = secret.number(purpose, fold_alnum(value), len(pool))
    for i in range(len(pool)):
        candidate = pool[(start + i) % len(pool)]
        if not is_forbidden(candidate, value, forbidden):
            return candidate
    return None
