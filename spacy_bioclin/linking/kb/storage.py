"""The folder of a knowledge base: one file for each array, and meta.json, which describes them."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import srsly

from ...errors import BioclinError

# Raised with every change of the arrays; a folder of another version must be built again.
FORMAT = 3
META = "meta.json"
# A memory mapping costs a file handle and a page, so smaller arrays are read.
MIN_MAPPED = 2**16
ARRAYS = frozenset(srsly.read_yaml(Path(__file__).with_name("arrays.yml")))
DESCRIBED = {"hash": str, "arrays": dict, "types": list, "lang_codes": list}


def seal(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a meta the format, dtype, shape and SHA-256 of each array, and a hash of all that."""
    described = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": array_hash(array)}
        for name, array in arrays.items()
    }
    sealed = {**meta, "format": FORMAT, "arrays": described}
    return {**sealed, "hash": meta_hash(sealed)}


def array_hash(array: np.ndarray) -> str:
    """Compute the SHA-256 of the type, shape and content of an array."""
    digest = hashlib.sha256(f"{array.dtype.str} {list(array.shape)}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def meta_hash(meta: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a meta without the hash in it."""
    content = {key: value for key, value in meta.items() if key != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_meta(meta: Any, where: str) -> None:
    """Check that a meta describes a knowledge base of this format.

    RAISES (BioclinError): It has another format version, or is damaged.
    """
    if not isinstance(meta, dict) or "format" not in meta:
        raise BioclinError(f"{where} is not a knowledge base: {META} names no format")
    if meta["format"] != FORMAT:
        raise BioclinError(
            f"{where}: format {meta['format']!r}, this spacy-bioclin reads {FORMAT}: "
            "build it again with `bioclin kb build`"
        )
    wrong = [key for key, kind in DESCRIBED.items() if not isinstance(meta.get(key), kind)]
    if wrong or not meta["arrays"].keys() >= ARRAYS:
        raise BioclinError(
            f"{where}: {META} is damaged ({wrong[0] if wrong else 'an array'} is missing): build "
            "the knowledge base again"
        )


def check_target(path: Path) -> None:
    """Check that a knowledge base may be written to a folder.

    RAISES (BioclinError): It holds something else, is the current folder, or is a file.
    """
    if path.is_dir() and any(path.iterdir()) and not (path / META).is_file():
        raise BioclinError(f"{path} holds files that are no knowledge base: name a new folder")
    if path.resolve() == Path.cwd():
        raise BioclinError(f"{path} is the current folder: name a new one")
    if path.exists() and not path.is_dir():
        raise BioclinError(f"{path} is a file: name a folder")


def load_array(path: Path, name: str, described: Mapping[str, Any]) -> np.ndarray:
    """Load one array, memory-mapped if it is large.

    described (Mapping[str, Any]): The dtype and shape that it must have.
    RAISES (BioclinError): It is missing, cut off or another one.
    """
    file = path / f"{name}.npy"
    try:
        mapped = file.stat().st_size > MIN_MAPPED
        # A plain view of the mapping, because slices of a memmap take several times longer. Its
        # mode is copy-on-write, although nothing writes: sparse_dot_topn needs writable arrays.
        array = np.asarray(np.load(file, mmap_mode="c" if mapped else None))
        whole = [array.dtype.str, list(array.shape)] == [described["dtype"], described["shape"]]
    except (OSError, ValueError, EOFError, KeyError, TypeError):
        whole = False
    if not whole:
        raise BioclinError(
            f"{file} is missing, cut off or of another knowledge base: copy the folder again, or "
            "build it again"
        )
    return array
