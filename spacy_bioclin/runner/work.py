"""Keep the finished parts of an output in a hidden folder, so that a killed run can be resumed.

The folder is beside the output and holds a manifest (the settings of the run) and the finished
parts, each written whole or not at all. At the end, the parts are joined there, and the result is
moved into place. Whoever uses the folder holds the lock of the output (files.lock_output), and a
part of other settings is never used: their hash is in its name and in its first line.
"""

import errno
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BioclinError
from ..files import remove, replace, write_atomic
from .records import Form

Counts = dict[str, Any]  # numbers, or tables of numbers


class Done(NamedTuple):
    """A part that is finished: its bytes in the output's form, and what was counted.

    refused (Sequence[dict[str, str]]): Records that are not in it: place, perhaps id, and reason.
    """

    data: bytes
    counts: Counts
    refused: Sequence[dict[str, str]] = ()


class Work:
    """The hidden folder of an output that is being written."""

    def __init__(self, out: Path, settings: dict[str, str], *, resume: bool, overwrite: bool):
        """Make the folder, or open that of an earlier run.

        out (Path): The output.
        settings (dict[str, str]): Name -> fingerprint of what the output depends on.
        resume (bool): Use the parts of an interrupted run.
        overwrite (bool): Remove the parts of an interrupted run.
        RAISES (BioclinError): There are such parts and neither is set, or their settings differ.
        """
        self.out = out
        content = json.dumps(settings, sort_keys=True).encode("utf-8")
        self.hash = hashlib.sha256(content).hexdigest()[:16]
        self.folder = out.with_name(f".{out.name}.work")
        manifest = self.folder / "manifest.json"
        if self.folder.exists() and not resume:
            if not overwrite:
                raise BioclinError(
                    f"{out}: a run that did not end has left parts of it in {self.folder.name}; "
                    "go on with --resume, or begin again with --overwrite"
                )
            shutil.rmtree(self.folder)
        if manifest.exists():
            old = json.loads(manifest.read_bytes())
            differ = sorted(
                name for name in {*old, *settings} if old.get(name) != settings.get(name)
            )
            if differ:
                raise BioclinError(
                    f"{out}: cannot go on, these are not what they were: {', '.join(differ)}; give "
                    "what was given then, or begin again with --overwrite (without --resume)"
                )
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(manifest, json.dumps(settings, indent=2).encode("utf-8"))
        except OSError as error:
            raise self.give_up(error) from None

    def path(self, index: int) -> Path:
        """Name the file of a part."""
        return self.folder / f"{index:08}.{self.hash}.part"

    def write(self, index: int, done: Done) -> None:
        """Write a finished part: a line about it, then its data."""
        head = {"settings": self.hash, "counts": done.counts, "refused": list(done.refused)}
        line = json.dumps(head, ensure_ascii=False).encode("utf-8")
        write_atomic(self.path(index), line + b"\n" + done.data, private=True)

    def read(self, index: int) -> Done | None:
        """Read a finished part without its data; None if it is not finished."""
        if not self.path(index).exists():
            return None
        with self.path(index).open("rb") as file:
            head = json.loads(file.readline())
        if head["settings"] != self.hash:
            return None
        return Done(b"", head["counts"], head["refused"])

    def data(self, n_parts: int) -> Iterator[bytes]:
        """Read the data of the parts in order."""
        for index in range(n_parts):
            with self.path(index).open("rb") as file:
                file.readline()
                yield file.read()

    def finish(self, form: Form, n_parts: int, audit: Path, content: bytes) -> None:
        """Join the parts and move the result into place.

        The audit is written first, so that an output always has one.
        """
        joined = self.folder / "joined"
        remove(joined)
        remove(self.folder / "joined.old")
        form.join(self.data(n_parts), joined)
        write_atomic(audit, content)
        replace(joined, self.out)
        shutil.rmtree(self.folder)

    def give_up(self, error: OSError | BioclinError) -> BioclinError:
        """Remove what is incomplete, and everything if no part is finished.

        RETURNS (BioclinError): The error for the user.
        """
        if any(self.folder.glob("*.part")):
            remove(self.folder / "joined")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(error, BioclinError):
            return error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return BioclinError(
                f"{self.out}: the disk is full. Nothing half made is left, finished parts are "
                "kept: make room, and go on with --resume"
            )
        return BioclinError(f"{error.filename or self.out}: {error.strerror or error}")
