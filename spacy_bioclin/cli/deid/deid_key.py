"""`bioclin deid-key`: make a secret key for de-identification."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError


def main(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where the key goes")],
) -> None:
    """Make a secret key that only you can read. Anyone with this key can link notes to patients:
    store it separately, and keep it for new notes of the same patients."""
    from ...deid.secret import make_key
    from ...outputs import Output

    if os.path.lexists(path):
        raise BioclinError(
            f"{path}: exists already; a key that is overwritten is lost, so give another name"
        )
    if not path.parent.is_dir():
        raise BioclinError(f"{path}: the key cannot be written: there is no folder {path.parent}")
    Output(path, overwrite=False, private=True).write(make_key() + "\n")
    typer.echo(f"key written to {path}", err=True)
