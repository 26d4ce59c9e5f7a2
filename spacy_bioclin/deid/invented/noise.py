"""Write notes as hurried people and old systems do: in capitals, without accents, with typos."""

import random
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of a note.

    phi_type (str | None): None for what is not PHI.
    """

    text: str
    phi_type: str | None


def add_noise(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Add noise to a note."""
    return pieces
