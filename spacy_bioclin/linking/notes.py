"""What the other mentions of a note say about one: "steroid psychosis" in the same note tells what
"psychosis" means there (one sense per discourse, Gale et al. 1992)."""

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ..types import IntArray
from .candidates import COLUMN, Pool
from .names.normalize import name_key

# Features of a candidate that say what a text means without a look at the other candidates.
SURE = [COLUMN[name] for name in ("exact", "key", "same_mention")]
MIN_SURE = 0.5


class Question(NamedTuple):
    """A mention without its note: those of one question have the same link.

    text (str): The text of the note, with its abbreviations expanded.
    label (str): Entity label.
    support (tuple[tuple[int, ...], ...]): For each part of the text, its candidates that other
        texts of the note surely mean; () if nothing is known of the note.
    """

    text: str
    label: str
    support: tuple[tuple[int, ...], ...] = ()


class Evidence(NamedTuple):
    """What a text says about its note.

    keys (frozenset[str]): Its keys (`name_key`); texts with a key in common say nothing new about
        each other.
    sure (tuple[int, ...]): The candidates with the same name, or that most training mentions of the
        text meant.
    concepts (IntArray): (n,) all its candidates.
    """

    keys: frozenset[str]
    sure: tuple[int, ...]
    concepts: IntArray

    @classmethod
    def of(cls, pool: Pool, *texts: str) -> "Evidence":
        """Make it from the candidates of a text, and all forms of the text."""
        sure = pool.concepts[(pool.features[:, SURE] >= MIN_SURE).any(1)]
        keys = frozenset(map(name_key, texts))
        return cls(keys, tuple(sure.tolist()), pool.concepts.astype(np.int32))


class NoteConcepts:
    """The concepts that the texts of each note surely mean."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, int], set[str]] = defaultdict(set)

    def add(self, note: int, text: Evidence) -> None:
        """Add a text of a note."""
        for concept in text.sure:
            self._keys[note, concept] |= text.keys

    def support(self, note: int, text: Evidence) -> tuple[int, ...]:
        """Find the candidates of a text that another text of its note surely means."""
        others = {c: self._keys.get((note, c), text.keys) for c in text.concepts.tolist()}
        return tuple(sorted(c for c, keys in others.items() if keys - text.keys))


def add_support(pool: Pool, support: Collection[int]) -> Pool:
    """Set the feature `in_note` of the concepts that another text of the note surely means."""
    if not support:
        return pool
    features = pool.features.copy()
    features[:, COLUMN["in_note"]] = np.isin(pool.concepts, list(support))
    return pool._replace(features=features)
