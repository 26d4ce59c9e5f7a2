"""Write files whole or not at all, decide where an output may go, and hash files."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import BioclinError

CHUNK_BYTES = 2**20


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file, read piece by piece.

    RETURNS (str): 64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def open_atomic(path: Path, mode: str = "w", *, private: bool = False) -> Iterator[IO[Any]]:
    """Open a file for writing that appears under its name when the block ends without an error.

    Until then it has an unpredictable name beside it. After an error, or a signal that Python
    handles, nothing is left and an older file of that name is as it was.

    mode (str): "w" for text, which is written as UTF-8 without translating line ends, or "wb".
    private (bool): Only the user may read the file: it holds text of notes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    partial = Path(name)
    try:
        encoding, newline = (None, None) if "b" in mode else ("utf-8", "")
        with os.fdopen(descriptor, mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not private:
            partial.chmod(0o666 & ~_umask())  # mkstemp gives 0600
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_atomic(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a whole file or nothing, even if the machine stops. See `open_atomic`."""
    with open_atomic(path, "w" if isinstance(content, str) else "wb", private=private) as file:
        file.write(content)


def check_output(path: Path, *, inputs: Iterable[Path] = (), overwrite: bool) -> None:
    """Refuse an output that would replace something.

    path (Path): The file or folder to be made.
    inputs (Iterable[Path]): What the command reads. It is never overwritten, nor is a folder that
        holds it.
    overwrite (bool): Whether the user gave --overwrite.
    RAISES (BioclinError): The output is an input, or is there already.
    """
    for source in inputs:
        if path.exists() and source.exists() and _is_same_or_inside(source, path):
            raise BioclinError(f"{path}: is the input or holds it; give another name")
    if os.path.lexists(path) and not overwrite:
        raise BioclinError(f"{path}: exists already; give another name, or --overwrite")


def remove(path: Path) -> None:
    """Remove a file, a symbolic link or a whole folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _is_same_or_inside(path: Path, folder: Path) -> bool:
    path, folder = path.resolve(), folder.resolve()
    return path == folder or folder in path.parents


def _umask() -> int:
    """Read the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
