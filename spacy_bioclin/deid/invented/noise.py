"""Write notes as hurried people and old systems do: in capitals, without accents, with typos.

A note is a list of pieces, so that the offsets of the PHI are counted only once all noise is there.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

NAMES = ("patient_name", "staff_name", "relative")
# Typos change words of so many letters, and about one in so many of them.
MIN_WORD, TYPO_EVERY = 5, 25
NAME_TYPO = 0.05  # share of names with a typo, in notes with typos
WIDTHS = (60, 72, 76, 80)  # of wrapped lines
TILDE = "\u0303"  # of ñ, which is a letter
_WORD = re.compile(rf"[^\W\d_]{{{MIN_WORD},}}")
_MARK = re.compile(r"[.,;:]+(?=\s|$)")
_BREAKS = re.compile(r"[ \t]*\n\s*")


class Piece(NamedTuple):
    """A part of a note.

    phi_type (str | None): None for what is not PHI.
    """

    text: str
    phi_type: str | None = None


Noise = Callable[[list[Piece], random.Random], list[Piece]]


def to_lower(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Write all in lower case."""
    return [piece._replace(text=piece.text.lower()) for piece in pieces]


def to_upper(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Write all in capitals."""
    return [piece._replace(text=piece.text.upper()) for piece in pieces]


def lower_names(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Write only the names of persons in lower case."""
    return [
        piece._replace(text=piece.text.lower()) if piece.phi_type in NAMES else piece
        for piece in pieces
    ]


def lower_phi(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Write all PHI in lower case."""
    return [
        piece._replace(text=piece.text.lower()) if piece.phi_type else piece for piece in pieces
    ]


def strip_accents(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Leave out accents; half of the notes keep the ñ."""
    kept = TILDE if rng.random() < 0.5 else ""

    def strip(text: str) -> str:
        if text.isascii():
            return text
        marks = unicodedata.normalize("NFD", text)
        # Only the marks of letters: a degree sign is no accent.
        plain = "".join(char for char in marks if not unicodedata.combining(char) or char == kept)
        return unicodedata.normalize("NFC", plain)

    return [piece._replace(text=strip(piece.text)) for piece in pieces]


def wrap_lines(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Break lines at a width, also within PHI: a blank becomes a line break."""
    width = rng.choice(WIDTHS)
    chars = list("".join(piece.text for piece in pieces))
    start = blank = 0
    for i, char in enumerate(chars):
        if char == "\n":
            start = i + 1
        elif char == " ":
            blank = i
        if i - start >= width and blank > start:
            chars[blank] = "\n"
            start = blank + 1
    wrapped, at = [], 0
    for piece in pieces:
        end = at + len(piece.text)
        wrapped.append(piece._replace(text="".join(chars[at:end])))
        at = end
    return wrapped


def drop_marks(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Leave out punctuation at the end of words, as in a dictation, and often capitals."""
    lower = rng.random() < 0.6
    changed = []
    for i, piece in enumerate(pieces):
        text = piece.text
        if piece.phi_type is None:
            # Before PHI without a blank, a mark is not the end of a word: "Edad:67".
            is_last = i + 1 == len(pieces)
            text = _MARK.sub("", text if is_last else f"{text}\0").rstrip("\0")
        changed.append(piece._replace(text=text.lower() if lower else text))
    return changed


def widen_blanks(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Double some blanks, or make tabs of them."""
    share = rng.choice((0.03, 0.1, 0.3))
    wide = rng.choice(("  ", "  ", "   ", "\t"))

    def widen(text: str) -> str:
        return "".join(wide if char == " " and rng.random() < share else char for char in text)

    return [piece._replace(text=widen(piece.text)) for piece in pieces]


def add_typos(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Misspell some words outside of PHI, and a few names."""

    def misspell(found: re.Match[str]) -> str:
        return make_typo(found[0], rng) if rng.randrange(TYPO_EVERY) == 0 else found[0]

    changed = []
    for piece in pieces:
        text = piece.text
        if piece.phi_type is None:
            text = _WORD.sub(misspell, text)
        elif piece.phi_type in NAMES and rng.random() < NAME_TYPO:
            text = _WORD.sub(lambda found: make_typo(found[0], rng), text, count=1)
        changed.append(piece._replace(text=text))
    return changed


def make_typo(word: str, rng: random.Random) -> str:
    """Swap two letters of a word, double one, leave one out, or put another in its place."""
    at = rng.randrange(1, len(word) - 1)
    before, char, after = word[:at], word[at], word[at + 1 :]
    kind = rng.randrange(4)
    if kind == 0:
        return before + after[0] + char + after[1:]
    if kind == 1:
        return before + char + char + after
    if kind == 2:
        return before + after
    other = rng.choice("aeioulnrst")
    return before + (other.upper() if char.isupper() else other) + after


def join_lines(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Make one line of the note."""
    between = rng.choice((" ", " ", "  "))
    return [piece._replace(text=_BREAKS.sub(between, piece.text)) for piece in pieces]


# Noises that may be added together, with the share of notes that get them: one of each group.
GROUPS: Sequence[tuple[tuple[Noise, float], ...]] = (
    ((to_lower, 0.07), (to_upper, 0.04), (lower_names, 0.05), (lower_phi, 0.02)),
    ((drop_marks, 0.04),),
    ((strip_accents, 0.07),),
    ((add_typos, 0.06),),
    ((join_lines, 0.04), (wrap_lines, 0.06)),
    ((widen_blanks, 0.04),),
)


def add_noise(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Add noise to a note; most notes stay as they are."""
    for group in GROUPS:
        chosen, shares = zip(*group, strict=True)
        drawn = rng.random()
        for noise, share in zip(chosen, shares, strict=True):
            if drawn < share:
                pieces = noise(pieces, rng)
                break
            drawn -= share
    return pieces
