"""Find everything that is wrong with the vectors of a knowledge base, for `bioclin kb check`."""

from collections.abc import Iterable
from pathlib import Path

from ...errors import BioclinError
from ..kb.knowledge_base import KnowledgeBase
from .index import VECTORS, DenseIndex


def check_indexes(path: Path, others: Iterable[Path]) -> tuple[list[str], bool]:
    """Find what is wrong with the indexes of vectors of a knowledge base.

    path (Path): Its folder, without faults; indexes in it are found.
    others (Iterable[Path]): More folders of `bioclin embed-kb`.
    RETURNS (tuple[list[str], bool]): What is wrong, one line for each fault; and whether all
        indexes have hashes.
    """
    kb = KnowledgeBase.open(path)
    faults, have_hashes = [], True
    for folder in (*(file.parent for file in sorted(path.glob(f"*/{VECTORS}"))), *others):
        try:
            index = DenseIndex.open(folder, kb, device="cpu")
        except BioclinError as error:
            faults.append(str(error))
        else:
            faults += [f"{folder}/{fault}" for fault in index.find_faults()]
            have_hashes = have_hashes and "sha256" in index.meta
    return faults, have_hashes
