"""Divide documents into folds, such that documents with the same text are in the same fold."""

from collections.abc import Iterable, Sequence

import numpy
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...errors import BioclinError
from .ngrams import NGRAM, bytes_hash, ngram_hashes, word_hashes

MIN_SHARE = 0.5  # shared 12-grams, of the document with fewer, from which two stay together
MAX_DOCUMENTS = 100  # a 12-gram of more documents is boilerplate


def make_folds(documents: Iterable[tuple[str, str]], n_folds: int) -> list[int]:
    """Divide documents into folds of about the same size.

    Documents of the same id stay together, and so do those that share half of their word 12-grams.
    The order of the documents makes no difference.

    documents (Iterable[tuple[str, str]]): Id ("" for none) and text of each.
    n_folds (int): Number of folds.
    RETURNS (list[int]): Fold of each document, from 0.
    RAISES (BioclinError): There are fewer than two folds, or too few documents.
    """
    if n_folds < 2:
        raise BioclinError(f"{n_folds} folds: want two or more")
    keys, words = [], []
    for id, text in documents:
        keys.append(f"{id} {text}")
        words.append((id, word_hashes(text)))
    groups = _group(words) if words else []
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    if len(members) < n_folds:
        raise BioclinError(
            f"{n_folds} folds of {len(keys)} documents: only {len(members)} of them differ; set "
            "fewer folds"
        )
    first = {group: min(keys[i] for i in found) for group, found in members.items()}
    sizes, folds = [0] * n_folds, [0] * len(keys)
    for group in sorted(members, key=lambda group: bytes_hash(first[group].encode())):
        fold = sizes.index(min(sizes))
        sizes[fold] += len(members[group])
        for number in members[group]:
            folds[number] = fold
    return folds


def _group(documents: Sequence[tuple[str, numpy.ndarray]]) -> list[int]:
    """Find the documents that stay together.

    documents (Sequence): Id and `word_hashes` of each.
    RETURNS (list[int]): A number for each document, the same for those of a group.
    """
    n_docs = len(documents)
    pairs = [(number, number) for number in range(n_docs)]
    seen: dict[str | bytes, int] = {}
    for number, (id, words) in enumerate(documents):
        keys: list[str | bytes] = [id, words.tobytes()]
        pairs += [(number, seen.setdefault(key, number)) for key in keys if key]
    ngrams = [ngram_hashes(words, NGRAM) for _, words in documents]
    pairs += _find_near(ngrams)
    rows, columns = numpy.array(pairs).reshape(-1, 2).T
    graph = coo_array((numpy.ones(len(rows)), (rows, columns)), shape=(n_docs, n_docs))
    return connected_components(graph, directed=False)[1].tolist()


def _find_near(ngrams: Sequence[numpy.ndarray]) -> list[tuple[int, int]]:
    """Find the pairs of documents that share half of the 12-grams of the shorter one."""
    lengths = numpy.array([len(each) for each in ngrams])
    if not lengths.sum():
        return []
    docs = numpy.repeat(numpy.arange(len(ngrams)), lengths)
    _, columns, counts = numpy.unique(
        numpy.concatenate(ngrams), return_inverse=True, return_counts=True
    )
    shared = (counts > 1) & (counts <= MAX_DOCUMENTS)
    kept = shared[columns]
    shape = len(ngrams), len(counts)
    ones = numpy.ones(int(kept.sum()), dtype=numpy.int32)
    table = coo_array((ones, (docs[kept], columns[kept])), shape=shape).tocsr()
    common = (table @ table.T).tocoo()
    one, other = common.coords
    near = common.data >= MIN_SHARE * numpy.minimum(lengths[one], lengths[other])
    return list(zip(one[near].tolist(), other[near].tolist(), strict=True))
