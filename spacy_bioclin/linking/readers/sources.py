"""The files of a terminology: which are read, how large they are, what a knowledge base says of
them."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from ...errors import BioclinError
from ..kb.concepts import SkipReport
from . import FORMATS, detect_format
from .rf2 import find_files
from .rrf import LAYOUTS_OF_PREFIX, find_release

BLOCK = 2**20


class Source(NamedTuple):
    """A terminology that is to be read.

    path (Path): File, or folder of a release.
    format (str): One of `FORMATS`.
    files (tuple[Path, ...]): What is read of it.
    """

    path: Path
    format: str
    files: tuple[Path, ...]

    def n_bytes(self) -> int:
        """RETURNS (int): Size of its files on the disk."""
        return sum(file.stat().st_size for file in self.files)

    def describe(self, licence: str) -> list[dict[str, str | int]]:
        """RETURNS (list[dict[str, str | int]]): Of each file its name, format, size, SHA-256 and
        licence."""
        return [
            {
                "file": file.name,
                "format": self.format,
                "bytes": file.stat().st_size,
                "sha256": _sha256(file),
                "licence": licence,
            }
            for file in self.files
        ]


def find_source(text: str, *, format: str | None = None) -> Source:
    """Find a terminology.

    text (str): A path, or "FORMAT:path".
    format (str | None): Its format if none stands before the path; None finds out.
    RETURNS (Source): What has to be read.
    RAISES (BioclinError): There is nothing, the format is unknown, or a release lacks a file.
    """
    prefix, _, rest = text.partition(":")
    path, name = (Path(rest), prefix) if rest and prefix in FORMATS else (Path(text), format)
    if name is not None and name not in FORMATS:
        raise BioclinError(f"format {name!r}: unknown; there are {', '.join(FORMATS)}")
    if not path.exists():
        raise BioclinError(f"{path}: no such file or folder")
    name = name or detect_format(path)
    files = [path]
    if name == "rrf":
        release = find_release(path)
        found = (release.file(kind) for kind in LAYOUTS_OF_PREFIX[release.prefix])
        files = [file for file in found if file]
    elif name == "rf2":
        files = [file for kind in find_files(path, SkipReport()).values() for file in kind]
    elif path.is_dir():
        raise BioclinError(f"{path}: a folder; give a file of format {name}")
    return Source(path, name, tuple(files))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
