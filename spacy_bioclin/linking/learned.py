"""What the mentions of annotated notes meant: names that no terminology has, and how often each
concept occurs (the popularity prior). Counts are kept by fold of the training notes, so that a
ranker can learn from a mention as if its own note had not been seen."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .kb import KnowledgeBase
from .ngrams import NgramIndex, build_arrays
from .normalize import name_key, normalize

N_FOLDS = 5
# Added to the number of mentions of a text: what was seen once weighs less than what is seen often.
SHRINK = 0.5

# (concept, fold) -> mentions
Counts = Counter[tuple[int, int]]


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
        self._texts: dict[str, Counts] = defaultdict(Counter)
        self._keys: dict[str, Counts] = defaultdict(Counter)
        concepts: Counts = Counter()
        for mention, n in self.counts.items():
            number = kb.number(mention.kb_id)
            if number is None:
                self.n_unknown += n
                continue
            where = number, mention.fold
            self._texts[normalize(mention.text)][where] += n
            self._keys[name_key(mention.text)][where] += n
            concepts[where] += n
        self._names = sorted(self._keys)
        self._index = NgramIndex(build_arrays(self._names)) if self._names else None
        self._frequency = {f: _outside(concepts, f) for f in (None, *range(N_FOLDS))}

    def find(
        self, texts: Sequence[str], keys: Sequence[str], folds: Sequence[int | None], n: int
    ) -> list[dict[int, tuple[float, float]]]:
        """Find what mentions like some texts meant.

        texts (Sequence[str]), keys (Sequence[str]): Mentions and their keys.
        folds (Sequence[int | None]): Fold whose mentions do not count for each.
        n (int): Similar mentions to look at.
        RETURNS (list[dict]): Row of a concept -> share of the mentions with this text (or key) that
            meant it, and highest cosine of a mention that meant it.
        """
        if self._index is None:
            return [{} for _ in texts]
        rows, cosines = self._index.search(keys, n)
        found: list[dict[int, tuple[float, float]]] = []
        for i, (text, key, fold) in enumerate(zip(texts, keys, folds, strict=True)):
            similar: dict[int, float] = {}
            for row, cosine in zip(rows[i].tolist(), cosines[i].tolist(), strict=True):
                if row >= 0:
                    for concept in _outside(self._keys[self._names[row]], fold):
                        similar.setdefault(concept, cosine)
            same = _outside(self._texts.get(normalize(text), Counter()), fold)
            same = same or _outside(self._keys.get(key, Counter()), fold)
            total = sum(same.values()) + SHRINK
            found.append({c: (same[c] / total, similar.get(c, 1.0)) for c in {**similar, **same}})
        return found

    def frequency(self, concept: int, fold: int | None) -> int:
        """RETURNS (int): Training mentions of the concept outside the fold."""
        return self._frequency[fold][concept]

    def to_list(self) -> list[list[Any]]:
        """RETURNS (list[list]): Plain values, which `from_list` takes."""
        return [[*mention, n] for mention, n in sorted(self.counts.items())]

    @classmethod
    def from_list(cls, kb: KnowledgeBase, rows: Iterable[Sequence[Any]]) -> "LearnedNames":
        """RETURNS (LearnedNames): As it was when `to_list` was called."""
        return cls(kb, (LearnedMention(*row[:3]) for row in rows for _ in range(row[3])))


def _outside(counts: Counts, fold: int | None) -> Counter[int]:
    """RETURNS (Counter[int]): Concept -> mentions outside the fold."""
    outside: Counter[int] = Counter()
    for (concept, other), n in counts.items():
        if other != fold:
            outside[concept] += n
    return outside
