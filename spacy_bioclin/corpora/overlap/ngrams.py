"""Find documents that hold text of test splits, so that nothing is trained on them.

A document overlaps with test splits if it shares too many word 12-grams with them. Words are runs
of letters and digits in lower case, so that tokenised and plain copies of a text compare equal.
"""

import functools
import hashlib
import re

import numpy

from ...text import compose

NGRAM = 12
MAX_SHARED = 30  # shared 12-grams from which a document overlaps
MAX_SHARE = 0.15  # share of its own 12-grams from which a document overlaps
WORD = re.compile(r"[^\W_]+")
MULTIPLIER = numpy.uint64(0x9E3779B97F4A7C15)  # odd, so that no bit of a word is lost


def word_hashes(text: str) -> numpy.ndarray:
    """Hash the words of a text. The hashes are the same on every machine and in every run.

    RETURNS (numpy.ndarray): 64-bit hashes, uint64 of shape (n_words,).
    """
    words = WORD.findall(compose(text).casefold())
    return numpy.fromiter(map(_word_hash, words), dtype=numpy.uint64, count=len(words))


@functools.lru_cache(maxsize=2**18)
def _word_hash(word: str) -> int:
    return bytes_hash(word.encode("utf-8", "surrogatepass"))


def bytes_hash(data: bytes) -> int:
    """Compute a 64-bit hash that is the same on every machine and in every run."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def ngram_hashes(words: numpy.ndarray, n: int) -> numpy.ndarray:
    """Hash every run of `n` words.

    words (numpy.ndarray): From `word_hashes`, shape (n_words,).
    n (int): Length of a run, in words.
    RETURNS (numpy.ndarray): The distinct hashes, uint64, ascending; empty for fewer words than `n`.
    """
    n_runs = max(0, len(words) - n + 1)
    hashes = numpy.zeros(n_runs, dtype=numpy.uint64)
    for start in range(min(n, len(words))):
        hashes *= MULTIPLIER
        hashes += words[start : start + n_runs]
    return numpy.unique(hashes)


def is_overlap(ngrams: numpy.ndarray, test: numpy.ndarray) -> bool:
    """Check whether a document shares too much with the test splits.

    ngrams (numpy.ndarray): The distinct 12-grams of the document, from `ngram_hashes`.
    test (numpy.ndarray): The 12-grams of the test splits, such as those of `read_test_ngrams`.
    RETURNS (bool): True if it shares at least 30 of them, or at least 15 % of its own.
    """
    if not len(ngrams) or not len(test):
        return False
    places = numpy.minimum(numpy.searchsorted(test, ngrams), len(test) - 1)
    n_shared = int((test[places] == ngrams).sum())
    return n_shared >= MAX_SHARED or n_shared >= MAX_SHARE * len(ngrams)
