"""Find, open and hash the files that are read.

Links are followed. What cannot be read (a folder without permission, a link to nothing, a pipe) is
never left out without a word: it is an error, or the caller counts it.
"""

import bz2
import gzip
import hashlib
import lzma
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import BioclinError

CHUNK_BYTES = 2**20
NOT_THERE = "no such file or folder"
NOT_REGULAR = "is a pipe, socket or device, not a file"
COMPRESSED: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def find_files(
    paths: Iterable[Path],
    suffixes: Iterable[str],
    *,
    compressed: bool = False,
    on_bad: Callable[[BioclinError], None] | None = None,
) -> Iterator[tuple[str, Path]]:
    """Find the files in some files and folders.

    paths (Iterable[Path]): Files with any name, and folders, which are searched at any depth.
    suffixes (Iterable[str]): Ends of the names of the files in folders.
    compressed (bool): Find ".txt.xz" too if ".txt" is wanted, see `COMPRESSED`.
    on_bad (Callable | None): Called with the error of whatever in a folder cannot be read; None
        raises it.
    YIELDS (tuple[str, Path]): Path relative to the folder, or name, and file; in the given order,
        sorted within a folder.
    RAISES (BioclinError): A path does not exist, or a folder has no such file.
    """
    wanted = tuple(suffixes)

    def is_wanted(path: Path) -> bool:
        is_packed = compressed and path.suffix in COMPRESSED
        return (path.stem if is_packed else path.name).endswith(wanted)

    for path in paths:
        if not path.is_dir():
            check_regular(path)
            yield path.name, path
            continue
        files, faults = [], []
        for file, fault in walk_files(path, is_wanted):
            if not fault:
                files.append(file)
            elif on_bad is None:
                raise BioclinError(f"{file}: {fault}")
            else:
                faults.append(file)
                on_bad(BioclinError(f"{file}: {fault}"))
        if not files and not faults:
            raise BioclinError(f"{path}: no {' or '.join(wanted)} file in this folder")
        yield from ((file.relative_to(path).as_posix(), file) for file in sorted(files))


def walk_files(
    folder: Path, is_wanted: Callable[[Path], bool], above: tuple[tuple[int, int], ...] = ()
) -> Iterator[tuple[Path, str]]:
    """Search a folder at any depth, also behind symbolic links.

    is_wanted (Callable): Whether a file is to be found, by its name.
    above (tuple): Device and inode of the folders that hold this one: a link back to one of them is
        not followed again.
    YIELDS (tuple[Path, str]): What was found, sorted by name, files before folders; and why it
        cannot be read, or "". Folders are only among those that cannot be read.
    """
    folders = []
    try:
        info = folder.stat()
        entries = sorted(folder.iterdir())
    except OSError as error:
        yield folder, f"cannot be read ({error.strerror})"
        return
    here = (info.st_dev, info.st_ino)
    for path in entries if here not in above else ():
        try:
            mode = path.stat().st_mode
        except OSError as error:
            # It may have been a folder of notes.
            yield path, f"is a link that cannot be followed ({error.strerror})"
            continue
        if stat.S_ISDIR(mode):
            folders.append(path)
        elif is_wanted(path):
            yield path, "" if stat.S_ISREG(mode) else NOT_REGULAR
    for path in folders:
        yield from walk_files(path, is_wanted, (*above, here))


def check_regular(path: Path) -> None:
    """Refuse what is not a file, before it is opened: a pipe would wait for ever.

    RAISES (BioclinError): There is no such file, or it is a folder, pipe, socket or device.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        what = "is a link to a file that is not there" if path.is_symlink() else NOT_THERE
        raise BioclinError(f"{path}: {what}") from None
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(mode):
        raise BioclinError(f"{path}: {'is a folder' if stat.S_ISDIR(mode) else NOT_REGULAR}")


@contextmanager
def open_binary(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """Open a file for reading bytes, and decompress it if its ending says so.

    path (Path): The file.
    YIELDS (tuple): The file, and a function that returns the position on disk, in bytes.
    RAISES (BioclinError): The file cannot be read or is broken, also while the block reads it.
    """
    check_regular(path)
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


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file, read piece by piece.

    RETURNS (str): 64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def hash_files(path: Path) -> str:
    """Compute the SHA-256 of a file, or of all files of a folder and their names.

    RETURNS (str): 64 hexadecimal digits.
    """
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(path).as_posix()
        digest.update(f"{name} {file.stat().st_size}\n".encode())
        with file.open("rb") as content:
            while block := content.read(CHUNK_BYTES):
                digest.update(block)
    return digest.hexdigest()
