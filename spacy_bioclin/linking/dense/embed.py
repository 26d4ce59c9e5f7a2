"""Encode the names of a knowledge base, and write their vectors to a folder for `DenseIndex`.

There is one vector for each spelling of a name, ignoring case, which concepts may share. One for
each key (`normalize.name_key`) would halve their number, but finds less (benchmarks/dense.py).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...encoders.names import NameEncoder, fold_case
from ...errors import BioclinError
from ...files import remove
from ...types import Progress
from ..kb.knowledge_base import KnowledgeBase
from ..names.columns import number_groups, starts
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
# Names that are encoded and written at once; an interruption loses at most these.
BLOCK = 8192
# With more vectors, a CPU searches a graph instead of comparing all.
EXACT_LIMIT = 100_000
# The graph: neighbours of a vector, and size of the candidate list when they are chosen.
N_LINKS, N_TRIED = 32, 80
# Vectors in the sample that determines the range of the numbers.
N_SAMPLE = 100_000


def embed_names(
    kb: KnowledgeBase,
    encoder: NameEncoder,
    path: Path,
    *,
    progress: Progress | None = None,
    exact_limit: int = EXACT_LIMIT,
) -> DenseIndex:
    """Encode the names, and write the index to a folder, completely or not at all. Vectors of an
    interrupted run stay in FOLDER.partial, where the next run resumes.

    path (Path): A new folder, or one that holds an index.
    progress (Progress | None): Takes the share that is done, and the number of vectors.
    exact_limit (int): With more vectors than this, a graph for a CPU is written too.
    RETURNS (DenseIndex): The index in the folder.
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
    remove(path)
    partial.rename(path)
    return DenseIndex.open(path, kb, encoder, device=encoder.device)


def _start(partial: Path, plan: dict[str, Any]) -> None:
    """Keep what an interrupted run of the same plan has encoded; otherwise start again."""
    try:
        same = json.loads((partial / PLAN).read_text("utf-8")) == plan
    except (OSError, ValueError):
        same = False
    if not same:
        remove(partial)
        partial.mkdir(parents=True)
        (partial / PLAN).write_text(json.dumps(plan), "utf-8")


def _encode(
    kb: KnowledgeBase,
    encoder: NameEncoder,
    names: NDArray[np.int32],
    file: Path,
    progress: Progress | None,
) -> None:
    """Append the vectors of these names that the file does not contain yet."""
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
    """Make the arrays that map names to vectors, which are numbered as their names first occur."""
    hashes = np.fromiter(
        (hash_text(fold_case(name)) for name in kb.names), np.uint64, len(kb.names)
    )
    row_of_name, _ = number_groups(hashes)
    names = np.argsort(row_of_name, kind="stable").astype(np.int32)
    return {NAMES: names, START: starts(np.bincount(row_of_name)), ROW_OF_NAME: row_of_name}


def _write_graph(vectors: NDArray[np.float16], file: Path) -> None:
    """Write a graph of similar vectors (HNSW, Malkov & Yashunin 2018) with numbers of 8 bits. It
    may differ between runs, because several threads add vectors."""
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
