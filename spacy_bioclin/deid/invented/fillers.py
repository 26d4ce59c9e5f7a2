"""Sentences of clinical text without PHI, for `{text}`."""

import random
from collections.abc import Sequence

from .values import Values


class Texts:
    """Sentences to draw from."""

    def __init__(self, values: Values, sentences: Sequence[str] = ()) -> None:
        """Take sentences; without any, they are made by the rule "text"."""
        self.values, self.sentences = values, sentences

    def draw(self, number: int, rng: random.Random) -> str:
        """Draw so many sentences, one after the other."""
        return " ".join(
            rng.choice(self.sentences) if self.sentences else self.values.write("text", rng)
            for _ in range(number)
        )


def read_texts(paths, values, number):  # type: ignore[no-untyped-def]
    """Read sentences."""
    return Texts(values)
