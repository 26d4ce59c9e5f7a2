"""What surrogates depend on beside the value, and the keyed choices that all of them share."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from ...dates import LEAP_YEAR
from ...text import fold_alnum
from ..merge import left
from ..secret import Secret

# Strings that are drawn for a value, and after so many values of a note without an answer.
MAX_TRIES, FEW_TRIES, MAX_UNANSWERED = 5000, 100, 20
# Lists up to this length are tried from their start each time.
MAX_SHORT_LIST = 64
DIGITS, NON_ZERO = "0123456789", "123456789"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MIN_WORD = 4
_WORD = re.compile(r"[^\W_]+")


class DateShift(NamedTuple):
    """How the dates of a patient move.

    days (int): Offset.
    year (int): The assumed year of a date without one ("12 de marzo"). If it is right, the
        distance to dates with a year is exact; else it may be a day off.
    day_first (bool | None): The order of day and month in figures; None for the language's.
    """

    days: int
    year: int = LEAP_YEAR
    day_first: bool | None = None


@dataclass(frozen=True)
class SurrogateContext:
    """What surrogates depend on beside the value.

    secret (Secret): Secret key and patient: equal values of a patient have equal surrogates.
    lang (str): Language of the note: "en", or Spanish for all others.
    forbidden (Set[str]): Folded words (text.fold_alnum) that no surrogate may contain.
    dates (DateShift | None): How dates move; None for the patient's offset, weekdays not kept.
    first_names (Mapping[str, str]): Unknown folded words that are first names in this note, and
        their gender (see `persons.find_first_names`), so that they are wherever they stand alone.
    """

    secret: Secret
    lang: str
    forbidden: Set[str] = frozenset()
    dates: DateShift | None = None
    first_names: Mapping[str, str] = field(default_factory=dict)
    # What this note has shown so far, so that nothing is tried again for every value: surrogates,
    # forbidden entries of each list, and values for which every string drawn was forbidden.
    made: dict[tuple[str, str], str | None] = field(default_factory=dict, compare=False, repr=False)
    _skipped: dict[int, tuple[Sequence[str], dict[int, int]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _unanswered: list[str] = field(default_factory=list, compare=False, repr=False)

    def is_forbidden(self, text: str, value: str) -> bool:
        """Check whether a text is the original value, or contains a forbidden word.

        Of several words the short ones ("San", "de") do not count.
        """
        return fold_alnum(text) == fold_alnum(value) or self._has_forbidden(text)

    def _has_forbidden(self, text: str) -> bool:
        if fold_alnum(text) in self.forbidden:
            return True
        # "Vélez-Málaga" is one word, and two.
        words = {fold_alnum(word) for word in (*text.split(), *_WORD.findall(text))}
        return any(word in self.forbidden for word in words if len(word) >= MIN_WORD)

    def choose(self, pool: Sequence[str], purpose: str, value: str) -> str | None:
        """Choose from a list: the start is keyed, forbidden entries are skipped.

        pool (Sequence[str]): The list; its order must be the same on every machine.
        value (str): The original. Its folded form decides, and it is never chosen itself.
        RETURNS (str | None): None if nothing is left.
        """
        if not pool:
            return None
        own = fold_alnum(value)
        start = self.secret.number(purpose, own, len(pool))
        skipped: dict[int, int] = {}
        if len(pool) > MAX_SHORT_LIST:
            # The list is kept with its number, so that no other list gets the same.
            _, skipped = self._skipped.setdefault(id(pool), (pool, skipped))
        for at in chain(left(skipped, start, len(pool)), left(skipped, 0, start)):
            if self._has_forbidden(pool[at]):
                skipped[at] = at + 1
            elif fold_alnum(pool[at]) != own:
                return pool[at]
        return None

    def draw(self, alphabets: Sequence[str], purpose: str, value: str) -> Iterator[str]:
        """Draw up to MAX_TRIES strings, always the same ones in the same order.

        A note in which most strings of a short form are forbidden gets fewer.

        alphabets (Sequence[str]): The characters that each place may have.
        value (str): What the keyed draws depend on, beside the purpose.
        """
        seed = self.secret.derive(purpose, value)
        width = 2 * len(alphabets)
        few = len(self._unanswered) >= MAX_UNANSWERED
        for i in range(FEW_TRIES if few else MAX_TRIES):
            noise = hashlib.shake_256(seed + i.to_bytes(4, "big")).digest(width)
            yield "".join(
                chars[(noise[2 * j] << 8 | noise[2 * j + 1]) % len(chars)]
                for j, chars in enumerate(alphabets)
            )
        self._unanswered.append(purpose)

    def draw_other(self, alphabets: Sequence[str], purpose: str, old: str) -> str:
        """Draw a string that differs from the old one; the old one if there is no other."""
        drawn = self.draw(alphabets, purpose, old)
        return next((new for new in drawn if new.lower() != old.lower()), old)


def keyed_cycle(items: Sequence[str], secret: Secret, purpose: str) -> dict[str, str]:
    """Give each item another one, all in one cycle (Sattolo, 1986): no two swap places.

    items (Sequence[str]): Two or more, without duplicates, in an order that is always the same.
    """
    order = list(items)
    for i in range(len(order) - 1, 0, -1):
        j = secret.number(purpose, str(i), i)
        order[i], order[j] = order[j], order[i]
    return dict(zip(items, order, strict=True))
