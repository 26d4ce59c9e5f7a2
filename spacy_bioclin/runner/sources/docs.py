"""Docs of spaCy as an input, of which only the text is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...corpora.docbin import list_shards, read_texts
from ...errors import BioclinError
from ..columns import TEXT, Columns
from ..records import UTF_8, Form, Record, Unreadable, find_fault, fingerprint_files

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
        self.id_column = ID

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each Doc as a record."""
        self.done = number = 0
        for shard in self.shards:
            for id, text in read_texts(shard):
                number += 1
                place = f"Doc {number:,}"
                row: dict[str, Any] = {ID: id, TEXT: text}
                if fault := find_fault(row, self.columns):
                    error = BioclinError(f"{self.path}, {place}: {fault}")
                    yield Unreadable(number, place, error)
                else:
                    yield Record(number, place, row)
            self.done += shard.stat().st_size

    def fingerprint(self) -> str:
        """Hash names, sizes and times of last change of all files."""
        return fingerprint_files(self.shards)
