"""Vectors of the names of a knowledge base, in a folder that `dense.DenseIndex` opens.

One vector stands for all names that share a key (`normalize.name_key`).
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..encoders.names import NameEncoder, Progress
from ..errors import BioclinError
from .dense import (
    FORMAT,
    LISTS,
    META,
    NAMES,
    ROW_OF_NAME,
    ROWS,
    START,
    VECTORS,
    DenseIndex,
    import_faiss,
    map_vectors,
)
from .kb import KnowledgeBase

PLAN = "plan.json"
# Names that are encoded and appended at once: what a kill can lose.
BLOCK = 8192
# From so many vectors on, a CPU searches lists of like ones instead of all.
EXACT_LIMIT = 200_000
# Vectors that train each list.
TRAIN_EACH = 64


def embed_names(
    kb: KnowledgeBase,
    encoder: NameEncoder,
    path: Path,
    *,
    progress: Progress | None = None,
    exact_limit: int = EXACT_LIMIT,
) -> DenseIndex:
    """Encode the names, and write the index to a folder, whole or not at all. What a killed run has
    encoded stays in FOLDER.partial, and the next one goes on from there.

    path (Path): New, or holds an index.
    progress (Progress | None): Takes the share that is done and how many vectors that is.
    exact_limit (int): With more vectors than this, lists for a CPU are written as well.
    RETURNS (DenseIndex): The one in the folder.
    RAISES (BioclinError): The folder holds something else, or faiss is missing.
    """
    n_vectors = len(kb.arrays["key_names_start"]) - 1
    if path.exists() and any(path.iterdir()) and not (path / VECTORS).is_file():
        raise BioclinError(f"{path} holds files that are no index of vectors: name a new folder")
    if n_vectors > exact_limit:
        import_faiss()
    plan = {
        "format": FORMAT,
        "kb": kb.hash,
        "encoder": encoder.hash,
        "pooling": encoder.pooling,
        "width": encoder.width,
        "n_vectors": n_vectors,
    }
    partial = path.with_name(f"{path.name}.partial")
    _start(partial, plan)
    _encode(kb, encoder, partial / VECTORS, progress)
    for name, array in _name_arrays(kb).items():
        np.save(partial / name, array)
    if n_vectors > exact_limit:
        _write_lists(map_vectors(partial / VECTORS, encoder.width), partial / LISTS)
    files = {p.name: p.stat().st_size for p in sorted(partial.iterdir()) if p.name != PLAN}
    (partial / META).write_text(json.dumps({**plan, "files": files}, indent=1), "utf-8")
    (partial / PLAN).unlink()
    if path.exists():
        shutil.rmtree(path)
    partial.rename(path)
    return DenseIndex.open(path, kb, encoder, device=encoder.device)


def written_as(kb: KnowledgeBase, key: int) -> str:
    """RETURNS (str): The name that is encoded for a key: the first that stands in the order of
    speech ("Breast Cancer", not "Cancer, Breast"), else the first."""
    names = [kb.names[i] for i in kb.names_of_key(key)]
    return next((name for name in names if ", " not in name), names[0])


def _start(partial: Path, plan: dict[str, Any]) -> None:
    """Keep what a killed run of the same plan has encoded; else begin anew."""
    try:
        same = json.loads((partial / PLAN).read_text("utf-8")) == plan
    except (OSError, ValueError):
        same = False
    if not same:
        if partial.exists():
            shutil.rmtree(partial)
        partial.mkdir(parents=True)
        (partial / PLAN).write_text(json.dumps(plan), "utf-8")


def _encode(kb: KnowledgeBase, encoder: NameEncoder, file: Path, progress: Progress | None) -> None:
    n_keys = len(kb.arrays["key_names_start"]) - 1
    vector_bytes = encoder.width * np.dtype(np.float16).itemsize
    with file.open("ab") as out:
        n_done = out.tell() // vector_bytes
        if n_done < n_keys:
            n_done -= n_done % BLOCK
        out.truncate(n_done * vector_bytes)
        for i in range(n_done, n_keys, BLOCK):
            rows = range(i, min(i + BLOCK, n_keys))
            vectors = encoder.encode([written_as(kb, key) for key in rows])
            out.write(vectors.astype(np.float16).tobytes())
            out.flush()
            if progress is not None:
                progress(rows.stop / n_keys, rows.stop)


def _name_arrays(kb: KnowledgeBase) -> dict[str, NDArray[Any]]:
    """RETURNS (dict[str, NDArray]): What `DenseIndex` knows of names."""
    names = np.asarray(kb.arrays["key_names"])
    n_vectors = len(kb.arrays["key_names_start"]) - 1
    row = np.repeat(np.arange(n_vectors, dtype=np.int32), np.diff(kb.arrays["key_names_start"]))
    row_of_name = np.empty_like(row)
    row_of_name[names] = row
    # Names are in order of their concepts, and so are those of a key.
    concept = np.asarray(kb.name_concept)[names]
    is_first = np.ones(len(names), bool)
    is_first[1:] = (row[1:] != row[:-1]) | (concept[1:] != concept[:-1])
    start = np.zeros(n_vectors + 1, np.int64)
    np.cumsum(np.bincount(row[is_first], minlength=n_vectors), out=start[1:])
    return {NAMES: names[is_first], START: start, ROW_OF_NAME: row_of_name}


def _write_lists(vectors: NDArray[np.float16], file: Path) -> None:
    """Sort the vectors into lists round centres (inverted file), by numbers of 8 bits."""
    faiss = import_faiss()
    n, width = vectors.shape
    n_lists = max(1, int(4 * np.sqrt(n)))
    rng = np.random.default_rng(0)
    sample = np.sort(rng.choice(n, min(n, n_lists * TRAIN_EACH), replace=False))
    bits = faiss.ScalarQuantizer.QT_8bit
    lists = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(width), width, n_lists, bits, faiss.METRIC_INNER_PRODUCT
    )
    lists.train(vectors[sample].astype(np.float32))
    for i in range(0, n, ROWS):
        lists.add(vectors[i : i + ROWS].astype(np.float32))
    faiss.write_index(lists, str(file))
