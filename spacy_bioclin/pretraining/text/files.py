"""Find and open text files, compressed or not."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ...errors import BioclinError

COMPRESSED: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def find_files(paths: Iterable[Path], suffixes: Sequence[str]) -> dict[str, Path]:
    """Find the files in some files and folders.

    paths (Iterable[Path]): Files with any name, and folders, which are searched at any depth.
    suffixes (Sequence[str]): Endings of the files in folders; ".txt" includes ".txt.xz".
    RETURNS (dict[str, Path]): Name -> file, in the given order, sorted within a folder. The name is
        the path relative to the given folder, or the whole path where that is ambiguous.
    RAISES (BioclinError): A path does not exist, or a folder has no such file.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if _is_wanted(file, suffixes))
            if not files:
                raise BioclinError(f"{path}: no file with the ending {', '.join(suffixes)} in it")
        elif path.exists():
            files = [path]
        else:
            raise BioclinError(f"{path}: no such file or folder")
        folder = path if path.is_dir() else path.parent
        for file in files:
            name = file.relative_to(folder).as_posix()
            if found.get(name, file) != file:
                name = file.as_posix()
            found[name] = file
    return found


def _is_wanted(path: Path, suffixes: Sequence[str]) -> bool:
    name = path.with_suffix("").name if path.suffix in COMPRESSED else path.name
    return name.endswith(tuple(suffixes)) and path.is_file()


@contextmanager
def open_binary(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """Open a file for reading bytes, and decompress it if its ending says so.

    path (Path): The file.
    YIELDS (tuple): The file, and a function that returns the position on disk, in bytes.
    RAISES (BioclinError): The file cannot be read or is broken, also while the block reads it.
    """
    try:
        with path.open("rb") as raw:
            if opener := COMPRESSED.get(path.suffix):
                with opener(raw, "rb") as file:
                    yield file, raw.tell
            else:
                yield raw, raw.tell
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise BioclinError(
            f"{path}: broken {path.suffix} file ({type(error).__name__}); get or make it again"
        ) from None
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror or error})") from None
