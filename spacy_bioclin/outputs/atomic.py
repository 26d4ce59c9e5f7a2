"""Write files and folders whole or not at all."""

import errno
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..errors import BioclinError
from ..interrupts import TEMPORARY, deferred
from .places import EXISTS

LONG_NAME = 100  # bytes; the hidden names beside a longer one have a hash instead of its end
HINTS = {
    errno.ENOSPC: "the disk is full (No space left on device); make room, and run it again",
    errno.EDQUOT: "the quota of disk space is used up; make room, and run it again",
    errno.EFBIG: "larger than a file may be here (ulimit -f); raise that, and run it again",
    errno.EROFS: "the disk is read-only; give a name on another one",
    errno.EBUSY: "is in use, or is a mount point; give a name inside it",
    errno.EIO: "cannot be written: the disk fails",
    errno.EEXIST: EXISTS,
    errno.ENOTEMPTY: EXISTS,
}
PARTIAL, OLD = ".partial", ".old"
# How libraries say that a disk is full that do not raise the system's error: numpy, torch, Rust.
FULL_TEXT = re.compile(r"requested and \d+ written|PytorchStreamWriter failed|os error 28\b")


@contextmanager
def open_atomic(
    path: Path, mode: str = "w", *, private: bool = False, new: bool = False
) -> Iterator[IO[Any]]:
    """Open a file for writing that appears under its name when the block ends without an error.

    Until then it has an unpredictable name beside it. After an error, or a signal that Python
    handles, nothing is left and an older file of that name is as it was.

    mode (str): "w" for text, which is written as UTF-8 without translating line ends, or "wb".
    private (bool): Only the user may read the file: it holds text of notes.
    new (bool): Never replace a file, even one that was made since the block began.
    RAISES (OSError): It cannot be written; the error names the file, and says why.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with deferred():
            # Made with O_EXCL and O_NOFOLLOW, for the user alone.
            descriptor, name = tempfile.mkstemp(PARTIAL, _prefix(path), dir=path.parent)
            partial = Path(name)
            TEMPORARY.add(partial)
        try:
            encoding, newline = (None, None) if "b" in mode else ("utf-8", "")
            with os.fdopen(descriptor, mode, encoding=encoding, newline=newline) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if not private:
                partial.chmod(0o666 & ~_umask())
            replace(partial, path, new=new)
        finally:
            partial.unlink(missing_ok=True)
            TEMPORARY.discard(partial)


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
    RAISES (OSError): It cannot be made, or the disk is full.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with deferred():
            made = tempfile.TemporaryDirectory(PARTIAL, _prefix(path), dir=path.parent)
            TEMPORARY.add(Path(made.name))
        with made as folder:
            yield Path(folder)
        TEMPORARY.discard(Path(folder))


def replace(made: Path, path: Path, *, new: bool = False) -> None:
    """Move a file or folder to another name, in place of what is there.

    made (Path): In a temporary folder: an older folder is moved there, for neither can a folder be
        replaced in one step nor should a run that is killed leave half of the old one.
    path (Path): The name, on the same disk.
    new (bool): Replace nothing but an empty folder.
    RAISES (OSError): It cannot be moved; there is something, and `new` is set.
    """
    if new and made.is_dir():
        with suppress(OSError):
            path.rmdir()  # only an empty folder can be removed so
        made.rename(path)  # nor does the system put a folder in place of anything else
    elif new:
        try:
            os.link(made, path)  # unlike a rename, it never replaces
        except FileExistsError:
            raise
        except OSError:  # a disk without links
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, EXISTS, str(path)) from None
            made.replace(path)
        else:
            made.unlink()
    else:
        with deferred():  # an interruption between the two would lose both
            if path.is_dir() and not path.is_symlink():
                path.rename(made.with_name(f"{path.name}{OLD}"))
            elif made.is_dir():
                path.unlink(missing_ok=True)
            made.replace(path)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the system name the output, not a hidden file, and say what to do.

    RAISES (OSError): The block failed for a reason that concerns the output.
    """
    try:
        yield
    except BioclinError:
        raise
    except Exception as error:
        number = getattr(error, "errno", None)
        if number is None and FULL_TEXT.search(str(error)):
            number = errno.ENOSPC
        name = getattr(error, "filename", None)
        ours = name is not None and (
            f".{shorten(path.name)}." in str(name)
            or Path(str(name)) in (path, *path.parents)
            or Path(str(name)).parent == path
        )
        if number in HINTS and (ours or name is None):
            hint = HINTS[number]
        elif number == errno.ENOENT and not path.parent.exists():
            hint = "its folder is not there any more; make it, and run it again"
        elif ours and isinstance(error, OSError):
            hint = f"cannot be written ({error.strerror})"
        else:
            raise
        raise OSError(number, hint, str(path)) from None


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there into a folder that is being made, for the user alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_BINARY", 0)  # on Windows
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def make_private_folder(path: Path) -> None:
    """Make a folder for text of notes, or take one over that is the user's alone.

    RAISES (BioclinError): It is a link, a file, or belongs to somebody else.
    """
    with naming(path), suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != getattr(os, "getuid", lambda: 0)():
        raise BioclinError(f"{path}: is not a folder of your own; remove it, or give another OUT")
    path.chmod(0o700)


def remove(path: Path) -> None:
    """Remove a file, a symbolic link or a whole folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def hidden_path(path: Path, ending: str) -> Path:
    """Name a hidden file or folder that belongs to an output and is beside it.

    ending (str): What it is for: "lock", "work".
    """
    if path.name in ("", ".."):
        path = Path(os.path.realpath(path))
    return path.with_name(f".{shorten(path.name)}.{ending}")


def _prefix(path: Path) -> str:
    return f".{shorten(path.name)}."


def shorten(name: str) -> str:
    """Shorten a long name, so that hidden names made of it are possible."""
    encoded = os.fsencode(name)
    if len(encoded) <= LONG_NAME:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    return f"{os.fsdecode(encoded[: LONG_NAME - 20])}-{digest}"


def _umask() -> int:
    """Read the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
