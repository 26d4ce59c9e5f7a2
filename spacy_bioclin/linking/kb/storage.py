"""The folder of a knowledge base: one file for each array, and meta.json, which says what has to be
in them."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BioclinError
from ..names.index import NGRAM

# Raised with every change of the arrays; a folder of another version has to be built again.
FORMAT = 3
META = "meta.json"
# A mapping costs a file handle and a page; smaller arrays are read.
MIN_MAPPED = 2**16
# Lists of strings, each with its X_at, and lists of numbers, each with its X_start.
ARRAYS = {
    *("ids", "names", "definitions", "xrefs", "other_ids"),
    *("ids_at", "names_at", "definitions_at", "xrefs_at", "other_ids_at"),
    *("first_name", "name_concept", "name_lang", "types", "types_start", "parents"),
    *("parents_start", "xrefs_start", "others", "others_start", "other_concept"),
    *("exact_hash", "exact_row", "key_hash", "key_row", "key_names", "key_names_start"),
    *(f"{NGRAM}{name}" for name in ("grams", "idf", "word_norm", "name_norm")),
    *(f"{NGRAM}{x}_{y}" for x, y in (("gram", "start"), ("gram", "words"), ("gram", "weights"))),
    *(f"{NGRAM}{x}_{y}" for x, y in (("word", "start"), ("word", "names"), ("word", "weights"))),
    *(f"{NGRAM}{x}_{y}" for x, y in (("name", "start"), ("name", "words"))),
    *(f"{NGRAM}{x}_{y}" for x, y in (("spelling", "start"), ("spelling", "grams"))),
}
DESCRIBED = {"hash": str, "arrays": dict, "types": list, "lang_codes": list}


def seal(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): The meta with the format, dtype, shape and SHA-256 of each array,
    and a hash of all that."""
    described = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": array_hash(array)}
        for name, array in arrays.items()
    }
    sealed = {**meta, "format": FORMAT, "arrays": described}
    return {**sealed, "hash": meta_hash(sealed)}


def array_hash(array: np.ndarray) -> str:
    """RETURNS (str): SHA-256 of the type, shape and content of an array."""
    digest = hashlib.sha256(f"{array.dtype.str} {list(array.shape)}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def meta_hash(meta: Mapping[str, Any]) -> str:
    """RETURNS (str): SHA-256 of all that a meta says, but for the hash in it."""
    content = {key: value for key, value in meta.items() if key != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_meta(meta: Any, where: str) -> None:
    """RAISES (BioclinError): Of another format version, damaged, or another knowledge base."""
    if not isinstance(meta, dict) or "format" not in meta:
        raise BioclinError(f"{where} is no knowledge base: {META} names no format")
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
    """RAISES (BioclinError): A knowledge base must not be written there."""
    if path.is_dir() and any(path.iterdir()) and not (path / META).is_file():
        raise BioclinError(f"{path} holds files that are no knowledge base: name a new folder")
    if path.resolve() == Path.cwd():
        raise BioclinError(f"{path} is the current folder: name a new one")
    if path.exists() and not path.is_dir():
        raise BioclinError(f"{path} is a file: name a folder")


def load_array(path: Path, name: str, described: Mapping[str, Any]) -> np.ndarray:
    """RETURNS (np.ndarray): One array, mapped if it is large."""
    file = path / f"{name}.npy"
    try:
        mapped = file.stat().st_size > MIN_MAPPED
        # A plain view of the mapping: slices of a memmap take several times longer. Copied where
        # it is written to, which is nowhere: sparse_dot_topn takes no read-only array.
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


def clear_folder(folder: Path) -> None:
    """Remove a folder that `write` made: it holds arrays and meta.json."""
    if folder.is_dir():
        for file in [*folder.glob("*.npy"), folder / META]:
            file.unlink(missing_ok=True)
        folder.rmdir()
