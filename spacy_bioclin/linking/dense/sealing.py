"""The hashes of an index of vectors: recorded when it is written, compared when it is opened."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...files import hash_file
from ..kb.checks import AGAIN
from ..kb.storage import META, MIN_MAPPED, meta_hash, sample_hash

# Vectors whose length is computed at once.
ROWS = 32_768
# Vectors have length 1; half precision rounds.
SHORTEST, LONGEST = 0.9, 1.1
CHANGED = "its SHA-256 is not the one in meta.json: it was changed"


def seal_files(files: Iterable[Path], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a meta the size and SHA-256 of each file, of large ones also that of a few pieces, and
    a hash of all that."""
    files = sorted(files)
    sealed = {
        **meta,
        "files": {file.name: file.stat().st_size for file in files},
        "sha256": {file.name: hash_file(file) for file in files},
    }
    samples = {file.name: _hash_pieces(file) for file in files if file.stat().st_size > MIN_MAPPED}
    return {**sealed, "hash": meta_hash(sealed), "samples": samples}


def find_changed(path: Path, meta: Mapping[str, Any], *, whole: bool = False) -> Iterator[str]:
    """Find files that are not as they were written, if their hashes are recorded.

    path (Path): Folder of an index, whose files have their sizes.
    whole (bool): Read large files whole, not only a few pieces.
    YIELDS (str): Name of the file, "meta.json" for the description itself.
    """
    if "hash" in meta and meta_hash(meta) != meta["hash"]:
        yield META
    hashes, samples = meta.get("sha256"), meta.get("samples")
    for name in meta["files"]:
        large = not whole and (path / name).stat().st_size > MIN_MAPPED
        recorded = samples if large else hashes
        if isinstance(recorded, dict) and name in recorded:
            found = _hash_pieces(path / name) if large else hash_file(path / name)
            if found != recorded[name]:
                yield name


def find_wrong_vector(vectors: NDArray[np.float16]) -> int | None:
    """Find the first vector that has not length 1, or contains what is not a number."""
    for i in range(0, len(vectors), ROWS):
        lengths = np.linalg.norm(vectors[i : i + ROWS].astype(np.float32), axis=1)
        wrong = ~((lengths > SHORTEST) & (lengths < LONGEST))
        if wrong.any():
            return i + int(wrong.argmax())
    return None


def describe_changes(changed: Iterable[str]) -> list[str]:
    """Say of each file that it was changed, and what to do."""
    return [f"{name}: {CHANGED}; {AGAIN}" for name in changed]


def _hash_pieces(file: Path) -> str:
    return sample_hash(np.memmap(file, np.uint8, "r"))
