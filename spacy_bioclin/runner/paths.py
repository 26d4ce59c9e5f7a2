"""Decide where an output may go."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import BioclinError
from ..outputs import check_inputs, check_place


def find_audit(out: Path) -> Path:
    """Name the file that is beside every output."""
    return out.with_name(f"{out.name}.audit.json")


def check_output(
    source: Path,
    out: Path,
    others: Iterable[Path | None] = (),
    *,
    overwrite: bool,
    resume: bool,
    suffix: str | None = None,
    record: Path | None = None,
    beside: Sequence[Path] = (),
) -> None:
    """Refuse an output that would replace something, or has another form than the input.

    others (Iterable[Path | None]): Other inputs, None for one that was not given.
    resume (bool): Whether the user gave --resume. An output that is there already is then left to
        `is_finished`.
    suffix (str | None): Ending of the output, "" for a folder; None for the form of the input.
    record (Path | None): File about the run that is beside the output; None for the audit.
    beside (Sequence[Path]): Other files that are written beside the output.
    RAISES (BioclinError): The output is there already, has another form, or is in the input.
    """
    if out.name in ("", ".."):
        raise BioclinError(f"{out}: is the current folder or above it; give another OUT")
    audit = record or find_audit(out)
    is_folder = source.is_dir() if suffix is None else not suffix
    inputs = [source, *(path for path in others if path is not None)]
    for path in (audit, *beside, out):
        check_place(path)
        check_inputs(path, inputs)
    if source.is_dir() and source.resolve() in out.resolve().parents:
        raise BioclinError(f"{out}: is in the input {source}; give an OUT outside it")
    if suffix is None and not is_folder and out.suffix.lower() != source.suffix.lower():
        raise BioclinError(f"{out}: want the form of IN, an ending {source.suffix}")
    if suffix and out.suffix.lower() != suffix:
        raise BioclinError(f"{out}: want an ending {suffix}, or another form with --to")
    if os.path.lexists(out):
        if not overwrite:
            if resume:
                return
            raise BioclinError(f"{out}: exists already; give another name, or --overwrite")
        if out.is_dir() != is_folder:
            if suffix is None:
                raise BioclinError(f"{out}: want the form of IN: both folders, or both files")
            found, want = ("file", "folder") if is_folder else ("folder", "file")
            raise BioclinError(f"{out}: is a {found}, and the output is a {want}; give another")
        if out.is_dir() and not audit.exists():
            raise BioclinError(
                f"{out}: not an output of this command ({audit.name} is not beside it), so it is "
                "not replaced; remove it yourself, or give another name"
            )
    elif not (overwrite or resume):
        for path in (audit, *beside):
            if path.exists():
                raise BioclinError(f"{path}: exists already; give another OUT, or --overwrite")
