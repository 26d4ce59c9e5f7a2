"""Keep the finished parts of an output in a hidden folder, so that a killed run can be resumed.

The folder is beside the output and holds a manifest (the settings of the run) and the finished
parts, each written whole or not at all. At the end, the parts are joined there, and the result is
moved into place. Whoever uses the folder holds the lock of the output (outputs.lock_output). A part
begins with the SHA-256 of the rest, which names the settings and the number of the part: one that
is damaged, or belongs to another run or another place, is never used, but made again.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from ..errors import BioclinError
from ..interrupts import deferred, note_output, tell
from ..outputs import (
    OLD,
    hidden_path,
    make_private_folder,
    naming,
    remove,
    replace,
    write_atomic,
)

MANIFEST = "manifest.json"

Counts = dict[str, Any]  # numbers, or tables of numbers


class Done(NamedTuple):
    """A part that is finished: its bytes in the output's form, and what was counted.

    refused (Sequence[dict[str, str]]): Records that are not in it: place, perhaps id, and reason.
    quarantined (Sequence[dict[str, Any]]): What the quarantine file has about records that are not
        in it, those that cannot be read included, in the order of the input.
    """

    data: bytes
    counts: Counts
    refused: Sequence[dict[str, str]] = ()
    quarantined: Sequence[dict[str, Any]] = ()


class Joins(Protocol):
    """What makes an output from its parts: the form of an input, or another target."""

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Make the output from its parts, in order."""


def hash_settings(settings: Mapping[str, str]) -> str:
    """Hash what an output depends on."""
    content = json.dumps(settings, sort_keys=True).encode("utf-8")
    return hashlib.sha256(content).hexdigest()[:16]


def is_finished(out: Path, audit: Path, settings: Mapping[str, str]) -> bool:
    """Check whether a run with the same settings has finished an output.

    A run that was killed after its last step leaves its parts, which are removed.

    audit (Path): The file about the run, which has the hash of its settings.
    RAISES (BioclinError): The output was made with other settings, or by something else.
    """
    if not os.path.lexists(out):
        return False
    try:
        about = json.loads(audit.read_bytes())
    except (OSError, ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("settings") != hash_settings(settings):
        raise BioclinError(
            f"{out}: exists already, and {audit.name} does not say that this command has made it "
            "from this input with these settings; give another name, or --overwrite"
        )
    if (folder := hidden_path(out, "work")).exists():
        make_private_folder(folder)  # or an error: not of this user
        shutil.rmtree(folder)
    return True


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
        self.out, self.overwrite = out, overwrite
        self.hash = hash_settings(settings)
        self.folder = hidden_path(out, "work")
        self.damaged: list[str] = []  # what is made again
        if os.path.lexists(self.folder):
            make_private_folder(self.folder)  # or an error: not of this user
        if self.folder.exists() and not resume:
            if not overwrite and any(self.folder.glob("*.part")):
                raise BioclinError(
                    f"{out}: a run that did not end has left parts of it in {self.folder.name}; "
                    "go on with --resume, or begin again with --overwrite"
                )
            shutil.rmtree(self.folder)
        manifest = self.folder / MANIFEST
        self._check_settings(manifest, settings)
        tell(self.describe)
        try:
            make_private_folder(self.folder)
            write_atomic(manifest, json.dumps(settings, indent=2).encode("utf-8"), private=True)
        except OSError as error:
            raise self.give_up(error) from None

    def _check_settings(self, manifest: Path, settings: dict[str, str]) -> None:
        """Check that the parts were made with these settings.

        A manifest that cannot be read is made again: each part names its settings too.

        RAISES (BioclinError): They were not.
        """
        if not os.path.lexists(manifest):
            return
        try:
            old = json.loads(manifest.read_bytes())
        except (OSError, ValueError, RecursionError):
            old = None
        if not isinstance(old, dict) or not all(isinstance(old.get(name), str) for name in old):
            self.damaged.append(MANIFEST)
            remove(manifest)
        elif differ := sorted(name for name in settings if old.get(name) != settings[name]):
            raise BioclinError(
                f"{self.out}: cannot go on, these are not what they were: {', '.join(differ)}; "
                "give what was given then, or begin again with --overwrite (without --resume)"
            )

    def path(self, index: int) -> Path:
        """Name the file of a part."""
        return self.folder / f"{index:08}.{self.hash}.part"

    def write(self, index: int, done: Done, source: str = "") -> None:
        """Write a finished part: a hash of the rest, a line about it, then its data.

        source (str): Identifies the records that the part was made from, see `Form.identify`.
        """
        head = {
            "settings": self.hash,
            "part": index,
            "source": source,
            "counts": done.counts,
            "refused": list(done.refused),
            "quarantined": list(done.quarantined),
        }
        body = json.dumps(head, ensure_ascii=False).encode("utf-8") + b"\n" + done.data
        digest = hashlib.sha256(body).hexdigest().encode("ascii")
        write_atomic(self.path(index), digest + b"\n" + body, private=True)

    def read(self, index: int, source: str | None = None) -> Done | None:
        """Read a finished part; None if it is not finished or not as it was written.

        source (str | None): Identifies the records now; a part that was made from others is made
            again.
        """
        path = self.path(index)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            content = b""
        digest, _, body = content.partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode("ascii") == digest:
            line, _, data = body.partition(b"\n")
            head = json.loads(line)
            is_current = source is None or head.get("source", "") == source
            if (head["settings"], head["part"]) == (self.hash, index) and is_current:
                return Done(data, head["counts"], head["refused"], head.get("quarantined", ()))
        self.damaged.append(path.name)
        remove(path)
        return None

    def data(self, n_parts: int, quarantine: IO[bytes] | None = None) -> Iterator[bytes]:
        """Read the data of the parts in order.

        quarantine (IO[bytes] | None): File to which the quarantined records are written.
        RAISES (BioclinError): A part is not as it was written.
        """
        for index in range(n_parts):
            done = self.read(index)
            if done is None:
                raise BioclinError(
                    f"{self.path(index)}: is not as it was written; check the disk, and run the "
                    "same command again with --resume, which makes this part again"
                )
            if quarantine is not None:
                for row in done.quarantined:
                    line = json.dumps(row, ensure_ascii=False) + "\n"
                    quarantine.write(line.encode("utf-8"))
            yield done.data

    def finish(
        self,
        target: Joins,
        n_parts: int,
        audit: Path,
        content: bytes,
        quarantine: Path | None = None,
    ) -> None:
        """Join the parts and move the result into place.

        The audit is written first, so that an output always has one.

        quarantine (Path | None): File for the quarantined records. There is none if there are none.
        """
        joined = self.folder / "joined"
        remove(joined)
        remove(self.folder / f"{self.out.name}{OLD}")
        skipped = self.folder / "quarantine"
        with skipped.open("wb") as file:
            target.join(self.data(n_parts, file), joined)
            file.flush()
            os.fsync(file.fileno())
        skipped.chmod(0o600)
        joined.chmod(0o700 if joined.is_dir() else 0o600)  # what was not found is still PHI
        # An output without its audit, or beside its parts, cannot be resumed.
        with deferred(), naming(self.out):
            write_atomic(audit, content)
            if quarantine is not None:
                if skipped.stat().st_size:
                    replace(skipped, quarantine)
                else:
                    remove(quarantine)  # of an earlier run
            replace(joined, self.out, new=not self.overwrite)
            note_output(self.out)
            shutil.rmtree(self.folder)

    def describe(self) -> str:
        """Describe for the user what an interrupted run has kept."""
        n_parts = sum(1 for _ in self.folder.glob("*.part"))
        if not n_parts:
            return ""
        parts = "1 finished part is" if n_parts == 1 else f"{n_parts:,} finished parts are"
        return f"{parts} kept; run the same command again with --resume"

    def clean(self) -> None:
        """Remove what is incomplete, and everything if no part is finished."""
        if any(self.folder.glob("*.part")):
            for name in ("joined", "quarantine"):
                remove(self.folder / name)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def give_up(self, error: OSError | BioclinError) -> BioclinError:
        """Clean up after an error.

        RETURNS (BioclinError): The error for the user, which says how to go on.
        """
        self.clean()
        kept = self.describe()
        if isinstance(error, BioclinError):
            message = str(error)
            return error if not kept or "--resume" in message else BioclinError(f"{error}; {kept}")
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return BioclinError(
                f"{self.out}: the disk is full. Nothing half made is left, finished parts are "
                "kept: make room, and go on with --resume"
            )
        return BioclinError(f"{error.filename or self.out}: {error.strerror or error}")
