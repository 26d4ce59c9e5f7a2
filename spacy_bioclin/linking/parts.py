"""What a linker is made of, opened from folders and written to one: a knowledge base, what was
learned from linked mentions, and vectors of names."""

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from thinc.util import get_torch_default_device

from ..encoders.names import NameEncoder
from ..errors import BioclinError
from .dense.index import DenseIndex
from .kb.build import is_type
from .kb.knowledge_base import KnowledgeBase
from .ranking import Ranker

RANKER, LEARNED = "ranker.json", "learned.json"


class TrainedModel(NamedTuple):
    """What `bioclin train-linker` writes.

    ranker (dict): See `Ranker.to_dict`.
    learned (list): See `LearnedNames.to_list`; it holds mentions of the training notes.
    """

    ranker: dict[str, Any]
    learned: list[list[Any]]

    @classmethod
    def untrained(cls) -> "TrainedModel":
        """RETURNS (TrainedModel): Fixed weights, nothing learned."""
        return cls(Ranker.untrained().to_dict(), [])

    @classmethod
    def read(cls, folder: Path) -> "TrainedModel":
        """RAISES (BioclinError): The folder holds no such model."""
        try:
            return cls(*(json.loads((folder / f).read_text("utf-8")) for f in (RANKER, LEARNED)))
        except (OSError, ValueError) as error:
            raise BioclinError(
                f"{folder} holds no trained linker ({type(error).__name__}): give the folder that "
                "`bioclin train-linker` wrote, or null"
            ) from None

    def write(self, folder: Path) -> None:
        """Write to a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in zip((RANKER, LEARNED), self, strict=True):
            (folder / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def open_kb(kb: KnowledgeBase | Path | str, hash: str | None) -> KnowledgeBase:
    """Open a knowledge base, or take the one that is given.

    hash (str | None): What its hash has to be.
    RAISES (BioclinError): There is none, or it is another one.
    """
    opened = kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)
    if hash is not None and opened.hash != hash:
        where = opened.path or "the knowledge base"
        raise BioclinError(
            f"{where} has the hash {opened.hash}, wanted is {hash}: it is another knowledge base "
            "or another version; give the one that the pipeline was made with"
        )
    return opened


def open_meanings(meanings: Path, encoder: str, kb: KnowledgeBase) -> DenseIndex:
    """Open vectors of names and the encoder that they are from.

    meanings (Path): Folder of `bioclin embed-kb`.
    encoder (str): Folder or hub name of the encoder.
    RAISES (BioclinError): They do not belong together or to this knowledge base.
    """
    device = get_torch_default_device()
    pooling = DenseIndex.open(meanings, kb, device=device).meta["pooling"]
    names = NameEncoder(encoder, pooling=pooling, device=device)
    return DenseIndex.open(meanings, kb, names, device=device)


def check_types(types: Mapping[str, Collection[str]], kb: KnowledgeBase) -> None:
    """RAISES (BioclinError): No concept has a type that a label asks for."""
    for label, wanted in types.items():
        for one in wanted:
            if not any(is_type(known, [one]) for known in kb.meta["types"]):
                some = ", ".join(kb.meta["types"][:5]) or "no types at all"
                raise BioclinError(
                    f"types of {label!r}: no concept has the type {one!r}; the knowledge base has "
                    f"{some} … (`C04*` stands for all that begin so)"
                )


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of a folder, not those of folders in it, unless they are there already."""
    if source.resolve() == target.resolve():
        return
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.is_file():
            shutil.copyfile(file, target / file.name)


def describe_kb(kb: KnowledgeBase) -> dict[str, Any]:
    """RETURNS (dict): What a model card says of it; licences of its sources above all."""
    keys = ("name", "version", "langs", "n_concepts", "n_names")
    sources = [
        {key: source.get(key, "") for key in ("file", "format", "licence")}
        for source in kb.meta["sources"]
    ]
    return {**{key: kb.meta[key] for key in keys}, "hash": kb.hash, "sources": sources}
