"""Find names that look alike, by the cosine of character trigrams weighted by rarity (TF-IDF).

ScispaCy's candidate generator compares the same (Neumann et al. 2019), but with a graph. A name is
the sum of its words, and a cosine of sums is a sum over pairs of words: for each word of a text
the similar words of the vocabulary are found once and cached, and names are found by these words.
Millions of names have few different words, so the index is small and built in seconds, and little
of it is read from disk.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy import sparse
from sparse_dot_topn import sp_matmul_topn

from ...errors import BioclinError
from ...types import FloatArray, IntArray
from .columns import ranges, starts

N = 3
# Texts that are searched together.
BATCH = 128
# Names are found by the words of the vocabulary that are most similar to a word of the text.
N_SIMILAR, MIN_SIMILAR = 128, 0.2
# Names that are compared completely: the minimum, and the number per requested name.
MIN_COMPARED, COMPARED_PER_K = 64, 2
# Words whose similar words are cached.
MAX_REMEMBERED = 100_000
MAX_ENTRIES = 2**31 - 1


def word_grams(word: str) -> list[str]:
    """List the different trigrams of " word ", sorted."""
    padded = f" {word} "
    return sorted({padded[i : i + N] for i in range(len(padded) - N + 1)})


def build_arrays(keys: Sequence[str]) -> dict[str, np.ndarray]:
    """Index a list of names.

    keys (Sequence[str]): Names as words separated by blanks, see `normalize.name_key`.
    RETURNS (dict[str, np.ndarray]): The arrays of `NgramIndex`.
    RAISES (BioclinError): There are no names, or too many for one index.
    """
    if not keys:
        raise BioclinError("keys: no name to index")
    numbers: dict[str, int] = {}
    words = _number_parts((key.split(" ") for key in keys), numbers)
    if words.nnz > MAX_ENTRIES:
        raise BioclinError(
            f"keys: {len(keys):,} names hold {words.nnz:,} words, over {MAX_ENTRIES:,}: build one "
            "knowledge base for each terminology or language"
        )
    gram_numbers: dict[str, int] = {}
    grams = _number_parts((word_grams(word) for word in numbers), gram_numbers)
    parts = {
        "grams": np.array(list(gram_numbers), dtype=f"U{N}"),
        "spelling_start": grams.indptr,
        "spelling_grams": grams.indices,
        "name_start": words.indptr,
        "name_words": words.indices,
    }
    return {**parts, **derive_arrays(parts)}


def derive_arrays(parts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Compute the weights of an index, and its lists by trigram and by word.

    parts (Mapping[str, np.ndarray]): "grams", the trigrams of each word, the words of each name.
    RETURNS (dict[str, np.ndarray]): The other arrays of `NgramIndex`.
    """
    grams = _ones(parts["spelling_start"], parts["spelling_grams"], len(parts["grams"]))
    words = _ones(parts["name_start"], parts["name_words"], grams.shape[0])
    names_of_word = np.bincount(words.indices, minlength=words.shape[1])
    n_holding = np.bincount(grams.indices, np.repeat(names_of_word, np.diff(grams.indptr)))
    idf = (np.log(np.maximum(words.shape[0] / n_holding, 1)) + 1).astype(np.float32)
    grams.data = idf[grams.indices]
    word_norm = np.sqrt(_row_sums(grams.data**2, grams.indptr))
    norm = _name_norms(words, grams)
    inverted = words.T.tocsr()
    inverted.data = 1 / norm[inverted.indices]
    grams.data /= np.repeat(word_norm, np.diff(grams.indptr))
    by_gram = grams.T.tocsr()
    return {
        "idf": idf,
        "gram_start": by_gram.indptr,
        "gram_words": by_gram.indices,
        "gram_weights": by_gram.data,
        "word_norm": word_norm,
        "word_start": inverted.indptr,
        "word_names": inverted.indices,
        "word_weights": inverted.data,
        "name_norm": norm,
    }


def _number_parts(texts: Iterable[Iterable[str]], numbers: dict[str, int]) -> sparse.csr_matrix:
    """Number the parts of texts, adding new parts to `numbers`.

    RETURNS (csr_matrix): (n_texts, n_parts) with 1 for each part of a text.
    """
    ids: list[int] = []
    start = [0]
    for parts in texts:
        ids += [numbers.setdefault(part, len(numbers)) for part in parts]
        start.append(len(ids))
    return _ones(np.array(start, np.int32), np.array(ids, np.int32), len(numbers))


def _ones(start: IntArray, ids: IntArray, n_columns: int) -> sparse.csr_matrix:
    """Make a matrix with 1 for each id in the list of a row."""
    ones = np.ones(len(ids), dtype=np.float32)
    return sparse.csr_matrix((ones, ids, start), (len(start) - 1, n_columns))


def _row_sums(values: FloatArray, start: IntArray) -> FloatArray:
    return np.add.reduceat(values, start[:-1])


def _name_norms(words: sparse.csr_matrix, grams: sparse.csr_matrix) -> FloatArray:
    """Compute the length of the sum of each name's words, in blocks of names.

    RETURNS (FloatArray): (n_names,).
    """
    norms = []
    for i in range(0, words.shape[0], 100_000):
        vectors = words[i : i + 100_000] @ grams
        norms.append(np.sqrt(_row_sums(vectors.data**2, vectors.indptr)))
    return np.concatenate(norms)


class NgramIndex:
    """Find the names that look most like a text.

    arrays (Mapping[str, np.ndarray]): From `build_arrays`; may be memory-mapped. `grams`, `idf`:
        the trigrams, and log(names / names with the trigram) + 1. X_start, X_Y, X_weights: for each
        X its Ys, as the rows of a sparse matrix; the spelling of a word is its trigrams. X_norm:
        lengths of vectors.
    n_similar (int), min_similar (float): For each word of a text, how many similar words of the
        vocabulary are used to find names, and their lowest cosine. The best names found are
        compared completely; all words and 0 find all names.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        *,
        n_similar: int = N_SIMILAR,
        min_similar: float = MIN_SIMILAR,
    ) -> None:
        self.n_similar, self.min_similar = n_similar, min_similar
        loaded = {key: np.asarray(array) for key, array in arrays.items()}
        self._idf, self._word_norm = loaded["idf"], loaded["word_norm"]
        self._number = {gram: i for i, gram in enumerate(loaded["grams"].tolist())}
        self._spelling_start, self._spelling = loaded["spelling_start"], loaded["spelling_grams"]
        self._name_start, self._name_words = loaded["name_start"], loaded["name_words"]
        self._name_norm = loaded["name_norm"]
        self.n_names, n_words = len(self._name_norm), len(self._word_norm)
        self._words_of = sparse.csr_matrix(
            (loaded["gram_weights"], loaded["gram_words"], loaded["gram_start"]),
            (len(self._idf), n_words),
        )
        self._names_of = sparse.csr_matrix(
            (loaded["word_weights"], loaded["word_names"], loaded["word_start"]),
            (n_words, self.n_names),
        )
        self._similar: dict[str, tuple[IntArray, FloatArray]] = {}

    def search(self, keys: Sequence[str], k: int) -> tuple[IntArray, FloatArray]:
        """Find the most similar names.

        keys (Sequence[str]): Texts in the same form as the names.
        k (int): How many names for each.
        RETURNS (tuple[IntArray, FloatArray]): (n_keys, k) numbers of names, -1 if there are fewer,
            and their cosines, best first, then by number.
        """
        found = np.full((len(keys), k), -1, np.int32)
        scores = np.zeros((len(keys), k), np.float32)
        for i in range(0, len(keys), BATCH):
            self._search(keys[i : i + BATCH], found[i : i + BATCH], scores[i : i + BATCH])
        return found, scores

    def _search(self, keys: Sequence[str], found: IntArray, scores: FloatArray) -> None:
        k = found.shape[1]
        split = [key.split(" ") for key in keys]
        n_compared = max(MIN_COMPARED, COMPARED_PER_K * k)
        texts = self._vectors(split)
        best = sp_matmul_topn(texts, self._names_of, n_compared, sort=False, n_threads=1)
        rows = np.repeat(np.arange(len(keys)), np.diff(best.indptr))
        cosines = self._compare(split, rows, best.indices)
        order = np.lexsort((best.indices, -cosines, rows))
        rank = np.arange(len(rows)) - best.indptr[rows]
        kept = rank < k
        found[rows[kept], rank[kept]] = best.indices[order][kept]
        scores[rows[kept], rank[kept]] = cosines[order][kept]

    def _vectors(self, split: Sequence[Sequence[str]]) -> sparse.csr_matrix:
        """Compute what each word of the vocabulary adds to the similarity of a name with a text.

        RETURNS (csr_matrix): (n_texts, n_words); only words similar to a word of the text count.
        """
        similar = self._find_similar({word for words in split for word in words})
        parts = [similar[word] for words in split for word in words]
        ids, values = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        n_ids = [sum(len(similar[word][0]) for word in words) for words in split]
        start = np.cumsum([0, *n_ids]).astype(np.int32)
        return sparse.csr_matrix((values, ids, start), (len(split), len(self._word_norm)))

    def _compare(
        self, split: Sequence[Sequence[str]], rows: IntArray, names: IntArray
    ) -> FloatArray:
        """Compute the cosine of each text (by row) and name.

        The names of a text share words, so each different word is compared with it once.

        RETURNS (FloatArray): (n_pairs,).
        """
        if not len(rows):
            return np.zeros(0, np.float32)
        weights = np.zeros((len(split), len(self._idf)), np.float32)
        lengths = np.array(
            [self._weigh(words, weights[row]) for row, words in enumerate(split)], np.float32
        )
        start = self._name_start[names]
        n_words = self._name_start[names + 1] - start
        words = self._name_words[ranges(start, n_words)].astype(np.int64)
        words += np.repeat(rows, n_words) * len(self._word_norm)
        different, which = np.unique(words, return_inverse=True)
        row, word = np.divmod(different, len(self._word_norm))
        start = self._spelling_start[word]
        n_grams = self._spelling_start[word + 1] - start
        grams = self._spelling[ranges(start, n_grams)]
        values = weights[np.repeat(row, n_grams), grams] * self._idf[grams]
        dots = _row_sums(_row_sums(values, starts(n_grams))[which], starts(n_words))
        return np.asarray(dots / (lengths[rows] * self._name_norm[names]), np.float32)

    def _weigh(self, words: Sequence[str], weights: FloatArray) -> float:
        """Add a text's trigrams to a row of weights.

        RETURNS (float): Length of the text's vector; a trigram in no name counts as one in a single
            name.
        """
        sums: dict[str, float] = {}
        rarest = float(np.log(self.n_names)) + 1
        for word in words:
            for gram in word_grams(word):
                number = self._number.get(gram)
                idf = rarest if number is None else float(self._idf[number])
                sums[gram] = sums.get(gram, 0.0) + idf
        for gram, value in sums.items():
            if gram in self._number:
                weights[self._number[gram]] = value
        return math.sqrt(sum(value * value for value in sums.values()))

    def _find_similar(self, words: set[str]) -> dict[str, tuple[IntArray, FloatArray]]:
        """Find the words of the vocabulary that are similar to each of these, and cache them.

        Other threads may use and clear the cache meanwhile.
        """
        cache = self._similar
        found = {word: cached for word in words if (cached := cache.get(word)) is not None}
        new = sorted(words - found.keys())
        if not new:
            return found
        known = [[self._number[g] for g in word_grams(word) if g in self._number] for word in new]
        start = np.cumsum([0, *map(len, known)]).astype(np.int32)
        ids = np.array([i for grams in known for i in grams], np.int32)
        vectors = sparse.csr_matrix((self._idf[ids], ids, start), (len(new), len(self._idf)))
        best = sp_matmul_topn(vectors, self._words_of, self.n_similar, sort=False, n_threads=1)
        for i, word in enumerate(new):
            norm = np.linalg.norm(vectors.data[start[i] : start[i + 1]])
            row = slice(best.indptr[i], best.indptr[i + 1])
            similar, dots = best.indices[row], best.data[row]
            kept = dots >= self.min_similar * norm
            similar = similar[kept]
            found[word] = similar, dots[kept] * self._word_norm[similar]
        if len(cache) + len(new) > MAX_REMEMBERED:
            cache.clear()
        cache.update((word, found[word]) for word in new)
        return found
