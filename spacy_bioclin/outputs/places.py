"""Decide where an output may go: never over an input, nor over anything without --overwrite."""

import os
import re
import stat
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..errors import BioclinError

NAME_BYTES = 255  # of a file, on every usual disk
EXISTS = "exists already; give another name, or --overwrite"


def check_inputs(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input, by whatever name, or a folder that holds one.

    RAISES (BioclinError): It is, or does.
    """
    try:
        info = path.stat()
    except OSError:  # nothing is there, so no input is
        return
    real = Path(os.path.realpath(path))
    for source in inputs:
        held = stat.S_ISDIR(info.st_mode) and real in Path(os.path.realpath(source)).parents
        with suppress(OSError):  # its reader says so
            found = source.stat()
            held = held or (found.st_dev, found.st_ino) == (info.st_dev, info.st_ino)
        if held:
            raise BioclinError(f"{path}: is the input {source}, or holds it; give another name")


def check_place(path: Path) -> None:
    """Refuse a path where no file or folder can be made, before there is anything to write.

    RAISES (BioclinError): It is "-", a device or a pipe; its name is too long; or its folder is a
        file, or not to be written to.
    """
    if str(path) == "-":
        raise BioclinError("-: the output is not printed; give the name of a file")
    if "\0" in str(path):
        raise BioclinError("the name of the output holds a NUL character; give another name")
    if len(os.fsencode(path.name)) > NAME_BYTES:
        raise BioclinError(
            f"{path.name[:20]}…: a name of {len(os.fsencode(path.name))} bytes, and {NAME_BYTES} "
            "are possible; give a shorter one"
        )
    parent = Path(os.path.realpath(path.parent))
    with suppress(OSError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise BioclinError(f"{path}: is a pipe, socket or device; give the name of a file")
    if parent == Path("/dev") or Path("/proc") in (parent, *parent.parents):
        raise BioclinError(f"{path}: is in {parent}, for devices; give the name of a file")
    while not os.path.lexists(parent):
        parent = parent.parent
    if not parent.is_dir():
        raise BioclinError(f"{path}: cannot be made ({parent}: File exists); give another name")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise BioclinError(
            f"{path}: the folder {parent} may not be written to; give another name, or change "
            "its permissions"
        )


def check_output(
    path: Path,
    *,
    inputs: Iterable[Path] = (),
    others: Iterable[Path | None] = (),
    overwrite: bool,
    marker: str = "",
    only: str = "",
) -> None:
    """Refuse an output that would replace something, or cannot be written.

    path (Path): The file or folder to be made.
    inputs (Iterable[Path]): What the command reads. It is never overwritten, nor is a folder that
        holds it.
    others (Iterable[Path | None]): Other outputs of the command, None for one that is not wanted.
    overwrite (bool): Whether the user gave --overwrite.
    marker (str): For a folder: a file in every output of the command. A folder without it is never
        replaced, unless it is empty.
    only (str): For a folder: a regular expression for the names of all files of an output.
    RAISES (BioclinError): The output is an input, is there already, or is something else.
    """
    check_place(path)
    check_inputs(path, inputs)
    for other in others:
        if other is not None and _fold(other) in (_fold(path), *_fold(path).parents):
            raise BioclinError(
                f"{path}: is, or is in, another output of this command; give another name"
            )
    want_folder = bool(marker or only)
    if want_folder and Path(os.path.realpath(path)) in (Path.cwd(), *Path.cwd().parents):
        raise BioclinError(f"{path}: is the current folder or above it; give another name")
    if not os.path.lexists(path) or (want_folder and path.is_dir() and not any(path.iterdir())):
        return
    if path.is_dir() != want_folder:
        wanted, found = ("folder", "file") if want_folder else ("file", "folder")
        raise BioclinError(f"{path}: is a {found}, and the output is a {wanted}; give another name")
    if not overwrite:
        raise BioclinError(f"{path}: {EXISTS}")
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


def _fold(path: Path) -> Path:
    """Make paths equal that a disk may take for the same, as one without case does."""
    return Path(unicodedata.normalize("NFC", os.path.realpath(path)).casefold())
