"""Finding and opening text files, compressed or not."""

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
    """Find files.

    paths (Iterable[Path]): Files of any name, and folders that are searched at any depth.
    suffixes (Sequence[str]): What is taken from a folder, compressed or not (".txt", ".txt.xz").
    RETURNS (dict[str, Path]): Name -> file, in the order given, those of a folder sorted. The name
        is the path below the folder that was given, or the whole path if two would have that name.
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
    """Open a file for reading bytes, through the compression that its ending names. An error while
    reading in the block names the file.

    path (Path): The file.
    YIELDS (tuple): The file, and a function that says how far it is read, in bytes on the disk.
    RAISES (BioclinError): The file cannot be read or is broken.
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
