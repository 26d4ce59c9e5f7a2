"""Index names: as they are written, by their key, and by similarity."""

import hashlib
from collections.abc import Iterable

import numpy as np

from .columns import StringBuffer, number_groups, starts
from .ngrams import build_arrays
from .normalize import name_key, normalize

# Prefix of the arrays of the index of similar names.
NGRAM = "ngram."
HASH = np.dtype("<u8")


def hash_text(text: str) -> int:
    """Compute 64 bits of BLAKE2b, which are the same in every process and on every machine."""
    return int.from_bytes(_digest(text), "little")


def hash_texts(texts: Iterable[str]) -> np.ndarray:
    """Compute the hash of each text.

    RETURNS (np.ndarray): (n_texts,) uint64.
    """
    return np.frombuffer(b"".join(map(_digest, texts)), HASH)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()


def index_names(names: Iterable[str]) -> dict[str, np.ndarray]:
    """Index names.

    names (Iterable[str]): In the order of the knowledge base; iterated once.
    RETURNS (dict[str, np.ndarray]): "exact_hash", "exact_row": sorted hashes of the normalised
        names, and the names that have them. "key_hash", "key_row": the same of keys. "key_names",
        "key_names_start": the names with each key. "ngram.…": the index of similar keys, see
        `ngrams.build_arrays`.
    """
    exact, key_hash, keys = bytearray(), bytearray(), StringBuffer()
    for name in names:
        normal = normalize(name)
        key = name_key(normal)
        exact += _digest(normal)
        key_hash += _digest(key)
        keys.append(key)
    # Keys are numbered as they first occur, so that ties go to the names that come first.
    key_hashes = np.frombuffer(key_hash, HASH)
    key_of_name, first = number_groups(key_hashes)
    different = keys.strings().take(first)
    del keys
    arrays = {f"{NGRAM}{name}": values for name, values in build_arrays(different).items()}
    arrays["exact_hash"], arrays["exact_row"] = _sort(np.frombuffer(exact, HASH))
    arrays["key_hash"], arrays["key_row"] = _sort(key_hashes[first])
    arrays["key_names"] = np.argsort(key_of_name, kind="stable").astype(np.int32)
    arrays["key_names_start"] = starts(np.bincount(key_of_name, minlength=len(different)))
    return arrays


def _sort(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    return hashes[order], order
