"""Find the names whose vectors are nearest to the vector of a mention."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...encoders.names import NameEncoder
from ...errors import BioclinError
from ...files import check_regular
from ...types import FloatArray, IntArray
from ..kb.knowledge_base import KnowledgeBase
from ..names.columns import ranges, ranks
from .graph import open_graph
from .sealing import describe_changes, find_changed, find_wrong_vector

# Raised with every change of the files; a folder of another version must be built again.
FORMAT = 1
META, VECTORS, GRAPH = "meta.json", "vectors.f16", "graph.faiss"
# All files of an index, the last of an interrupted run of 0.2.
FILES = r"meta\.json|vectors\.f16|graph\.faiss|(names|start|row_of_name)\.npy|plan\.json"
# Arrays: the names of each vector, where those of a vector begin, and the vector of each name.
NAMES, START, ROW_OF_NAME = "names.npy", "start.npy", "row_of_name.npy"
# Vectors and queries that are compared at once.
ROWS, QUERIES = 32_768, 512
# With a graph: how many times k vectors are compared exactly.
REFINED = 2
AGAIN = "build it again with `bioclin embed-kb`"


class DenseIndex:
    """Search the vectors of the names of a knowledge base, memory-mapped. See `embed.embed_names`.

    path (Path): Its folder.
    kb (KnowledgeBase): Contains the names.
    meta (dict): format; kb, encoder (their hashes); pooling, width, n_vectors, files; sha256,
        samples and hash, see `sealing.seal_files`, which indexes of 0.2 do not have.
    encoder (NameEncoder | None): The encoder that made the vectors.
    device (torch.device): Device on which vectors are compared.
    """

    def __init__(
        self,
        path: Path,
        kb: KnowledgeBase,
        meta: dict[str, Any],
        encoder: NameEncoder | None,
        device: torch.device,
    ) -> None:
        self.path, self.kb, self.meta, self.encoder = path, kb, meta, encoder
        self.device = device
        self._vectors = map_vectors(path / VECTORS, meta["width"])
        self._matrix = torch.from_numpy(self._vectors).to(device)
        self._names, self._start, self._row_of_name = load_numbers(path, len(kb.names), len(self))

    @classmethod
    def open(
        cls,
        path: Path | str,
        kb: KnowledgeBase,
        encoder: NameEncoder | None = None,
        *,
        device: torch.device | str | None = None,
    ) -> "DenseIndex":
        """Open a folder that `bioclin embed-kb` wrote.

        kb (KnowledgeBase): The one that it was built for.
        encoder (NameEncoder | None): The one that it was built with; None to search vectors only.
        device (torch.device | str | None): None for the GPU if there is one, else the CPU.
        RAISES (BioclinError): It is not an index, is cut off, or belongs to another version,
            knowledge base or encoder.
        """
        path = Path(path)
        try:
            check_regular(path / META)  # a pipe would wait for ever
            meta = json.loads((path / META).read_text("utf-8"))
        except (OSError, ValueError, RecursionError, BioclinError):
            raise BioclinError(
                f"{path} is not an index of vectors: {META} cannot be read; {AGAIN}"
            ) from None
        _check(path, meta, kb, encoder)
        default = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(path, kb, meta, encoder, torch.device(device or default))

    @property
    def width(self) -> int:
        """Width of the vectors."""
        return int(self.meta["width"])

    def __len__(self) -> int:
        return len(self._vectors)

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Encode texts.

        RETURNS (FloatArray): (n_texts, width).
        RAISES (BioclinError): It was opened without its encoder.
        """
        if self.encoder is None:
            raise BioclinError(f"{self.path} was opened without its encoder: give one to `open`")
        return self.encoder.encode(texts)

    def vectors_of(self, names: Sequence[int] | NDArray[Any]) -> FloatArray:
        """Get the vectors of names.

        names (Sequence[int] | NDArray): (n,) rows of names of the knowledge base.
        RETURNS (FloatArray): (n, width).
        RAISES (BioclinError): They contain what is not a number.
        """
        rows = self._row_of_name[np.asarray(names, np.int64)]
        return self._checked(self._vectors[rows].astype(np.float32))

    def search(self, vectors: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        """Find the nearest names.

        vectors (FloatArray): (n, width), of length 1, from the same encoder.
        k (int): How many for each.
        RETURNS (tuple[IntArray, FloatArray]): (n, k) rows of names of the knowledge base, -1 if
            there are fewer, and their cosines, best first, then by number of the vector.
        RAISES (BioclinError): A vector that was compared contains what is not a number.
        """
        found = np.full((len(vectors), k), -1, np.int32)
        cosines = np.zeros((len(vectors), k), np.float32)
        search = self._search_all if self._graph is None else self._search_graph
        for i in range(0, len(vectors), QUERIES):
            part = slice(i, i + QUERIES)
            queries = torch.from_numpy(np.ascontiguousarray(vectors[part], np.float32))
            rows, scores = search(queries, min(k, len(self)))
            self._checked(scores[rows >= 0])  # "not a number" comes first, so none is overlooked
            order = np.lexsort((rows, -scores))
            rows, scores = (np.take_along_axis(array, order, 1) for array in (rows, scores))
            self._name(rows, scores, found[part], cosines[part])
        return found, cosines

    def _name(
        self, rows: IntArray, scores: FloatArray, found: IntArray, cosines: FloatArray
    ) -> None:
        """Write the names of the vectors, best first, and their cosines into `found`, `cosines`."""
        query = np.repeat(np.arange(len(rows)), (rows >= 0).sum(1))
        scores, rows = scores[rows >= 0], rows[rows >= 0]
        first = self._start[rows]
        n_names = self._start[rows + 1] - first
        names = self._names[ranges(first, n_names)]
        query, scores = np.repeat(query, n_names), np.repeat(scores, n_names)
        rank = ranks(query)
        kept = rank < found.shape[1]
        found[query[kept], rank[kept]] = names[kept]
        cosines[query[kept], rank[kept]] = scores[kept]

    def _search_all(self, queries: torch.Tensor, k: int) -> tuple[NDArray[Any], FloatArray]:
        queries = queries.to(self.device)
        rows = torch.empty((len(queries), 0), dtype=torch.int64, device=self.device)
        cosines = torch.empty((len(queries), 0), device=self.device)
        for i in range(0, len(self), ROWS):
            block = queries @ self._matrix[i : i + ROWS].float().T
            best = block.topk(min(k, block.shape[1]))
            rows = torch.cat([rows, best.indices + i], 1)
            merged = torch.cat([cosines, best.values], 1)
            cosines, kept = merged.topk(min(k, merged.shape[1]))
            rows = rows.gather(1, kept)
        return rows.cpu().numpy(), cosines.cpu().numpy()

    def _search_graph(self, queries: torch.Tensor, k: int) -> tuple[NDArray[Any], FloatArray]:
        _, rows = self._graph.search(queries.numpy(), min(len(self), REFINED * k))
        near = torch.from_numpy(self._vectors[np.maximum(rows, 0)]).float()
        cosines = (near @ queries[:, :, None])[:, :, 0].numpy()
        cosines[rows < 0] = -np.inf
        kept = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        return np.take_along_axis(rows, kept, 1), np.take_along_axis(cosines, kept, 1)

    @cached_property
    def _graph(self) -> Any:
        """The graph of faiss; None if all vectors are compared."""
        if self.device.type != "cpu" or GRAPH not in self.meta["files"]:
            return None
        return open_graph(self.path / GRAPH, len(self), self.width)

    def find_faults(self) -> list[str]:
        """Read all files, and find what was changed since they were written.

        RETURNS (list[str]): One line for each fault, which begins with the name of the file.
        """
        faults = describe_changes(find_changed(self.path, self.meta, whole=True))
        if (row := find_wrong_vector(self._vectors)) is not None:
            faults.append(f"{VECTORS}: vector {row:,} has not length 1; {AGAIN}")
        return faults

    def _checked(self, numbers: FloatArray) -> FloatArray:
        if not np.isfinite(numbers).all():
            raise BioclinError(
                f"{self.path / VECTORS} has vectors that are not finite numbers: copy the folder, "
                f"or {AGAIN}"
            )
        return numbers


def load_numbers(path: Path, n_names: int, n_vectors: int) -> tuple[NDArray[Any], ...]:
    """Load the names of each vector, where those of a vector begin, and the vector of each name.

    RAISES (BioclinError): A file is not an array of rows of the names or vectors.
    """
    found = []
    rules = (
        (NAMES, "i4", n_names, n_names),
        (START, "i8", n_vectors + 1, n_names + 1),
        (ROW_OF_NAME, "i4", n_names, n_vectors),
    )
    for name, dtype, size, limit in rules:
        try:
            check_regular(path / name)
            array = np.asarray(np.load(path / name, mmap_mode="c"))
            good = array.shape == (size,) and array.dtype == np.dtype(dtype)
            good = good and int(array.min()) >= 0 and int(array.max()) < limit
            if good and name == START:
                ends = array[0] == 0 and array[-1] == n_names
                good = bool(ends and (np.diff(array) > 0).all())
        except (OSError, ValueError, EOFError):
            good = False
        if not good:
            raise BioclinError(f"{path / name} is damaged: copy the folder, or {AGAIN}")
        found.append(array)
    return tuple(found)


def map_vectors(file: Path, width: int) -> NDArray[np.float16]:
    """Map the vectors in a file to memory; copy-on-write, as torch warns about read-only arrays.

    RETURNS (NDArray[np.float16]): (n_vectors, width).
    """
    return np.memmap(file, np.float16, "c").reshape(-1, width)


def _check(
    path: Path, meta: dict[str, Any], kb: KnowledgeBase, encoder: NameEncoder | None
) -> None:
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        found = repr(meta.get("format"))[:20] if isinstance(meta, dict) else "unknown"
        raise BioclinError(f"{path}: format {found}, this spacy-bioclin reads {FORMAT}: {AGAIN}")
    kinds = {
        "kb": str,
        "encoder": str,
        "pooling": str,
        "width": int,
        "n_vectors": int,
        "files": dict,
    }
    wrong = [key for key, kind in kinds.items() if not isinstance(meta.get(key), kind)]
    if not wrong and (
        min(meta["width"], meta["n_vectors"]) < 1
        or meta["files"].get(VECTORS) != 2 * meta["width"] * meta["n_vectors"]
        or (
            encoder is not None
            and meta["encoder"] == encoder.hash
            and meta["width"] != encoder.width
        )
    ):
        wrong = ["files"]
    if wrong or not {VECTORS, NAMES, START, ROW_OF_NAME} <= meta["files"].keys():
        raise BioclinError(f"{path / META} is damaged ({(wrong or ['files'])[0]}): {AGAIN}")
    for name, size in meta["files"].items():
        if Path(name).name != name:
            raise BioclinError(f"{path / META} is damaged (files): {AGAIN}")
        if not (path / name).is_file() or (path / name).stat().st_size != size:
            raise BioclinError(f"{path / name} is missing or cut off: copy the folder, or {AGAIN}")
    for fault in describe_changes(find_changed(path, meta)):
        raise BioclinError(f"{path}/{fault}")
    problem = ""
    if meta["kb"] != kb.hash:
        problem = f"belongs to the knowledge base {meta['kb']}, this one is {kb.hash}"
    elif encoder is not None and meta["encoder"] != encoder.hash:
        problem = (
            f"was built with the encoder {meta['encoder']}, {encoder.folder} is {encoder.hash}"
        )
    elif encoder is not None and meta["pooling"] != encoder.pooling:
        problem = f'has pooling = "{meta["pooling"]}", the encoder "{encoder.pooling}"'
    if problem:
        raise BioclinError(f"{path} {problem}: give the same, or {AGAIN}")
