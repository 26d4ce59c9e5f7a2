"""Choose the form of an input by its suffix."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..errors import BioclinError
from ..files import check_regular
from .columns import Columns
from .parquet import Parquet
from .records import UTF_8, Form, JsonLines, TextFiles
from .separated import SeparatedValues

FORMS: dict[str, Callable[[Path, Columns, str], Form]] = {
    ".txt": TextFiles,
    ".jsonl": JsonLines,
    ".csv": partial(SeparatedValues, usual=","),
    ".tsv": partial(SeparatedValues, usual="\t"),
    ".parquet": Parquet,
}


def open_form(path: Path, columns: Columns, encoding: str = UTF_8) -> Form:
    """Open the input.

    path (Path): A folder, or a file whose suffix tells its form.
    columns (Columns): Names of its columns.
    encoding (str): Encoding of its text.
    RETURNS (Form): Ready to be read.
    RAISES (BioclinError): There is no such file, its form is unknown, or a column is missing.
    """
    if path.is_dir():
        return TextFiles(path, columns, encoding)
    if path.suffix.lower() not in FORMS:
        raise BioclinError(
            f"{path}: ending {path.suffix!r}: want a folder, or one of {', '.join(FORMS)}"
        )
    check_regular(path)
    return FORMS[path.suffix.lower()](path, columns, encoding)
