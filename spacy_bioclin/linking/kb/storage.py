"""The folder of a knowledge base: one file for each array, and meta.json, which describes them."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BioclinError
from ...files import check_regular
from ...outputs import check_output
from ..names.columns import as_array
from ..names.index import NGRAM
from ..names.ngrams import derive_arrays
from .checks import AGAIN, RULES, find_wrong_number

# Raised with every change of the arrays; a folder of another version must be built again.
FORMAT = 3
META = "meta.json"
# All files of a knowledge base, also of other versions.
FILES = r"meta\.json|[a-z_]+(\.[a-z_]+)?\.npy"
# A memory mapping costs a file handle and a page, so smaller arrays are read, and compared whole.
MIN_MAPPED = 2**16
# Of larger ones, this many pieces of this many bytes are compared when they are opened.
N_PIECES, PIECE_BYTES = 4, 4096
ARRAYS = frozenset(RULES)
DERIVED = frozenset(name for name, rule in RULES.items() if rule.get("derived"))
DESCRIBED: dict[str, type] = {
    "hash": str,
    "name": str,
    "version": str,
    "arrays": dict,
    "types": list,
    "lang_codes": list,
    "sources": list,
    "skipped": dict,
    "n_concepts": int,
    "n_names": int,
}
# Not in the hash: they are made of the arrays, which have hashes of their own.
UNHASHED = ("hash", "samples")


def seal(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a meta the format, dtype, shape and SHA-256 of each array, and a hash of all that."""
    described = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": array_hash(array)}
        for name, array in arrays.items()
        if name in stored(meta)
    }
    sealed = {**meta, "format": FORMAT, "arrays": described}
    samples = {name: sample_hash(a) for name, a in arrays.items() if a.nbytes > MIN_MAPPED}
    samples = {name: sample for name, sample in samples.items() if name in described}
    return {**sealed, "hash": meta_hash(sealed), "samples": samples}


def stored(meta: Mapping[str, Any]) -> frozenset[str]:
    """List the arrays that are in the folder; those of a compact knowledge base are fewer."""
    return ARRAYS - DERIVED if meta.get("compact") else ARRAYS


def complete(
    arrays: dict[str, np.ndarray], meta: Mapping[str, Any], where: str
) -> dict[str, np.ndarray]:
    """Add the arrays that a compact knowledge base does not store.

    arrays (dict[str, np.ndarray]): Those that it stores; they are checked before they are used.
    where (str): Its folder, for errors.
    RAISES (BioclinError): They do not fit each other.
    """
    if not meta.get("compact"):
        return arrays
    parts = {name: array for name, array in arrays.items() if name.startswith(NGRAM)}
    lists = {"grams": "grams", "words": "spelling_start", "keys": "name_start"}
    counts = {what: len(parts[NGRAM + name]) - (what != "grams") for what, name in lists.items()}
    for name, array in parts.items():
        target = RULES[name].get("starts_of")
        fits = not target or (len(array) > 1 and (array[0], array[-1]) == (0, len(parts[target])))
        if not fits or find_wrong_number(name, array, counts):
            raise BioclinError(f"{where}, {name}.npy does not fit the others: {AGAIN}")
    derived = derive_arrays({name.removeprefix(NGRAM): array for name, array in parts.items()})
    return {**arrays, **{NGRAM + name: array for name, array in derived.items()}}


def array_hash(array: np.ndarray) -> str:
    """Compute the SHA-256 of the type, shape and content of an array."""
    digest = hashlib.sha256(f"{array.dtype.str} {list(array.shape)}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def sample_hash(array: np.ndarray) -> str:
    """Compute the SHA-256 of a few pieces of a large array, from the first bytes to the last."""
    content = array.reshape(-1).view(np.uint8)
    digest = hashlib.sha256()
    for begin in np.linspace(0, len(content) - PIECE_BYTES, N_PIECES, dtype=np.int64).tolist():
        digest.update(np.ascontiguousarray(content[begin : begin + PIECE_BYTES]).data)
    return digest.hexdigest()


def meta_hash(meta: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a meta without the hashes in it that are not part of the content."""
    content = {key: value for key, value in meta.items() if key not in UNHASHED}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_meta(path: Path) -> dict[str, Any]:
    """Read the meta of a knowledge base.

    path (Path): Its folder.
    RAISES (BioclinError): There is none, it has another format version, or is damaged.
    """
    try:
        if (path / META).exists():
            check_regular(path / META)
        meta = json.loads((path / META).read_text("utf-8"))
    except OSError as error:
        raise BioclinError(
            f"{path} is not a knowledge base: {META} cannot be read ({error.strerror}); build "
            "one with `bioclin kb build SOURCE -o FOLDER`"
        ) from None
    except (ValueError, RecursionError):
        raise BioclinError(f"{path / META} is damaged: build the knowledge base again") from None
    check_meta(meta, str(path))
    return dict(meta)


def check_meta(meta: Any, where: str) -> None:
    """Check that a meta describes a knowledge base of this format.

    RAISES (BioclinError): It has another format version, or is damaged.
    """
    if not isinstance(meta, dict) or "format" not in meta:
        raise BioclinError(f"{where} is not a knowledge base: {META} names no format")
    if meta["format"] != FORMAT:
        raise BioclinError(
            f"{where}: format {repr(meta['format'])[:20]}, this spacy-bioclin reads {FORMAT}: "
            "build it again with `bioclin kb build`"
        )
    wrong = [key for key, kind in DESCRIBED.items() if not isinstance(meta.get(key), kind)]
    wrong += [
        key
        for key, kind in (("types", str), ("lang_codes", str), ("sources", dict))
        if key not in wrong and not all(isinstance(value, kind) for value in meta[key])
    ]
    if not isinstance(meta.get("samples", {}), dict):
        wrong.append("samples")
    if "arrays" not in wrong:
        wrong += [
            name for name in sorted(stored(meta)) if not isinstance(meta["arrays"].get(name), dict)
        ]
    if wrong:
        raise BioclinError(
            f"{where}: {META} is damaged ({wrong[0]} is missing, or of another type): build the "
            "knowledge base again"
        )


def check_target(path: Path) -> None:
    """Check that a knowledge base may be written to a folder.

    RAISES (BioclinError): It holds something else, is the current folder, or is a file.
    """
    check_output(path, overwrite=True, marker=META, only=FILES)


def load_array(path: Path, name: str, meta: Mapping[str, Any]) -> np.ndarray:
    """Load one array, memory-mapped if it is large.

    meta (Mapping[str, Any]): The description of the knowledge base.
    RAISES (BioclinError): It is missing, cut off, damaged or another one.
    """
    file = path / f"{name}.npy"
    described = meta["arrays"][name]
    try:
        check_regular(file)  # a pipe would wait for ever
        array = _read_npy(file, RULES[name]["dtype"])
        whole = [array.dtype.str, list(array.shape)] == [described["dtype"], described["shape"]]
    except (OSError, ValueError, EOFError, KeyError, TypeError, BioclinError):
        whole = False
    if not whole:
        raise BioclinError(f"{file} is missing, cut off or of another knowledge base: {AGAIN}")
    check_array_hash(name, array, meta, str(file))
    return array


def check_array_hash(name: str, array: np.ndarray, meta: Mapping[str, Any], where: str) -> None:
    """Compare a small array with its SHA-256, of a large one a few pieces, if hashes are recorded.

    where (str): The file, for the error.
    RAISES (BioclinError): It is another one.
    """
    if array.nbytes > MIN_MAPPED:
        wanted, found = meta.get("samples", {}).get(name), sample_hash
    else:
        wanted, found = meta["arrays"][name].get("sha256"), array_hash
    if wanted is not None and found(array) != wanted:
        raise BioclinError(
            f"{where}: its SHA-256 is not the one in {META}: it was changed; {AGAIN}"
        )


def _read_npy(file: Path, dtype: str) -> np.ndarray:
    """Read or map a .npy file of one dimension and of this type; nothing in it is unpickled.

    RAISES (ValueError): It is another file, or not as long as it says.
    """
    with file.open("rb") as opened:
        version = np.lib.format.read_magic(opened)
        if version != (1, 0):
            raise ValueError("version")
        shape, _, found = np.lib.format.read_array_header_1_0(opened)
        begin, size = opened.tell(), os.fstat(opened.fileno()).st_size
        if found != np.dtype(dtype) or len(shape) != 1:
            raise ValueError("type")
        if size != begin + shape[0] * found.itemsize:
            raise ValueError("size")
        if size <= MIN_MAPPED:
            return as_array(bytearray(opened.read()), found)
        # A plain view of the mapping, because slices of a memmap take several times longer. Its
        # mode is copy-on-write, although nothing writes: sparse_dot_topn needs writable arrays.
        return np.asarray(np.memmap(opened, found, "c", begin, shape))
