"""The arrays by which names are found: as they are written, by their key, by what looks alike."""

import hashlib
from collections.abc import Iterable

import numpy as np

from .columns import StringBuffer, starts
from .ngrams import build_arrays
from .normalize import name_key, normalize

# Arrays whose names begin so belong to the index of similar names.
NGRAM = "ngram."
HASH = np.dtype("<u8")


def hash_text(text: str) -> int:
    """RETURNS (int): 64 bits of BLAKE2b: the same in every process and on every machine."""
    return int.from_bytes(_digest(text), "little")


def hash_texts(texts: Iterable[str]) -> np.ndarray:
    """RETURNS (np.ndarray): (n_texts,) uint64: the hash of each."""
    return np.frombuffer(b"".join(map(_digest, texts)), HASH)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()


def index_names(names: Iterable[str]) -> dict[str, np.ndarray]:
    """Index names.

    names (Iterable[str]): In the order of the knowledge base; gone through once.
    RETURNS (dict[str, np.ndarray]): X_hash, X_row: sorted hashes of the normalised names (X =
        "exact") and of their keys ("key"), and whose they are. key_names, key_names_start: the
        names that share each key. "ngram.…": see `ngrams.build_arrays`, its names are the keys.
    """
    exact, key_hash, keys = bytearray(), bytearray(), StringBuffer()
    for name in names:
        normal = normalize(name)
        key = name_key(normal)
        exact += _digest(normal)
        key_hash += _digest(key)
        keys.append(key)
    hashes, first, hash_of_name = np.unique(
        np.frombuffer(key_hash, HASH), return_index=True, return_inverse=True
    )
    # Keys are numbered as they first occur, so that ties go to the names that come first.
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    key_of_name = number[hash_of_name]
    different = keys.strings().take(first[order])
    del keys, key_hash
    arrays = {f"{NGRAM}{name}": values for name, values in build_arrays(different).items()}
    arrays["exact_hash"], arrays["exact_row"] = _sort(np.frombuffer(exact, HASH))
    arrays["key_hash"], arrays["key_row"] = hashes, number
    arrays["key_names"] = np.argsort(key_of_name, kind="stable").astype(np.int32)
    arrays["key_names_start"] = starts(np.bincount(key_of_name, minlength=len(different)))
    return arrays


def _sort(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    return hashes[order], order
