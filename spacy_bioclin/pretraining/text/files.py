"""Name the files of a corpus."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ... import files


def find_files(paths: Iterable[Path], suffixes: Sequence[str]) -> dict[str, Path]:
    """Find the files in some files and folders, compressed or not.

    paths, suffixes: See `spacy_bioclin.files.find_files`.
    RETURNS (dict[str, Path]): Name -> file. The name is the path relative to the given folder, or
        the whole path where that is ambiguous.
    """
    found: dict[str, Path] = {}
    for name, file in files.find_files(paths, suffixes, compressed=True):
        found[name if found.get(name, file) == file else file.as_posix()] = file
    return found
