"""Vectors of the names of a knowledge base, in a folder that `dense.DenseIndex` opens.

One vector for each way a name is written, case aside, which concepts may share. One for each key
(`normalize.name_key`) would be half as many, but finds less (benchmarks/dense.py measures both).
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...encoders.names import NameEncoder, Progress, fold_case
from ...errors import BioclinError
from ..kb.knowledge_base import KnowledgeBase
from ..names.index import hash_text
from .index import (
    FORMAT,
    GRAPH,
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

PLAN = "plan.json"
# Names that are encoded and appended at once: what a kill can lose.
BLOCK = 8192
# Over so many vectors, a CPU follows a graph from like to like instead of comparing all.
EXACT_LIMIT = 100_000
# Of the graph: neighbours of a vector, and how many are looked at to choose them.
N_LINKS, N_TRIED = 32, 80
# Vectors that the range of the numbers is taken from.
N_SAMPLE = 100_000


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
    exact_limit (int): With more vectors than this, a graph for a CPU is written as well.
    RETURNS (DenseIndex): The one in the folder.
    RAISES (BioclinError): The folder holds something else, or faiss is missing.
    """
    arrays = _name_arrays(kb)
    n_vectors = len(arrays[START]) - 1
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
    _encode(kb, encoder, arrays[NAMES][arrays[START][:-1]], partial / VECTORS, progress)
    for name, array in arrays.items():
        np.save(partial / name, array)
    if n_vectors > exact_limit:
        _write_graph(map_vectors(partial / VECTORS, encoder.width), partial / GRAPH)
    files = {p.name: p.stat().st_size for p in sorted(partial.iterdir()) if p.name != PLAN}
    (partial / META).write_text(json.dumps({**plan, "files": files}, indent=1), "utf-8")
    (partial / PLAN).unlink()
    if path.exists():
        shutil.rmtree(path)
    partial.rename(path)
    return DenseIndex.open(path, kb, encoder, device=encoder.device)


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


def _encode(
    kb: KnowledgeBase,
    encoder: NameEncoder,
    names: NDArray[np.int32],
    file: Path,
    progress: Progress | None,
) -> None:
    """Append the vectors of these names of the knowledge base that the file does not hold yet."""
    vector_bytes = encoder.width * np.dtype(np.float16).itemsize
    with file.open("ab") as out:
        n_done = out.tell() // vector_bytes
        if n_done < len(names):
            n_done -= n_done % BLOCK
        out.truncate(n_done * vector_bytes)
        for i in range(n_done, len(names), BLOCK):
            vectors = encoder.encode([kb.names[name] for name in names[i : i + BLOCK]])
            out.write(vectors.astype(np.float16).tobytes())
            out.flush()
            if progress is not None:
                n_done = i + len(vectors)
                progress(n_done / len(names), n_done)


def _name_arrays(kb: KnowledgeBase) -> dict[str, NDArray[Any]]:
    """RETURNS (dict[str, NDArray]): What `DenseIndex` knows of names; vectors are numbered as their
    names first occur."""
    hashes = np.fromiter(
        (hash_text(fold_case(name)) for name in kb.names), np.uint64, len(kb.names)
    )
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    row_of_name = number[group]
    start = np.zeros(len(first) + 1, np.int64)
    np.cumsum(np.bincount(row_of_name), out=start[1:])
    names = np.argsort(row_of_name, kind="stable").astype(np.int32)
    return {NAMES: names, START: start, ROW_OF_NAME: row_of_name}


def _write_graph(vectors: NDArray[np.float16], file: Path) -> None:
    """Link each vector to like ones (HNSW, Malkov & Yashunin 2018), as numbers of 8 bits. Threads
    that add vectors at the same time may link them in another way each time."""
    faiss = import_faiss()
    n, width = vectors.shape
    bits = faiss.ScalarQuantizer.QT_8bit
    graph = faiss.IndexHNSWSQ(width, bits, N_LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = N_TRIED
    sample = np.random.default_rng(0).choice(n, min(n, N_SAMPLE), replace=False)
    graph.train(vectors[np.sort(sample)].astype(np.float32))
    for i in range(0, n, ROWS):
        graph.add(vectors[i : i + ROWS].astype(np.float32))
    faiss.write_index(graph, str(file))
