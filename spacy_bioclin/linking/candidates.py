"""Find the concepts that a mention may mean: by the same name, a similar name, a name of similar
meaning, and by what mentions of the training data meant."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..types import BoolArray, FloatArray, IntArray
from .codes import CodeFinder
from .dense.index import DenseIndex
from .kb.knowledge_base import KnowledgeBase
from .learned import LearnedNames
from .names.columns import ranges, ranks
from .names.normalize import core_key, name_key, own_letters

# The features of a pair of text and concept, which a ranker weighs.
FEATURES = (
    "exact",  # a name differs in case, accents or punctuation only
    "key",  # a name has the same stems
    "core",  # a name has the same stems once modifiers are left out ("severe", "bilateral")
    "similar",  # highest trigram cosine of a name
    "preferred",  # the best name is the preferred one
    "language",  # the best name is of the note's language
    "length",  # bytes of the shorter of text and best name, divided by those of the longer
    "meaning",  # highest cosine of the encoder's vectors of text and names
    "same_mention",  # share of the training mentions with this text that meant the concept
    "same_count",  # log(1 + training mentions with this text that meant the concept)
    "similar_mention",  # highest cosine of a training mention that meant the concept
    "near_mention",  # highest cosine of the vector of a training mention that meant the concept
    "frequency",  # log(1 + training mentions of the concept)
    "seen",  # the concept is in the training data
    "short",  # the text has at most three letters
    "similar_gap",  # how far `similar` is below the highest of the candidates of the text
    "similar_mention_gap",  # the same for `similar_mention`
    "meaning_gap",  # the same for `meaning`
    "stem",  # log-probability of the stem of the code, by the words of the text (codes.py)
    "stem_gap",  # how far that is below the likeliest stem
    "qualifier",  # log-probability of the qualifier of the code, if the stem is right
    "qualifier_gap",  # how far that is below the likeliest qualifier of the stem
    "stem_similar",  # highest `similar` of the candidates with the stem
    "stem_similar_mention",  # the same for `similar_mention`
    "stem_same_mention",  # the same for `same_mention`
    "stem_frequency",  # the same for `frequency`
    "stem_meaning",  # the same for `meaning`
    "stem_near_mention",  # the same for `near_mention`
    "in_note",  # another text of the note surely means the concept (notes.py)
)
N_FEATURES = len(FEATURES)
COLUMN = {name: i for i, name in enumerate(FEATURES)}
GAPS = {
    "similar_gap": "similar",
    "similar_mention_gap": "similar_mention",
    "meaning_gap": "meaning",
}
# Features of codes of a stem and a qualifier; the latter are the highest of a feature by stem.
BY_STEM = ("similar", "similar_mention", "same_mention", "frequency", "meaning", "near_mention")
CODE_FEATURES: tuple[str, ...] = ("stem", "stem_gap", "qualifier", "qualifier_gap")
CODE_FEATURES += tuple(f"stem_{name}" for name in BY_STEM)
CODE_COLUMNS = [COLUMN[name] for name in CODE_FEATURES]
STEM_COLUMNS = [COLUMN[name] for name in BY_STEM]
# How similar a candidate is, for the choice of stems.
SIMILARITY = [COLUMN[name] for name in ("similar", "similar_mention", "same_mention")]
# Names that are searched for each requested concept.
NAMES_PER_CONCEPT = 2
MIN_SHORT = 4
# The cosine of equal keys, and by what it is multiplied if they leave out different letters:
# "hepatitis A" is similar to "hepatitis" and to "hepatitis E".
SAME_KEY, OTHER_LETTER = 0.999, 0.8


class Candidate(NamedTuple):
    """A concept that a mention may mean.

    kb_id (str): Its id.
    name (str): Its preferred name, in the language of the pipeline if it has one in it.
    score (float): Probability that the mention means it, 0 to 1.
    why (str): The name that was found, and how: "same name: heart attack".
    part (str): The part of a composite mention that may mean it: "ovarian cancer" of "breast and
        ovarian cancer"; "" if the mention is not composite.
    """

    kb_id: str
    name: str
    score: float
    why: str
    part: str = ""


class Pool(NamedTuple):
    """The candidates of a text, in no particular order.

    concepts (IntArray): (n,) rows of the knowledge base.
    names (IntArray): (n,) row of the name that was found; -1 if only training mentions were found.
    features (FloatArray): (n, N_FEATURES), see `FEATURES`.
    """

    concepts: IntArray
    names: IntArray
    features: FloatArray


class CandidateGenerator:
    """Find the candidates of texts.

    kb (KnowledgeBase): Contains the concepts.
    n_candidates (int): Concepts retrieved by each search method.
    lang (str): Language of the notes.
    meanings (DenseIndex | None): Vectors of the names; None to compare only how they are written.
    learned (LearnedNames | None): What mentions of the training data meant.
    codes (CodeFinder | None): What their words say of composed codes.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        n_candidates: int,
        lang: str,
        meanings: DenseIndex | None = None,
        learned: LearnedNames | None = None,
        codes: CodeFinder | None = None,
    ) -> None:
        self.kb, self.n_candidates = kb, n_candidates
        self.meanings = meanings
        self.learned: LearnedNames | None = None
        self.codes: CodeFinder | None = None
        if learned is not None:
            self.learn(learned, codes)
        self._first = np.asarray(kb.first_name)
        self._concept = np.asarray(kb.name_concept)
        self._lang = np.asarray(kb.name_lang)
        self._own = np.array([name in (lang, "") for name in kb.langs])

    def learn(self, names: LearnedNames, codes: CodeFinder | None) -> None:
        """Use what mentions of the training data meant from now on."""
        if self.meanings is not None:
            names.embed(self.meanings.encode)
        self.learned, self.codes = names, codes

    def __call__(
        self, texts: Sequence[str], folds: Sequence[int | None] | None = None
    ) -> list[Pool]:
        """Find candidates.

        texts (Sequence[str]): Texts of mentions.
        folds (Sequence[int | None] | None): Fold of the training data to ignore for each text.
        RETURNS (list[Pool]): One for each text; empty if nothing similar is found.
        """
        if not texts:
            return []
        folds = folds or [None] * len(texts)
        keys = [name_key(text) for text in texts]
        vectors = self.meanings.encode(texts) if self.meanings is not None else None
        pairs = _Pairs(len(self.kb))
        if self.learned is not None:
            rows, concepts, shares, counts, cosines = self.learned.find(
                texts, keys, folds, self.n_candidates
            )
            pairs.add(rows, concepts, "same_mention", shares)
            pairs.add(rows, concepts, "same_count", counts)
            pairs.add(rows, concepts, "similar_mention", cosines)
            if vectors is not None:
                rows, concepts, cosines = self.learned.find_meaning(
                    vectors, folds, self.n_candidates
                )
                pairs.add(rows, concepts, "near_mention", cosines)
        # From the weakest method to the strongest, because the name of the last one is shown.
        if self.meanings is not None and vectors is not None:
            found, near = self.meanings.search(vectors, NAMES_PER_CONCEPT * self.n_candidates)
            rows, columns = np.nonzero(found >= 0)
            self._add(pairs, rows, found[rows, columns], "meaning", near[rows, columns])
        letters = [own_letters(text) for text in texts]
        rows, found, feature, cosines = self._similar(keys)
        same = np.flatnonzero(cosines > SAME_KEY)
        others = same[~self._has_letters(letters, rows[same], found[same])]
        if len(others):
            cosines[others] *= OTHER_LETTER
            order = np.lexsort((-cosines, rows))
            rows, found, cosines = rows[order], found[order], cosines[order]
        self._add(pairs, rows, found, feature, cosines)
        cores = [core_key(key) for key in keys]
        for feature, names in (
            ("core", self.kb.same_key(cores)),
            ("key", self.kb.same_key(keys)),
            ("exact", self.kb.exact(texts)),
        ):
            rows = np.repeat(np.arange(len(texts)), [len(n) for n in names])
            found = np.concatenate(names)
            if feature != "exact":
                kept = self._has_letters(letters, rows, found)
                rows, found = rows[kept], found[kept]
            self._add(pairs, rows, found, feature, np.ones(len(rows), np.float32))
        return self._pools(pairs, texts, folds, vectors)

    def _has_letters(self, letters: Sequence[str], rows: IntArray, names: IntArray) -> BoolArray:
        """Check whether names of the same key have the same `own_letters` as their texts."""
        pairs = zip(rows.tolist(), names.tolist(), strict=True)
        return np.fromiter(
            (letters[row] == own_letters(self.kb.names[name]) for row, name in pairs),
            bool,
            len(rows),
        )

    def _similar(self, keys: Sequence[str]) -> tuple[IntArray, IntArray, str, FloatArray]:
        """Find similar names: row of the text, name, feature and cosine of each, best first."""
        found, cosines = self.kb.similar.search(keys, NAMES_PER_CONCEPT * self.n_candidates)
        rows, columns = np.nonzero(found >= 0)
        key = found[rows, columns]
        start = np.asarray(self.kb.arrays["key_names_start"])
        n_names = start[key + 1] - start[key]
        names = np.asarray(self.kb.arrays["key_names"])[ranges(start[key], n_names)]
        values = np.repeat(cosines[rows, columns], n_names)
        return np.repeat(rows, n_names), names, "similar", values

    def _add(
        self, pairs: "_Pairs", rows: IntArray, names: IntArray, feature: str, values: FloatArray
    ) -> None:
        """Add names, sorted best first for each text, of at most `n_candidates` concepts each."""
        concepts = self._concept[names]
        _, first = np.unique(rows * len(self.kb) + concepts, return_index=True)
        first = np.sort(first)
        rows = rows[first]
        kept = ranks(rows) < self.n_candidates
        first = first[kept]
        pairs.add(rows[kept], concepts[first], feature, values[first])
        pairs.name(names[first])

    def _pools(
        self,
        pairs: "_Pairs",
        texts: Sequence[str],
        folds: Sequence[int | None],
        vectors: FloatArray | None,
    ) -> list[Pool]:
        rows, concepts, names, features = pairs.join()
        if self.codes is not None:
            readings = self.codes.read(texts, folds)
            similar = features[:, SIMILARITY].sum(1)
            proposed = self.codes.propose(readings, rows, concepts, similar)
            pairs.add(*proposed, "stem", np.zeros(len(proposed[0]), np.float32))
            rows, concepts, names, features = pairs.join()
        first = self._first[concepts]
        shown = np.where(names >= 0, names, first)
        at = self.kb.names.start
        n_bytes, n_own = at[shown + 1] - at[shown], np.array([len(t.encode()) for t in texts])[rows]
        features[:, COLUMN["length"]] = np.minimum(n_bytes, n_own) / np.maximum(n_bytes, n_own)
        features[:, COLUMN["preferred"]] = shown == first
        features[:, COLUMN["language"]] = self._own[self._lang[shown]]
        features[:, COLUMN["short"]] = np.array([len(text) < MIN_SHORT for text in texts])[rows]
        if self.learned is not None:
            n_seen = self.learned.frequency(
                concepts, np.array([-1 if f is None else f for f in folds])[rows]
            )
            features[:, COLUMN["frequency"]] = np.log1p(n_seen)
            features[:, COLUMN["seen"]] = n_seen > 0
        if self.meanings is not None and vectors is not None:
            column = features[:, COLUMN["meaning"]]
            for found in (first, shown):
                own = self.meanings.vectors_of(found)
                np.maximum(column, (own * vectors[rows]).sum(1), out=column)
        if self.codes is not None:
            features[:, CODE_COLUMNS] = self.codes.describe(
                readings, rows, concepts, features[:, STEM_COLUMNS]
            )
        ends = np.searchsorted(rows, np.arange(len(texts) + 1))
        n_candidates = np.diff(ends)
        starts = ends[:-1][n_candidates > 0]
        for gap, name in GAPS.items():
            column = features[:, COLUMN[name]]
            best = np.maximum.reduceat(column, starts) if len(starts) else column
            features[:, COLUMN[gap]] = np.repeat(best, n_candidates[n_candidates > 0]) - column
        return [Pool(concepts[a:b], names[a:b], features[a:b]) for a, b in pairwise(ends)]


class _Pairs:
    """Collect pairs of text and concept, and join them at the end."""

    def __init__(self, n_concepts: int) -> None:
        self.n_concepts = n_concepts
        self.keys: list[IntArray] = []
        self.values: list[FloatArray] = []
        self.columns: list[int] = []
        self.names: list[IntArray | None] = []

    def add(self, rows: IntArray, concepts: IntArray, feature: str, values: FloatArray) -> None:
        self.keys.append(rows.astype(np.int64) * self.n_concepts + concepts)
        self.values.append(values)
        self.columns.append(COLUMN[feature])
        self.names.append(None)

    def name(self, names: IntArray) -> None:
        """Set the names by which the pairs added last were found."""
        self.names[-1] = names

    def join(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Get text, concept, name (-1 for none) and features of each pair, sorted by text."""
        pairs, inverse = np.unique(np.concatenate(self.keys), return_inverse=True)
        features = np.zeros((len(pairs), N_FEATURES), np.float32)
        names = np.full(len(pairs), -1, np.int64)
        start = 0
        for keys, values, column, found in zip(
            self.keys, self.values, self.columns, self.names, strict=True
        ):
            where = inverse[start : start + len(keys)]
            start += len(keys)
            features[where, column] = values
            if found is not None:
                names[where] = found
        rows, concepts = np.divmod(pairs, self.n_concepts)
        return rows, concepts, names, features
