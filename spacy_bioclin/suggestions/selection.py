"""Choose notes of which a pipeline is unsure and that differ from each other."""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray

HASHED_WORDS = 4096  # columns of the vectors of words
MIN_PROBABILITY = 1e-12

Floats = NDArray[np.floating]


class Selected(NamedTuple):
    """A note that was chosen.

    number (int): Its place among the notes, from 0.
    uncertainty (float): See `token_entropy` and `span_entropy`; nats.
    distance (float): Half the cosine distance to the nearest note that was chosen before or is
        annotated, from 0 to 1; 1.0 for the first one.
    """

    number: int
    uncertainty: float
    distance: float


def token_entropy(marginals: Floats) -> FloatArray:
    """Compute the entropy of the tag of each token, summed over layers of tags.

    The sum over a note is the total token entropy of Settles and Craven (2008, "An Analysis of
    Active Learning Strategies for Sequence Labeling Tasks", equation 4 without its factor 1/T).

    marginals (ndarray): Probabilities, (n_tokens, n_layers, n_tags).
    RETURNS (ndarray): Nats, (n_tokens,).
    """
    p = marginals.astype(np.float64)
    entropy = -(p * np.log(np.maximum(p, MIN_PROBABILITY))).sum(axis=(1, 2))
    return np.maximum(entropy, 0.0).astype(np.float32)


def span_entropy(probabilities: Sequence[float]) -> float:
    """Sum the entropy of whether each span is right, for components that give no tags.

    probabilities (Sequence[float]): Probability of each span that was found.
    RETURNS (float): Nats.
    """
    p = np.clip(np.asarray(probabilities, dtype=np.float64), MIN_PROBABILITY, 1 - 1e-9)
    return float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).sum())


def select_notes(
    uncertainty: Floats, vectors: Floats, n: int, *, annotated: Floats | None = None
) -> list[Selected]:
    """Choose notes one after the other: the largest product of uncertainty and distance.

    The distance to what is there already is that of the greedy k-center algorithm (Sener and
    Savarese 2018, "Active Learning for Convolutional Neural Networks: A Core-Set Approach",
    algorithm 1), so that a note that repeats a chosen one is worth nothing. Ties go to the note
    that comes first.

    uncertainty (ndarray): Of each note, (n_notes,).
    vectors (ndarray): Of each note, (n_notes, width).
    n (int): How many notes to choose, if there are so many.
    annotated (ndarray | None): Vectors of notes that are annotated already, (n_annotated, width).
    RETURNS (list[Selected]): The notes, in the order in which they were chosen.
    """
    known = np.zeros((0, vectors.shape[1])) if annotated is None else annotated
    every = _normalize(np.concatenate([vectors, known]))
    unit, known = every[: len(vectors)], every[len(vectors) :]
    distance = np.ones(len(unit))
    for vector in known:
        distance = np.minimum(distance, _distances(unit, vector))
    is_free = np.ones(len(unit), dtype=bool)
    chosen: list[Selected] = []
    for _ in range(min(n, len(unit))):
        score = np.where(is_free, uncertainty * distance, -1.0)
        best = int(score.argmax())
        chosen.append(Selected(best, float(uncertainty[best]), float(distance[best])))
        is_free[best] = False
        distance = np.minimum(distance, _distances(unit, unit[best]))
    return chosen


def _normalize(vectors: Floats) -> Floats:
    """Subtract the mean, which vectors of an encoder have in common, and set the length to 1."""
    centred = vectors.astype(np.float64)
    if len(centred) > 1:
        centred = centred - centred.mean(axis=0)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.divide(centred, length, out=np.zeros_like(centred), where=length > 1e-9)


def _distances(unit: Floats, vector: Floats) -> Floats:
    """Compute half the cosine distance of unit vectors to one of them: 0 for equal, 1 for opposite
    ones."""
    return np.clip((1.0 - unit @ vector) / 2, 0.0, 1.0)


def make_word_vectors(texts: Iterable[str]) -> Floats:
    """Make TF-IDF vectors of texts, for pipelines without an encoder.

    texts (Iterable[str]): The texts.
    RETURNS (ndarray): Logarithm of the count of a word, times that of how rare the texts with it
        are; words are hashed to columns, (n_texts, 4096).
    """
    counts = [Counter(_hash_word(word) for word in text.lower().split()) for text in texts]
    vectors = np.zeros((len(counts), HASHED_WORDS), dtype=np.float32)
    for row, words in zip(vectors, counts, strict=True):
        row[list(words)] = 1.0 + np.log(list(words.values())) if words else 0.0
    n_texts_with = (vectors > 0).sum(axis=0)
    return vectors * np.log((1 + len(counts)) / (1 + n_texts_with))


def _hash_word(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % HASHED_WORDS
