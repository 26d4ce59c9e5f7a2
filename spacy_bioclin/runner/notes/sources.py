"""The forms of the input of `bioclin run`: those of `bioclin deid`, and Docs of spaCy."""

from collections.abc import Iterator
from pathlib import Path

from ...corpora.docbin import SUFFIX, list_shards, read_texts
from ...errors import BioclinError
from ..columns import FILE, TEXT, Columns
from ..forms import open_form
from ..records import UTF_8, Form, Record, TextFiles, Unreadable, find_fault, fingerprint_files

ID = "id"


class DocsForm(Form):
    """A .spacy file, or a folder of them: one note for each Doc, of which only the text is read."""

    paths = (ID, TEXT)

    def __init__(self, path: Path, columns: Columns, encoding: str = UTF_8) -> None:
        if not path.exists():
            raise BioclinError(f"{path}: no such file or folder")
        super().__init__(path, columns, encoding)
        if columns != Columns():
            raise BioclinError(
                f"{path}: Docs have no columns: leave out the options that name columns"
            )
        self.shards = list_shards(path)
        self.total = sum(shard.stat().st_size for shard in self.shards)

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each Doc as a record."""
        self.done = number = 0
        for shard in self.shards:
            for id, text in read_texts(shard):
                number += 1
                place = f"Doc {number:,}"
                row = {ID: id, TEXT: text}
                if fault := find_fault(row, self.columns):
                    error = BioclinError(f"{self.path}, {place}: {fault}")
                    yield Unreadable(number, place, error)
                else:
                    yield Record(number, place, row)
            self.done += shard.stat().st_size

    def fingerprint(self) -> str:
        """Hash names, sizes and times of last change of all files."""
        return fingerprint_files(self.shards)


def open_notes(path: Path, columns: Columns, encoding: str = UTF_8) -> Form:
    """Open an input of `bioclin run`.

    path (Path): A file or folder.
    columns (Columns): Columns with the note and its id, and those that are kept.
    RAISES (BioclinError): There is no such file, its form is unknown, or a column is missing.
    """
    if path.suffix == SUFFIX or (path.is_dir() and not _has_texts(path) and _has_docs(path)):
        return DocsForm(path, columns, encoding)
    form = open_form(path, columns, encoding)
    form.read_only(columns.named)
    return form


def find_id_column(form: Form) -> str | None:
    """Find the column with the id of each note; None if its number is the id."""
    if isinstance(form, TextFiles):
        return FILE
    return ID if isinstance(form, DocsForm) else form.columns.id


def _has_texts(folder: Path) -> bool:
    return next(folder.rglob("*.txt"), None) is not None


def _has_docs(folder: Path) -> bool:
    return next(folder.rglob(f"*{SUFFIX}"), None) is not None
