"""Vectors of concepts, for spaCy's `entity_linker`."""

import math

import numpy as np

from ...types import FloatArray
from ..dense.index import DenseIndex
from ..kb.knowledge_base import KnowledgeBase
from ..names.index import hash_text
from ..names.ngrams import word_grams
from ..names.normalize import normalize


def concept_vector(
    kb: KnowledgeBase, meanings: DenseIndex | None, width: int, row: int
) -> FloatArray:
    """Compute the vector of a concept from its preferred name.

    RETURNS (FloatArray): (width,) of length 1.
    """
    if meanings is not None:
        return of_length_1(meanings.vectors_of(kb.first_name[row : row + 1])[0])
    return trigram_vector(kb.name_of(row), width)


def trigram_vector(name: str, width: int) -> FloatArray:
    """Compute a vector for a name without an encoder. It depends on how the name is written, not on
    what it means: "cancer" and "neoplasm" are as far apart as any two names.

    Feature hashing (Weinberger et al. 2009): each trigram of each word adds 1 or -1 at one place,
    both chosen by its hash.

    name (str): The name.
    width (int): Width of the vector.
    RETURNS (FloatArray): (width,) of length 1, the same on every machine.
    """
    vector = np.zeros(width, np.float32)
    for word in normalize(name).split() or [name]:
        for gram in word_grams(word):
            bits = hash_text(gram)
            vector[bits % width] += 1 if bits >> 63 else -1
    if not vector.any():  # the trigrams cancel each other out
        vector[hash_text(name) % width] = 1
    return of_length_1(vector)


def of_length_1(vector: FloatArray) -> FloatArray:
    """Scale a vector to length 1; zeros stay zeros.

    The length is the exact sum of exact squares, rounded once. The sums of numpy and BLAS depend on
    the instructions of the processor.

    RETURNS (FloatArray): (width,), the same on every machine.
    """
    exact = vector.astype(np.float64)
    length = math.sqrt(math.fsum((exact * exact).tolist()))
    return (exact / (length or 1.0)).astype(np.float32)
