"""Where an output may go."""

import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import BioclinError


def check_inputs(out: Path, inputs: Iterable[Path]) -> None:
    """RAISES (BioclinError): To write `out` would change one of the inputs, by whatever name."""
    for path in inputs:
        same = out.exists() and path.exists() and out.samefile(path)  # hard links too
        if same or out.resolve() == path.resolve():
            raise BioclinError(f"{out}: this is {path} itself (or a link to it); give another OUT")
        if path.is_dir() and path.resolve() in out.resolve().parents:
            raise BioclinError(f"{out}: lies in {path}; give an OUT outside it")
        if out.resolve() in path.resolve().parents:
            raise BioclinError(f"{out}: {path} lies in it; give another OUT")


def check_output(source: Path, out: Path, audit: Path, *, overwrite: bool, resume: bool) -> None:
    """RAISES (BioclinError): The output is there already, or has another form than the input."""
    if not source.is_dir() and out.suffix.lower() != source.suffix.lower():
        raise BioclinError(f"{out}: want the form of IN, an ending {source.suffix}")
    if os.path.lexists(out):
        if not overwrite:
            raise BioclinError(f"{out}: exists already; give another name, or --overwrite")
        if out.is_dir() != source.is_dir():
            raise BioclinError(f"{out}: want the form of IN: both folders, or both files")
        if out.is_dir() and not audit.exists():
            raise BioclinError(
                f"{out}: no output of this command ({audit.name} is not beside it), so it is not "
                "replaced; remove it yourself, or give another name"
            )
    elif audit.exists() and not (overwrite or resume):
        raise BioclinError(f"{audit}: exists already; give another OUT, or --overwrite")
