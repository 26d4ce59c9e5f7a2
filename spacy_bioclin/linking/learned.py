"""What the mentions of annotated notes meant: names that no terminology has, and how often each
concept occurs (the popularity prior). Counts are kept by fold of the training notes, so that a
ranker can learn from a mention as if its own note had not been seen."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..types import FloatArray, IntArray
from .kb.knowledge_base import KnowledgeBase
from .names.ngrams import NgramIndex, build_arrays
from .names.normalize import name_key, normalize

N_FOLDS = 5
# Added to the number of mentions of a text: what was seen once weighs less than what is seen often.
SHRINK = 0.5


class LearnedMention(NamedTuple):
    """Mentions of the training notes that have all this in common.

    text (str): As it stands there, abbreviations expanded.
    kb_id (str): What it means.
    fold (int): Of the note.
    """

    text: str
    kb_id: str
    fold: int


class LearnedNames:
    """Mentions with the concepts they meant.

    kb (KnowledgeBase): Where the concepts are; mentions of others are counted in `n_unknown`.
    mentions (Iterable[LearnedMention]): All of them, repeats included.
    """

    def __init__(self, kb: KnowledgeBase, mentions: Iterable[LearnedMention]) -> None:
        self.counts = Counter(mentions)
        self.n_unknown = 0
        texts, keys = _Table(), _Table()
        seen: Counter[tuple[int, int]] = Counter()
        for mention, n in self.counts.items():
            number = kb.number(mention.kb_id)
            if number is None:
                self.n_unknown += n
                continue
            texts.add(normalize(mention.text), number, mention.fold, n)
            keys.add(name_key(mention.text), number, mention.fold, n)
            seen[number, mention.fold] += n
        self._texts, self._keys = texts.freeze(), keys.freeze()
        self._index = NgramIndex(build_arrays(self._keys.names)) if self._keys.names else None
        self._vectors: FloatArray | None = None
        # Mentions of each concept, in all folds and outside each.
        self._concepts = np.array(sorted({concept for concept, _ in seen}), np.int64)
        self._frequency = np.zeros((len(self._concepts), N_FOLDS + 1), np.int64)
        for (concept, fold), n in seen.items():
            row = np.searchsorted(self._concepts, concept)
            self._frequency[row] += n
            self._frequency[row, fold] -= n

    def __contains__(self, text: str) -> bool:
        """Whether a training mention had this text, case, accents and punctuation aside."""
        return normalize(text) in self._texts.rows

    def embed(self, encode: Callable[[Sequence[str]], FloatArray]) -> None:
        """Compare by meaning too: keep the vector of each different mention."""
        if self._keys.names:
            self._vectors = encode(self._texts.names)

    def find_meaning(
        self, vectors: FloatArray, folds: Sequence[int | None], n: int
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Find what mentions of like meaning meant.

        vectors (FloatArray): (n_texts, width), of length 1, from what `embed` was given.
        folds (Sequence[int | None]): Fold whose mentions do not count for each.
        n (int): Mentions to look at.
        RETURNS (tuple): For each pair that is found: text, row of the concept, and highest cosine
            of a mention that meant it.
        """
        found: dict[tuple[int, int], float] = {}
        if self._vectors is not None:
            cosines = vectors @ self._vectors.T
            best = np.argsort(-cosines, axis=1, kind="stable")[:, :n]
            for i, fold in enumerate(folds):
                for row in best[i].tolist():
                    for concept, _ in self._texts.meant(row, fold):
                        found.setdefault((i, concept), float(cosines[i, row]))
        where = np.array(list(found), np.int64).reshape(-1, 2)
        return where[:, 0], where[:, 1], np.array(list(found.values()), np.float32)

    def find(
        self, texts: Sequence[str], keys: Sequence[str], folds: Sequence[int | None], n: int
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Find what mentions like some texts meant.

        texts (Sequence[str]), keys (Sequence[str]): Mentions and their keys.
        folds (Sequence[int | None]): Fold whose mentions do not count for each.
        n (int): Similar mentions to look at.
        RETURNS (tuple): For each pair that is found: text, row of the concept, share of the
            mentions with this text (else with this key) that meant it, and highest cosine of a
            mention that meant it.
        """
        found: dict[tuple[int, int], list[float]] = {}
        if self._index is not None:
            rows, cosines = self._index.search(keys, n)
            for i, fold in enumerate(folds):
                for row, cosine in zip(rows[i].tolist(), cosines[i].tolist(), strict=True):
                    if row < 0:
                        break
                    for concept, _ in self._keys.meant(row, fold):
                        found.setdefault((i, concept), [0.0, cosine])
        for i, (text, key, fold) in enumerate(zip(texts, keys, folds, strict=True)):
            meant = self._texts.meant(self._texts.rows.get(normalize(text)), fold)
            meant = meant or self._keys.meant(self._keys.rows.get(key), fold)
            total = sum(count for _, count in meant) + SHRINK
            for concept, count in meant:
                found.setdefault((i, concept), [0.0, 1.0])[0] = count / total
        where = np.array(list(found), np.int64).reshape(-1, 2)
        values = np.array(list(found.values()), np.float32).reshape(-1, 2)
        return where[:, 0], where[:, 1], values[:, 0], values[:, 1]

    def frequency(self, concepts: IntArray, folds: IntArray) -> IntArray:
        """
        concepts (IntArray): (n,) rows of the knowledge base.
        folds (IntArray): (n,) folds that do not count, -1 for none.
        RETURNS (IntArray): (n,) training mentions of each concept outside the fold.
        """
        if not len(self._concepts):
            return np.zeros(len(concepts), np.int64)
        rows = np.minimum(np.searchsorted(self._concepts, concepts), len(self._concepts) - 1)
        return np.where(self._concepts[rows] == concepts, self._frequency[rows, folds], 0)

    def to_list(self) -> list[list[Any]]:
        """RETURNS (list[list]): Plain values, which `from_list` takes."""
        return [[*mention, n] for mention, n in sorted(self.counts.items())]

    @classmethod
    def from_list(cls, kb: KnowledgeBase, rows: Iterable[Sequence[Any]]) -> "LearnedNames":
        """RETURNS (LearnedNames): As it was when `to_list` was called."""
        return cls(kb, (LearnedMention(*row[:3]) for row in rows for _ in range(row[3])))


class _Table:
    """Names with the concepts that they meant in each fold."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[tuple[int, int]]] = {}
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self._by_fold: list[dict[int | None, list[tuple[int, int]]]] = []

    def add(self, name: str, concept: int, fold: int, n: int) -> None:
        self._counts.setdefault(name, Counter())[concept, fold] += n

    def freeze(self) -> "_Table":
        """RETURNS (_Table): Itself, ready to be asked."""
        self.names = sorted(self._counts)
        self.rows = {name: row for row, name in enumerate(self.names)}
        for name in self.names:
            counts = self._counts[name]
            folds = {None, *(fold for _, fold in counts)}
            self._by_fold.append({fold: _outside(counts, fold) for fold in folds})
        return self

    def meant(self, row: int | None, fold: int | None) -> list[tuple[int, int]]:
        """RETURNS (list[tuple[int, int]]): Concepts that the name meant outside the fold, and how
        often."""
        if row is None:
            return []
        by_fold = self._by_fold[row]
        return by_fold[fold if fold in by_fold else None]


def _outside(counts: Counter[tuple[int, int]], fold: int | None) -> list[tuple[int, int]]:
    outside: Counter[int] = Counter()
    for (concept, other), n in counts.items():
        if other != fold:
            outside[concept] += n
    return sorted(outside.items())
