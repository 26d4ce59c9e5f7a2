"""The graph of similar vectors that a CPU searches, a file of faiss (HNSW, Malkov & Yashunin 2018).

faiss follows the numbers in it without looking. They are checked before a search; a graph that
cannot be trusted is not used, and the exact search takes its place.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BioclinError, BioclinWarning

# Neighbours of a vector, and size of the candidate list when they are chosen, and in a search.
N_LINKS, N_TRIED, N_VIEWED = 32, 80, 128
# Vectors in the sample that determines the range of the numbers.
N_SAMPLE = 100_000
# Vectors, or neighbours, that are in memory at once.
ROWS, LINKS = 32_768, 2**22
KIND = b"IHNs"  # how a file with such a graph begins


def import_faiss() -> Any:
    """Import faiss, which the extra `dense` installs.

    RAISES (BioclinError): It is not installed.
    """
    try:
        import faiss
    except ImportError:
        raise BioclinError(
            "A CPU needs faiss to search so many names: pip install 'spacy-bioclin[dense]'"
        ) from None
    return faiss


def write_graph(vectors: NDArray[np.float16], file: Path) -> None:
    """Write a graph of vectors with numbers of 8 bits. It may differ between runs, because several
    threads add vectors."""
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


def open_graph(file: Path, n_vectors: int, width: int) -> Any:
    """Open a graph, memory-mapped.

    RETURNS (Any): It; None, with a warning, if it is damaged or not of these vectors.
    RAISES (BioclinError): faiss is missing.
    """
    faiss = import_faiss()
    try:
        with file.open("rb") as opened:
            if opened.read(len(KIND)) != KIND:
                raise ValueError("another kind")
        # Since faiss 1.11 the vectors in it can be memory-mapped.
        graph = faiss.read_index(str(file), getattr(faiss, "IO_FLAG_MMAP_IFC", 0))
        why = find_wrong_link(faiss, graph, n_vectors, width)
    except (OSError, RuntimeError, MemoryError, ValueError, AttributeError) as error:
        why = f"cannot be read ({type(error).__name__})"
    if why:
        warnings.warn(
            f"{file} {why}: all vectors are compared instead, which takes longer; copy the folder "
            "again, or build it again with `bioclin embed-kb`",
            BioclinWarning,
            stacklevel=2,
        )
        return None
    graph.hnsw.efSearch = N_VIEWED
    return graph


def find_wrong_link(faiss: Any, graph: Any, n_vectors: int, width: int) -> str:
    """Find what in a graph would lead a search out of it.

    RETURNS (str): What is wrong, or "".
    """
    storage = faiss.downcast_index(graph.storage)
    if not isinstance(graph, faiss.IndexHNSWSQ) or not isinstance(
        storage, faiss.IndexScalarQuantizer
    ):
        return "is another kind of index"
    bits, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    wanted = (n_vectors, width, metric, True)
    described = [
        (each.ntotal, each.d, each.metric_type, each.is_trained) for each in (graph, storage)
    ]
    quantizer = storage.sq
    sizes = (storage.code_size, storage.codes.size(), quantizer.d, quantizer.code_size)
    if (
        described != [wanted, wanted]
        or sizes != (width, n_vectors * width, width, width)
        or (quantizer.qtype, quantizer.trained.size()) != (bits, 2 * width)
    ):
        return "is of other vectors"
    return _find_wrong_level(faiss, graph.hnsw, n_vectors)


def _find_wrong_level(faiss: Any, hnsw: Any, n: int) -> str:
    """Find neighbours that are not there, or not on the level where they are named."""

    def view(vector: Any) -> NDArray[Any]:
        if not vector.size():
            return np.zeros(0, np.int64)
        return np.asarray(faiss.rev_swig_ptr(vector.data(), vector.size()))

    neighbours, offsets = view(hnsw.neighbors), view(hnsw.offsets)
    levels, per_level = view(hnsw.levels), view(hnsw.cum_nneighbor_per_level).astype(np.int64)
    top = int(hnsw.max_level)
    if len(levels) != n or len(offsets) != n + 1 or not 0 <= top < len(per_level) - 1:
        return "is damaged (sizes)"
    if levels.min() < 1 or levels.max() != top + 1 or not 0 <= hnsw.entry_point < n:
        return "is damaged (levels)"
    if levels[hnsw.entry_point] != top + 1 or per_level[0] != 0 or (np.diff(per_level) < 0).any():
        return "is damaged (levels)"
    # Numbers without a sign: that each list is as long as its level says rules out all others.
    if offsets[0] != 0 or offsets[-1] != len(neighbours):
        return "is damaged (lists)"
    if (np.diff(offsets.astype(np.int64)) != per_level[levels]).any():
        return "is damaged (lists)"
    for i in range(0, len(neighbours), LINKS):
        part = neighbours[i : i + LINKS]
        if part.min() < -1 or part.max() >= n:
            return "is damaged (neighbours)"
    for level in range(1, top + 1):
        rows = np.flatnonzero(levels > level)
        begin = offsets[rows].astype(np.int64) + per_level[level]
        named = neighbours[begin[:, None] + np.arange(per_level[level + 1] - per_level[level])]
        if (levels[named[named >= 0]] <= level).any():
            return "is damaged (levels)"
    return ""
