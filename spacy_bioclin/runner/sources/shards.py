"""A folder of tables with the same columns, as Spark and others write them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...errors import BioclinError
from ...files import NOT_REGULAR, walk_files
from ..columns import Columns
from ..forms import open_form
from ..records import UTF_8, Form, Record, Unreadable, fingerprint_files

ENDINGS = (".jsonl", ".csv", ".tsv", ".parquet")
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class Shards(Form):
    """A folder of .jsonl, .csv, .tsv or .parquet files, in the order of their paths.

    A folder inside that is named KEY=VALUE gives all rows below it a column KEY.
    """

    def __init__(
        self, path: Path, columns: Columns, encoding: str = UTF_8, *, shards: Sequence[Path]
    ) -> None:
        """Open every file once, so that one with other columns is found before the run.

        shards (Sequence[Path]): See `list_tables`.
        RAISES (BioclinError): A file cannot be read, a column that was named is missing in one, or
            has another type than in the first.
        """
        super().__init__(path, columns, encoding)
        self.shards = list(shards)
        self.total = 0
        first = ""
        for number, shard in enumerate(self.shards):
            form = self._open(shard)
            self.total += form.total
            types = {name: form.types[name] for name in columns.keep if name in form.types}
            if number == 0:
                self.types, first = types, self._name(shard)
            for name, type in types.items():
                if type != self.types.get(name, type):
                    raise BioclinError(
                        f"{shard}: column {name!r} has type {type}, but {self.types[name]} in "
                        f"{first}; give the files one type, or do not --keep it"
                    )

    def _open(self, shard: Path) -> Form:
        """Open a file, without the columns that its folders give."""
        keep = self.columns.keep - set(self._find_partition(shard))
        form = open_form(shard, self.columns._replace(keep=keep), self.encoding)
        form.read_only(form.columns.named)
        return form

    def _find_partition(self, shard: Path) -> dict[str, Any]:
        """Find the columns that are kept and that the folders around a file give."""
        pairs = [name.partition("=") for name in shard.relative_to(self.path).parts[:-1]]
        values = {unquote(key): unquote(value) for key, sign, value in pairs if sign}
        return {
            key: None if value == NULL_PARTITION else value
            for key, value in values.items()
            if key in self.columns.keep
        }

    def _name(self, shard: Path) -> str:
        """Name a file in the folder."""
        name = shard.relative_to(self.path).as_posix()
        return name.encode("utf-8", "replace").decode("utf-8")

    def read(self) -> Iterator[Record | Unreadable]:
        """Read the rows of all files, numbered through."""
        self.done = number = before = 0
        for shard in self.shards:
            form, name = self._open(shard), self._name(shard)
            around = self._find_partition(shard)
            for each in form.read():
                number += 1
                self.done = before + form.done
                place = f"{name}, {each.place}"
                if isinstance(each, Record):
                    yield Record(number, place, {**each.row, **around})
                else:
                    yield Unreadable(number, place, each.error)
            before += form.total

    def count(self) -> int:
        """Count the rows of all files."""
        return sum(self._open(shard).count() for shard in self.shards)

    def fingerprint(self) -> str:
        """Hash names, sizes and times of last change of all files."""
        return fingerprint_files(self.shards)


def list_tables(folder: Path) -> tuple[list[Path], int]:
    """List the tables in a folder, at any depth, in the order of their paths.

    Names that begin with "_" or "." are left out, as Spark does: they are not data.

    RETURNS (tuple[list[Path], int]): The tables, and the number of other files.
    RAISES (BioclinError): They are of several kinds, or one cannot be read.
    """
    found, n_others = [], 0
    for path, fault in walk_files(folder, lambda path: not path.name.startswith((".", "_"))):
        if path.suffix.lower() not in ENDINGS and fault in ("", NOT_REGULAR):
            n_others += 1
        elif fault:
            raise BioclinError(f"{path}: {fault}")
        elif not any(name.startswith((".", "_")) for name in path.relative_to(folder).parts):
            found.append(path)
    kinds = sorted({path.suffix.lower() for path in found})
    if len(kinds) > 1:
        raise BioclinError(
            f"{folder}: has {' and '.join(kinds)} files; put each kind in a folder of its own"
        )
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix()), n_others
