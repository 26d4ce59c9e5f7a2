"""Decide where an output may go."""

import os
from collections.abc import Iterable
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
) -> None:
    """Refuse an output that would replace something, or has another form than the input.

    others (Iterable[Path | None]): Other inputs, None for one that was not given.
    resume (bool): Whether the user gave --resume.
    RAISES (BioclinError): The output is there already, has another form, or is in the input.
    """
    if out.name in ("", ".."):
        raise BioclinError(f"{out}: is the current folder or above it; give another OUT")
    audit = find_audit(out)
    inputs = [source, *(path for path in others if path is not None)]
    for path in (audit, out):
        check_place(path)
        check_inputs(path, inputs)
    if source.is_dir() and source.resolve() in out.resolve().parents:
        raise BioclinError(f"{out}: is in the input {source}; give an OUT outside it")
    if not source.is_dir() and out.suffix.lower() != source.suffix.lower():
        raise BioclinError(f"{out}: want the form of IN, an ending {source.suffix}")
    if os.path.lexists(out):
        if not overwrite:
            raise BioclinError(f"{out}: exists already; give another name, or --overwrite")
        if out.is_dir() != source.is_dir():
            raise BioclinError(f"{out}: want the form of IN: both folders, or both files")
        if out.is_dir() and not audit.exists():
            raise BioclinError(
                f"{out}: not an output of this command ({audit.name} is not beside it), so it is "
                "not replaced; remove it yourself, or give another name"
            )
    elif audit.exists() and not (overwrite or resume):
        raise BioclinError(f"{audit}: exists already; give another OUT, or --overwrite")
