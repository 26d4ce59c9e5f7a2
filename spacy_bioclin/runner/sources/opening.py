"""Open the input of `bioclin run`."""

from pathlib import Path

from ...corpora.docbin import SUFFIX
from ...errors import BioclinError
from ..columns import Columns
from ..forms import open_form
from ..records import UTF_8, Form
from .docs import DocsForm
from .query import Query
from .shards import ENDINGS, Shards, list_tables

SQL = ".sql"


def open_notes(
    path: Path,
    columns: Columns,
    encoding: str = UTF_8,
    *,
    database: str | None = None,
    key: str | None = None,
) -> Form:
    """Open an input of `bioclin run`.

    path (Path): A file or folder.
    columns (Columns): Columns with the note and its id, and those that are kept.
    database (str | None): For a .sql file: the URL of the database, see `read_url`.
    key (str | None): For a .sql file: the column by which the rows are sorted.
    RAISES (BioclinError): There is no such file, its form is unknown, or a column is missing.
    """
    if path.suffix.lower() == SQL:
        if database is None or key is None:
            raise BioclinError(
                f"{path}: a query needs --database with the URL of the database, and --key with a "
                "column that is unique"
            )
        return Query(path, columns, encoding, database=database, key=key)
    if database is not None or key is not None:
        option = "--key" if database is None else "--database"
        raise BioclinError(f"{option}: only for a query; give as IN a {SQL} file with one SELECT")
    if path.suffix == SUFFIX and not path.is_dir():
        return DocsForm(path, columns, encoding)
    if path.is_dir() and not _holds(path, ".txt"):
        return _open_folder(path, columns, encoding)
    form = open_form(path, columns, encoding)
    form.read_only(columns.named)
    return form


def _open_folder(path: Path, columns: Columns, encoding: str) -> Form:
    """Open a folder without text files."""
    if path.suffix == SUFFIX or _holds(path, SUFFIX):
        return DocsForm(path, columns, encoding)
    shards, n_others = list_tables(path)
    if not shards:
        raise BioclinError(
            f"{path}: no .txt file in this folder, nor {', '.join((*ENDINGS, SUFFIX))}"
        )
    form = Shards(path, columns, encoding, shards=shards)
    form.left_out = n_others
    return form


def _holds(folder: Path, ending: str) -> bool:
    return next(folder.rglob(f"*{ending}"), None) is not None
