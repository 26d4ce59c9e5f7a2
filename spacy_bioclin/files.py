"""Find, open and hash files; decide where an output may go, and write it whole or not at all.

Links are followed. What cannot be read (a folder without permission, a link to nothing, a pipe) is
never left out without a word: it is an error, or the caller counts it.
"""

import bz2
import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
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


@contextmanager
def open_folder(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Make a folder that appears under its name when the block ends without an error.

    It replaces a file or folder of that name. See `open_atomic` for what an error leaves.

    private (bool): Only the user may look into the folder: it holds text of notes.
    YIELDS (Path): The folder to fill.
    """
    with temporary_folder(path) as temporary:
        folder = temporary / path.name
        folder.mkdir(mode=0o700 if private else 0o777)
        yield folder
        replace(folder, path)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside an output, removed when the block ends.

    YIELDS (Path): The folder, which only the user may look into.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = f".{path.name}."
    try:
        made = tempfile.TemporaryDirectory(prefix=name, suffix=".partial", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # not the hidden name
    with made as folder:
        yield Path(folder)


def replace(new: Path, path: Path) -> None:
    """Move a file or folder to another name, in place of what is there.

    new (Path): In a temporary folder: an older folder is moved there, for neither can a folder be
        replaced in one step nor should a run that is killed leave half of the old one.
    path (Path): The name, on the same disk.
    """
    if path.is_dir() and not path.is_symlink():
        path.rename(new.with_name(f"{new.name}.old"))
    elif new.is_dir():
        path.unlink(missing_ok=True)
    new.replace(path)


def check_inputs(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input, by whatever name, or a folder that holds one.

    RAISES (BioclinError): It is, or does.
    """
    for source in inputs:
        linked = path.exists() and source.exists() and path.samefile(source)  # hard links too
        if linked or path.resolve() in (source.resolve(), *source.resolve().parents):
            raise BioclinError(f"{path}: is the input {source}, or holds it; give another name")


def check_output(
    path: Path,
    *,
    inputs: Iterable[Path] = (),
    overwrite: bool,
    marker: str = "",
    only: str = "",
) -> None:
    """Refuse an output that would replace something.

    path (Path): The file or folder to be made.
    inputs (Iterable[Path]): What the command reads. It is never overwritten, nor is a folder that
        holds it.
    overwrite (bool): Whether the user gave --overwrite.
    marker (str): For a folder: a file in every output of the command. A folder without it is never
        replaced, unless it is empty.
    only (str): For a folder: a regular expression for the names of all files of an output.
    RAISES (BioclinError): The output is an input, is there already, or is something else.
    """
    check_inputs(path, inputs)
    want_folder = bool(marker or only)
    if not os.path.lexists(path) or (want_folder and path.is_dir() and not any(path.iterdir())):
        return
    if path.is_dir() != want_folder:
        wanted, found = ("folder", "file") if want_folder else ("file", "folder")
        raise BioclinError(f"{path}: is a {found}, and the output is a {wanted}; give another name")
    if not overwrite:
        raise BioclinError(f"{path}: exists already; give another name, or --overwrite")
    names = [file.name for file in path.rglob("*")] if only else []
    if marker and not (path / marker).exists():
        reason = f"it holds no {marker}"
    elif foreign := [name for name in names if not re.fullmatch(only, name)]:
        reason = f"it holds {foreign[0]}"
    else:
        return
    raise BioclinError(
        f"{path}: not an output of this command ({reason}), so it is not replaced; remove it "
        "yourself, or give another name"
    )


@contextmanager
def lock_output(path: Path) -> Iterator[None]:
    """Let no other process write an output until the block ends.

    The lock is a hidden file beside the output. The system opens it again if the process is killed.

    RAISES (BioclinError): Another process is writing the output.
    """
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f".{path.name}.lock")
    lock = FileLock(file, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise BioclinError(
            f"{path}: another run is writing it; wait until that has ended, or give another name"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # on Windows an open file cannot be removed
            file.unlink()  # before the release: a process that has it open tries again
        lock.release()


class Output:
    """A file or folder that a command writes: checked when the command starts, then written whole.

    While it is written it is locked, so that two runs with one output cannot mix.

    path, inputs, overwrite, marker: See `check_output`.
    private (bool): Only the user may read it: it holds text of notes.
    """

    def __init__(
        self,
        path: Path,
        *,
        inputs: Iterable[Path] = (),
        overwrite: bool,
        marker: str = "",
        private: bool = False,
    ) -> None:
        self.path = path
        self.private = private
        self._check = partial(
            check_output, path, inputs=list(inputs), overwrite=overwrite, marker=marker
        )
        self._check()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with lock_output(self.path):
            self._check()  # another run may have written it since
            yield

    def write(self, content: str | bytes) -> None:
        """Write the whole file or nothing."""
        with self._locked():
            write_atomic(self.path, content, private=self.private)

    @contextmanager
    def open(self, mode: str = "w") -> Iterator[IO[Any]]:
        """Open the file, see `open_atomic`."""
        with self._locked(), open_atomic(self.path, mode, private=self.private) as file:
            yield file

    @contextmanager
    def open_folder(self) -> Iterator[Path]:
        """Make the folder, see `open_folder`."""
        with self._locked(), open_folder(self.path, private=self.private) as folder:
            yield folder


def remove(path: Path) -> None:
    """Remove a file, a symbolic link or a whole folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _umask() -> int:
    """Read the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
