"""What the mentions of annotated notes meant: names that no terminology has, and how often each
concept occurs (the popularity prior). Counts are kept by fold of the training notes, so that a
ranker can learn from a mention as if its own note had not been seen."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log1p
from typing import Any, NamedTuple

import numpy as np

from ..errors import BioclinError
from ..types import FloatArray, IntArray
from .kb.knowledge_base import KnowledgeBase
from .names.ngrams import NgramIndex, build_arrays
from .names.normalize import name_key, normalize

N_FOLDS = 5
# Added to the number of mentions of a text, so that rare mentions weigh less than frequent ones.
SHRINK = 0.5

# More training mentions of one text than anybody has.
MAX_COUNT = 10**9

# (concept, fold) -> number of mentions.
FoldCounts = Counter[tuple[int, int]]


class LearnedMention(NamedTuple):
    """Mentions of the training notes with the same text, concept and fold.

    text (str): The text of the notes, with abbreviations expanded.
    kb_id (str): Id of the concept.
    fold (int): Fold of the notes.
    """

    text: str
    kb_id: str
    fold: int


FoldMentions = Counter[LearnedMention]


class LearnedNames:
    """Find the concepts that similar training mentions meant.

    kb (KnowledgeBase): Contains the concepts; mentions of others are counted in `n_unknown`.
    mentions (Iterable[LearnedMention]): All training mentions, with repetitions, or their counts.
    """

    def __init__(
        self, kb: KnowledgeBase, mentions: Iterable[LearnedMention] | FoldMentions
    ) -> None:
        self.counts = Counter(mentions)
        self.n_unknown = 0
        texts: dict[str, FoldCounts] = defaultdict(Counter)
        keys: dict[str, FoldCounts] = defaultdict(Counter)
        seen: FoldCounts = Counter()
        for mention, n in self.counts.items():
            number = kb.number(mention.kb_id)
            if number is None:
                self.n_unknown += n
                continue
            texts[normalize(mention.text)][number, mention.fold] += n
            keys[name_key(mention.text)][number, mention.fold] += n
            seen[number, mention.fold] += n
        self._texts, self._keys = _NameTable(texts), _NameTable(keys)
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
        """Check whether a training mention had this text in any case, accents and punctuation."""
        return normalize(text) in self._texts.rows

    def embed(self, encode: Callable[[Sequence[str]], FloatArray]) -> None:
        """Store the vector of each different mention, for `find_meaning`."""
        if self._keys.names:
            self._vectors = encode(self._texts.names)

    def find_meaning(
        self, vectors: FloatArray, folds: Sequence[int | None], n: int
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Find the concepts of mentions whose vectors are near to those of some texts.

        vectors (FloatArray): (n_texts, width), of length 1, from the function that `embed` used.
        folds (Sequence[int | None]): Fold whose mentions are ignored for each text.
        n (int): How many mentions to use.
        RETURNS (tuple): For each pair that is found: row of the text, row of the concept, and
            highest cosine of a mention that meant it.
        """
        found: dict[tuple[int, int], float] = {}
        if self._vectors is not None:
            cosines = vectors @ self._vectors.T
            best = np.argsort(-cosines, axis=1, kind="stable")[:, :n]
            for i, fold in enumerate(folds):
                for row in best[i].tolist():
                    for concept, _ in self._texts.concepts(row, fold):
                        found.setdefault((i, concept), float(cosines[i, row]))
        where = np.array(list(found), np.int64).reshape(-1, 2)
        return where[:, 0], where[:, 1], np.array(list(found.values()), np.float32)

    def find(
        self, texts: Sequence[str], keys: Sequence[str], folds: Sequence[int | None], n: int
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
        """Find the concepts of mentions that are written like some texts.

        texts (Sequence[str]), keys (Sequence[str]): Mentions and their keys.
        folds (Sequence[int | None]): Fold whose mentions are ignored for each text.
        n (int): How many similar mentions to use.
        RETURNS (tuple): For each pair that is found: row of the text, row of the concept, share of
            the mentions with this text (else with this key) that meant it, log of 1 + their number,
            and highest cosine of a mention that meant it.
        """
        found: dict[tuple[int, int], list[float]] = {}
        if self._index is not None:
            rows, cosines = self._index.search(keys, n)
            for i, fold in enumerate(folds):
                for row, cosine in zip(rows[i].tolist(), cosines[i].tolist(), strict=True):
                    if row < 0:
                        break
                    for concept, _ in self._keys.concepts(row, fold):
                        found.setdefault((i, concept), [0.0, 0.0, cosine])
        for i, (text, key, fold) in enumerate(zip(texts, keys, folds, strict=True)):
            counts = self._texts.concepts(self._texts.rows.get(normalize(text)), fold)
            counts = counts or self._keys.concepts(self._keys.rows.get(key), fold)
            total = sum(count for _, count in counts) + SHRINK
            for concept, count in counts:
                values = found.setdefault((i, concept), [0.0, 0.0, 1.0])
                values[:2] = [count / total, log1p(count)]
        where = np.array(list(found), np.int64).reshape(-1, 2)
        shares, logs, nearness = np.array(list(found.values()), np.float32).reshape(-1, 3).T
        return where[:, 0], where[:, 1], shares, logs, nearness

    def frequency(self, concepts: IntArray, folds: IntArray) -> IntArray:
        """Count the training mentions of concepts.

        concepts (IntArray): (n,) rows of the knowledge base.
        folds (IntArray): (n,) folds whose mentions are ignored, -1 for none.
        RETURNS (IntArray): (n,).
        """
        if not len(self._concepts):
            return np.zeros(len(concepts), np.int64)
        rows = np.minimum(np.searchsorted(self._concepts, concepts), len(self._concepts) - 1)
        return np.where(self._concepts[rows] == concepts, self._frequency[rows, folds], 0)

    def to_list(self) -> list[list[Any]]:
        """List the mentions and their counts as plain values for JSON."""
        return [[*mention, n] for mention, n in sorted(self.counts.items())]

    @classmethod
    def from_list(cls, kb: KnowledgeBase, rows: Iterable[Sequence[Any]]) -> "LearnedNames":
        """Make it from the values of `to_list`.

        RAISES (BioclinError): They are damaged.
        """
        counts: FoldMentions = Counter()
        for i, row in enumerate(rows):
            match row:
                case [str(text), str(kb_id), int(fold), int(n)] if (
                    0 <= fold < N_FOLDS and 0 < n <= MAX_COUNT
                ):
                    counts[LearnedMention(text, kb_id, fold)] += n
                case _:
                    raise BioclinError(
                        f"learned.json, row {i:,}: is not a mention, an id, a fold and a count; "
                        "copy the folder again, or train it again with `bioclin train-linker`"
                    )
        return cls(kb, counts)


class _NameTable:
    """Names with the concepts that they meant in each fold."""

    def __init__(self, counts: Mapping[str, FoldCounts]) -> None:
        self.names = sorted(counts)
        self.rows = {name: row for row, name in enumerate(self.names)}
        self._by_fold = [
            {
                fold: _count_outside(counts[name], fold)
                for fold in {None, *(fold for _, fold in counts[name])}
            }
            for name in self.names
        ]

    def concepts(self, row: int | None, fold: int | None) -> list[tuple[int, int]]:
        """List the concepts that a name meant outside a fold, and how often."""
        if row is None:
            return []
        by_fold = self._by_fold[row]
        return by_fold[fold if fold in by_fold else None]


def _count_outside(counts: FoldCounts, fold: int | None) -> list[tuple[int, int]]:
    outside: Counter[int] = Counter()
    for (concept, other), n in counts.items():
        if other != fold:
            outside[concept] += n
    return sorted(outside.items())
