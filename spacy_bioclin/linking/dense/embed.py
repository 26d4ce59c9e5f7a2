"""Encode the names of a knowledge base, and write their vectors to a folder for `DenseIndex`.

There is one vector for each spelling of a name, ignoring case, which concepts may share. One for
each key (`normalize.name_key`) would halve their number, but finds less (benchmarks/dense.py).
"""

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...encoders.names import NameEncoder, fold_case
from ...errors import BioclinError
from ...interrupts import deferred, tell
from ...outputs import (
    OLD,
    check_output,
    hidden_path,
    lock_output,
    make_private_folder,
    remove,
    temporary_folder,
    write_atomic,
)
from ...types import Progress
from ..kb.knowledge_base import KnowledgeBase
from ..names.columns import number_groups, starts
from ..names.index import hash_text
from .graph import import_faiss, write_graph
from .index import (
    FILES,
    FORMAT,
    GRAPH,
    META,
    NAMES,
    ROW_OF_NAME,
    START,
    VECTORS,
    DenseIndex,
    map_vectors,
)
from .sealing import find_wrong_vector, seal_files

# What a run keeps until it ends, in a hidden folder beside the index: what is made, and from what.
WORK, INDEX, PLAN = "vectors", "index", "plan.json"
OWN = re.compile(r"index|plan\.json|\.plan\.json\.\w+\.partial")
# Names that are encoded and written at once; an interruption loses at most these.
BLOCK = 8192
# With more vectors, a CPU searches a graph instead of comparing all.
EXACT_LIMIT = 100_000


def embed_names(
    kb: KnowledgeBase,
    encoder: NameEncoder,
    path: Path,
    *,
    progress: Progress | None = None,
    exact_limit: int = EXACT_LIMIT,
    overwrite: bool = True,
) -> DenseIndex:
    """Encode the names, and write the index to a folder, completely or not at all. What an
    interrupted run has encoded is in a hidden folder beside it, where the next run resumes.

    path (Path): A new folder, or one that holds an index.
    progress (Progress | None): Takes the share that is done, and the number of vectors.
    exact_limit (int): With more vectors than this, a graph for a CPU is written too.
    overwrite (bool): Replace an older index.
    RETURNS (DenseIndex): The index in the folder.
    RAISES (BioclinError): The folder holds something else, faiss is missing, or the encoder gives
        vectors that are not of length 1.
    """
    arrays = _name_arrays(kb)
    n_vectors = len(arrays[START]) - 1
    inputs = [] if kb.path is None else [kb.path]
    check = partial(
        check_output, path, inputs=inputs, overwrite=overwrite, marker=VECTORS, only=FILES
    )
    check()
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
    with lock_output(path):
        work = hidden_path(path, WORK)
        _start(work, plan)
        tell(lambda: "the vectors made so far are kept; run the same command again")
        made = work / INDEX
        _fill(made, kb, encoder, arrays, plan, progress, n_vectors > exact_limit)
        check()  # hours later
        with temporary_folder(path) as temporary, deferred():
            if os.path.lexists(path):
                path.rename(temporary / f"{path.name}{OLD}")
            made.rename(path)
        remove(work)
    return DenseIndex.open(path, kb, encoder, device=encoder.device)


def _fill(
    folder: Path,
    kb: KnowledgeBase,
    encoder: NameEncoder,
    arrays: dict[str, NDArray[Any]],
    plan: dict[str, Any],
    progress: Progress | None,
    with_graph: bool,
) -> None:
    """Write all files of an index into the folder of an interrupted run."""
    _encode(kb, encoder, arrays[NAMES][arrays[START][:-1]], folder / VECTORS, progress)
    vectors = map_vectors(folder / VECTORS, encoder.width)
    if (row := find_wrong_vector(vectors)) is not None:
        name = kb.names[int(arrays[NAMES][arrays[START][row]])]
        remove(folder.parent / PLAN)  # the next run starts again
        raise BioclinError(
            f"{folder / VECTORS}: the vector of {name[:50]!r} has not length 1: the disk, or the "
            f"encoder {encoder.folder}, is damaged; run it again, or with another --precision"
        )
    for file, array in arrays.items():
        np.save(folder / file, array)
    names = [VECTORS, *arrays]
    if with_graph:
        write_graph(vectors, folder / GRAPH)
        names.append(GRAPH)
    sealed = seal_files([folder / name for name in names], plan)
    (folder / META).write_text(json.dumps(sealed, indent=1), "utf-8")


def _start(work: Path, plan: dict[str, Any]) -> None:
    """Keep what an interrupted run of the same plan has encoded; otherwise start again."""
    make_private_folder(work)  # nobody else can put a link there
    try:
        same = json.loads((work / PLAN).read_text("utf-8")) == plan
    except (OSError, ValueError, RecursionError):
        same = False
    if any(not OWN.fullmatch(file.name) for file in work.iterdir()):
        raise BioclinError(
            f"{work}: is not what an interrupted run has left, and this run needs its name; move it"
        )
    if not same or any(file.is_symlink() for file in work.rglob("*")):
        remove(work)
        make_private_folder(work)
        write_atomic(work / PLAN, json.dumps(plan))
    (work / INDEX).mkdir(exist_ok=True)


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
