"""Outputs of commands: checked, locked and written whole."""

import errno
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from ..errors import BioclinError
from ..interrupts import TEMPORARY, deferred, note_output
from .atomic import (
    OLD,
    hidden_path,
    naming,
    open_atomic,
    remove,
    replace,
    shorten,
    temporary_folder,
)
from .places import check_inputs, check_output, check_place

LOGGER = logging.getLogger("spacy_bioclin.outputs")


@contextmanager
def lock_output(path: Path) -> Iterator[None]:
    """Let no other process write an output until the block ends.

    The lock is a hidden file beside the output. The system opens it again if the process is killed;
    what that process had left half made is removed.

    RAISES (BioclinError): Another process is writing the output.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _lock(path, hidden_path(path, "lock")):
        _remove_stale(path, path.parent, re.escape(shorten(path.name)))
        yield


@contextmanager
def _lock(path: Path, file: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(file, blocking=False)
    with naming(path):
        try:
            lock.acquire()
        except Timeout:
            raise BioclinError(
                f"{path}: another run is writing it; wait until that has ended, or give another "
                "name"
            ) from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise BioclinError(
                f"{path}: its lock {file.name} is a link; remove it, or give another name"
            ) from None
    TEMPORARY.add(file)
    try:
        yield
    finally:
        with suppress(OSError):  # on Windows an open file cannot be removed
            file.unlink()  # before the release: a process that has it open tries again
        TEMPORARY.discard(file)
        lock.release()


class Output:
    """A file or folder that a command writes: checked when the command starts, then written whole.

    While it is written it is locked, so that two runs with one output cannot mix.

    path, inputs, others, overwrite, marker, only: See `check_output`.
    private (bool): Only the user may read it: it holds text of notes.
    """

    def __init__(
        self,
        path: Path,
        *,
        inputs: Iterable[Path] = (),
        others: Iterable[Path | None] = (),
        overwrite: bool,
        marker: str = "",
        only: str = "",
        private: bool = False,
    ) -> None:
        self.path = path
        self.private = private
        self.overwrite = overwrite
        self._check = partial(
            check_output,
            path,
            inputs=list(inputs),
            others=list(others),
            overwrite=overwrite,
            marker=marker,
            only=only,
        )
        self._check()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the output, and check again: another run may have written it since."""
        with lock_output(self.path):
            self._check()
            yield

    def write(self, content: str | bytes) -> None:
        """Write the whole file or nothing."""
        with self.open("w" if isinstance(content, str) else "wb") as file:
            file.write(content)

    @contextmanager
    def open(self, mode: str = "w") -> Iterator[IO[Any]]:
        """Open the file, see `open_atomic`."""
        new = not self.overwrite
        with (
            self.lock(),
            open_atomic(self.path, mode, private=self.private, new=new) as file,
        ):
            yield file
        note_output(self.path)

    @contextmanager
    def make(self) -> Iterator[Path]:
        """Let the block make the file or folder at a hidden path, and move it into place.

        YIELDS (Path): Where to make it, in a folder that only the user may look into.
        """
        with self.lock(), temporary_folder(self.path) as temporary:
            made = temporary / self.path.name
            yield made
            if self.private:
                for path in (made, *made.rglob("*")):
                    path.chmod(0o700 if path.is_dir() else 0o600)
            with deferred():
                replace(made, self.path, new=not self.overwrite)
                note_output(self.path)

    @contextmanager
    def open_folder(self) -> Iterator[Path]:
        """Make the folder, see `open_folder`."""
        with self.make() as folder:
            folder.mkdir()
            yield folder


@contextmanager
def grow_folder(
    path: Path, *, inputs: Iterable[Path] = (), private: bool = False
) -> Iterator[Path]:
    """Lock a folder for a whole run that adds to it and can be resumed; make it if it is not there.

    The run decides what of an earlier one it replaces. It writes each file with `write_atomic` and
    each folder with `open_folder`; what a killed run left of these is removed.

    inputs (Iterable[Path]): What the command reads. The folder is none of it and holds none.
    private (bool): Only the user may look into a new folder: it holds text of notes.
    YIELDS (Path): The folder.
    RAISES (BioclinError): It cannot be made, is an input or a file, or another run uses it.
    """
    check_place(path)
    check_inputs(path, inputs)
    if os.path.lexists(path) and not path.is_dir():
        raise BioclinError(f"{path}: is a file, and the output is a folder; give another name")
    with naming(path):
        path.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        # The lock is inside: the folder above may belong to somebody else.
        with _lock(path, path / ".lock"):
            _remove_stale(path, path, ".*")
            yield path


def _remove_stale(path: Path, folder: Path, name: str) -> None:
    """Remove what a run that was killed left of an output whose lock is held.

    name (str): Regular expression for the name of which it is left, in `folder`.
    """
    ours = re.compile(rf"\.({name})\.[a-z0-9_]{{8}}\.partial")
    stale = [file for file in folder.iterdir() if ours.fullmatch(file.name)]
    for file in stale:
        for old in file.glob(f"*{OLD}") if file.is_dir() and not file.is_symlink() else ():
            moved = folder / old.name.removesuffix(OLD)
            if not os.path.lexists(moved):
                old.rename(moved)  # it was killed between the two steps of `replace`
                LOGGER.warning(f"{moved}: put back, for a run that was killed had moved it")
        remove(file)
    if stale:
        LOGGER.warning(f"{path}: what a run that was killed had left of it was removed")
