"""Choose the form of an input by its suffix."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..errors import BioclinError
from .records import Columns, Form, JsonLines, TextFiles
from .tables import Parquet, SeparatedValues

FORMS: dict[str, Callable[[Path, Columns], Form]] = {
    ".txt": TextFiles,
    ".jsonl": JsonLines,
    ".csv": partial(SeparatedValues, usual=","),
    ".tsv": partial(SeparatedValues, usual="\t"),
    ".parquet": Parquet,
}


def open_form(path: Path, columns: Columns) -> Form:
    """Open the input.

    path (Path): A folder, or a file whose suffix tells its form.
    columns (Columns): Names of its columns.
    RETURNS (Form): Ready to be read.
    RAISES (BioclinError): There is no such file, its form is unknown, or a column is missing.
    """
    if path.is_dir():
        return TextFiles(path, columns)
    if path.suffix.lower() not in FORMS:
        raise BioclinError(
            f"{path}: ending {path.suffix!r}: want a folder, or one of {', '.join(FORMS)}"
        )
    if not path.is_file():
        raise BioclinError(f"{path}: no such file or folder")
    return FORMS[path.suffix.lower()](path, columns)
