"""Which concepts a mention may mean: the same name, a similar name, a name of similar meaning, and
what mentions of the training data meant. Each text is looked up once, whatever its mentions."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .kb import KnowledgeBase
from .learned import LearnedNames
from .normalize import STOP_WORDS, core_key, name_key, normalize

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float32]

# What is known of a pair of text and concept; a ranker weighs it.
FEATURES = (
    "exact",  # a name differs in case, accents or punctuation only
    "key",  # a name has the same stems
    "core",  # a name has the same stems once modifiers are left out ("severe", "bilateral")
    "similar",  # highest trigram cosine of a name
    "preferred",  # the best name is the preferred one
    "language",  # the best name is of the note's language
    "shared",  # share of the text's words that the best name holds
    "covered",  # share of the best name's words that the text holds
    "meaning",  # highest cosine of the encoder's vectors of text and names
    "same_mention",  # share of the training mentions with this text that meant the concept
    "similar_mention",  # highest cosine of a training mention that meant the concept
    "frequency",  # log(1 + training mentions of the concept)
    "seen",  # the concept is in the training data
    "short",  # the text has at most three letters
)
N_FEATURES = len(FEATURES)
COLUMN = {name: i for i, name in enumerate(FEATURES)}
# Names that are read for each concept that is asked for.
NAMES_PER_CONCEPT = 2
# A concept's names whose meaning is compared, from the preferred one on.
MAX_NAMES = 12
MIN_SHORT = 4


class Candidate(NamedTuple):
    """A concept that a mention may mean.

    kb_id (str): Its id.
    name (str): Its preferred name.
    score (float): Probability that the mention means it, 0 to 1.
    why (str): The name that was found, and how: "same name: heart attack".
    """

    kb_id: str
    name: str
    score: float
    why: str


class Pool(NamedTuple):
    """The candidates of a text, without order.

    concepts (IntArray): (n,) rows of the knowledge base.
    names (IntArray): (n,) row of the name that was found; -1 if only training mentions led there.
    features (FloatArray): (n, N_FEATURES), see `FEATURES`.
    """

    concepts: IntArray
    names: IntArray
    features: FloatArray


class Meanings(Protocol):
    """Vectors of all names, see `dense.DenseIndex`."""

    def encode(self, texts: Sequence[str]) -> FloatArray: ...

    def search(self, vectors: FloatArray, k: int) -> tuple[IntArray, FloatArray]: ...

    def vectors_of(self, rows: IntArray) -> FloatArray: ...


class CandidateGenerator:
    """Finds the pool of each text.

    kb (KnowledgeBase): Where to look.
    n_candidates (int): Concepts for each way of looking.
    lang (str): Language of the notes.
    meanings (Meanings | None): Vectors of the names; None: what a name means is not compared.
    learned (LearnedNames | None): What mentions of the training data meant.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        n_candidates: int,
        lang: str,
        meanings: Meanings | None = None,
        learned: LearnedNames | None = None,
    ) -> None:
        self.kb, self.n_candidates = kb, n_candidates
        self.meanings, self.learned = meanings, learned
        self._first = np.asarray(kb.first_name)
        self._concept = np.asarray(kb.name_concept)
        own = [code for code, name in enumerate(kb.langs) if name in (lang, "")]
        self._is_own = np.isin(np.asarray(kb.name_lang), own)

    def __call__(
        self, texts: Sequence[str], folds: Sequence[int | None] | None = None
    ) -> list[Pool]:
        """Find candidates.

        texts (Sequence[str]): Texts of mentions.
        folds (Sequence[int | None] | None): Fold of the training data that must not help each text.
        RETURNS (list[Pool]): One for each text; empty where nothing is alike.
        """
        if not texts:
            return []
        keys = [name_key(text) for text in texts]
        exact, same = self.kb.exact(texts), self.kb.same_key(keys)
        core = self.kb.same_key([core_key(key) for key in keys])
        similar = self.kb.similar.search(keys, NAMES_PER_CONCEPT * self.n_candidates)
        vectors = self.meanings.encode(texts) if self.meanings else None
        near = None
        if self.meanings and vectors is not None:
            near = self.meanings.search(vectors, NAMES_PER_CONCEPT * self.n_candidates)
        own_folds = folds or [None] * len(texts)
        learned = None
        if self.learned is not None:
            learned = self.learned.find(texts, keys, own_folds, self.n_candidates)
        pools = []
        for i, text in enumerate(texts):
            rows, cosines = self._similar_names(similar[0][i], similar[1][i])
            hits = _Hits(self._concept)
            hits.add(rows, cosines, "similar", self.n_candidates)
            hits.add(core[i], np.ones(len(core[i]), np.float32), "core")
            hits.add(same[i], np.ones(len(same[i]), np.float32), "key")
            hits.add(exact[i], np.ones(len(exact[i]), np.float32), "exact")
            if near is not None:
                hits.add(near[0][i], near[1][i], "meaning", self.n_candidates)
            if learned is not None:
                for concept, (share, cosine) in learned[i].items():
                    hits.add_learned(concept, share, cosine)
            pool = self._pool(hits, text, None if vectors is None else vectors[i])
            if self.learned is not None and len(pool.concepts):
                counts = [self.learned.frequency(int(c), own_folds[i]) for c in pool.concepts]
                pool.features[:, COLUMN["frequency"]] = np.log1p(counts)
                pool.features[:, COLUMN["seen"]] = np.array(counts) > 0
            pools.append(pool)
        return pools

    def _similar_names(self, keys: IntArray, cosines: FloatArray) -> tuple[IntArray, FloatArray]:
        """RETURNS (tuple[IntArray, FloatArray]): The names with these keys."""
        found = [self.kb.names_of_key(int(key)) for key in keys if key >= 0]
        if not found:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        lengths = [len(names) for names in found]
        return np.concatenate(found), np.repeat(cosines[: len(found)], lengths)

    def _pool(self, hits: "_Hits", text: str, vector: FloatArray | None) -> Pool:
        concepts = np.fromiter(hits.values, np.int32, len(hits.values))
        names = np.fromiter((hits.names.get(int(c), -1) for c in concepts), np.int32)
        if not len(concepts):
            return Pool(concepts, names, np.zeros((0, N_FEATURES), np.float32))
        features = np.stack([hits.values[int(c)] for c in concepts])
        words = set(normalize(text).split()) - STOP_WORDS
        for row, name in enumerate(names):
            if name < 0:
                name = self._first[concepts[row]]
            features[row, COLUMN["preferred"]] = self._first[concepts[row]] == name
            features[row, COLUMN["language"]] = self._is_own[name]
            others = set(normalize(self.kb.names[name]).split()) - STOP_WORDS
            both = len(words & others)
            features[row, COLUMN["shared"]] = both / max(len(words), 1)
            features[row, COLUMN["covered"]] = both / max(len(others), 1)
        if self.meanings is not None and vector is not None:
            meaning = self._meaning(concepts, names, vector)
            column = features[:, COLUMN["meaning"]]
            np.maximum(column, meaning, out=column)
        features[:, COLUMN["short"]] = len(text) < MIN_SHORT
        return Pool(concepts, names, features)

    def _meaning(self, concepts: IntArray, names: IntArray, vector: FloatArray) -> FloatArray:
        """RETURNS (FloatArray): (n,) highest cosine of the vector with names of each concept."""
        assert self.meanings is not None
        first = self._first[concepts]
        n_names = np.minimum(self._first[concepts + 1] - first, MAX_NAMES)
        start = np.cumsum(n_names) - n_names
        rows = np.arange(n_names.sum()) + np.repeat(first - start, n_names)
        found = np.where(names >= 0, names, first)
        cosines = self.meanings.vectors_of(np.concatenate([rows, found]).astype(np.int32)) @ vector
        best = np.maximum.reduceat(cosines[: len(rows)], start)
        return np.maximum(best, cosines[len(rows) :])


class _Hits:
    """The concepts found for one text, with the name that led there first."""

    def __init__(self, concept_of_name: IntArray) -> None:
        self.concept_of_name = concept_of_name
        self.values: dict[int, FloatArray] = {}
        self.names: dict[int, int] = {}

    def add(
        self, names: IntArray, cosines: FloatArray, feature: str, limit: int | None = None
    ) -> None:
        """Add names, best first; a later way of looking replaces the name that is shown."""
        column, n_new = COLUMN[feature], 0
        seen = set()
        for name, cosine in zip(names.tolist(), cosines.tolist(), strict=True):
            if name < 0:
                break
            concept = int(self.concept_of_name[name])
            if concept in seen:
                continue
            if limit is not None and n_new == limit:
                break
            seen.add(concept)
            n_new += 1
            values = self.values.get(concept)
            if values is None:
                values = self.values[concept] = np.zeros(N_FEATURES, np.float32)
            values[column] = cosine
            if feature != "meaning" or concept not in self.names:
                self.names[concept] = name

    def add_learned(self, concept: int, share: float, cosine: float) -> None:
        """Add what training mentions say of a concept."""
        row = self.values.get(concept)
        if row is None:
            row = self.values[concept] = np.zeros(N_FEATURES, np.float32)
        row[COLUMN["same_mention"]], row[COLUMN["similar_mention"]] = share, cosine
