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

    try:
        # Made with its mode: there is no moment in which others can read it.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(make_key() + "\n")
    except FileExistsError:
        raise BioclinError(
            f"{path}: exists already; a key that is overwritten is lost, so give another name"
        ) from None
    except OSError as error:
        raise BioclinError(f"{path}: the key cannot be written ({error.strerror})") from None
    typer.echo(f"key written to {path}", err=True)
