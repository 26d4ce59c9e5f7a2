"""Read and write tables in the Parquet format."""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from ..errors import BioclinError, without_context
from .carried import Carried
from .records import UTF_8, Columns, Form, Record, Row, Unreadable, find_fault

ROWS_AT_A_TIME = 100
UNREADABLE = object()
TO_DROP = "leave its column out (with bioclin deid: --drop)"
JOINED_BYTES = 32 * 2**20  # a row group of the output


class ArrowValue(Carried):
    """A value that Python cannot hold as it is: nanoseconds, the year 10,000.

    array (pyarrow.Array): The value alone.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        pa, _ = import_pyarrow()
        try:
            text = array.cast(pa.string())[0].as_py()
        except Exception:  # of a type or a year that Arrow does not write
            text = str(array.view(pa.int64())[0])
        super().__init__(text)
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrowValue, (self.array,)


class Parquet(Form):
    """A .parquet file.

    Types and order of the columns are kept. Metadata of the file is not: it may hold PHI.
    """

    def __init__(self, path: Path, columns: Columns, encoding: str = UTF_8) -> None:
        super().__init__(path, columns, encoding)
        if self.encoding != UTF_8:
            raise BioclinError(f"--encoding {encoding}: the text of a Parquet file is in UTF-8")
        pa, _ = import_pyarrow()
        file = _open_parquet(path)
        names = file.schema_arrow.names
        fields = [(field.name, field.type) for field in file.schema_arrow]
        self.check_header(names, [path for name, type in fields for path in _paths(name, type)])
        known = {column for _, column in columns.known}
        # What is dropped is not even read: it may hold what Python cannot.
        self._read = [
            name
            for name, type in fields
            if name not in columns.drop or known.intersection(_paths(name, type))
        ]
        self.total = file.metadata.num_rows
        dated = {path.partition(".")[0] for path in columns.dates}
        text = file.schema_arrow.field(columns.text).type
        if not (pa.types.is_string(text) or pa.types.is_large_string(text)):
            raise BioclinError(f"{path}: column {columns.text!r} has type {text}, not string")
        self.schema = pa.schema(
            # A value in a date column that is not a date is removed.
            pa.field(field.name, field.type, field.nullable or field.name in dated)
            for field in file.schema_arrow
            if field.name not in columns.drop
        )
        self.types = {field.name: field.type for field in self.schema}
        self.encode = partial(encode_table, schema=self.schema)

    def count(self) -> int:
        """Count the rows, without reading them."""
        return self.total

    def read_only(self, names: Iterable[str]) -> None:
        """Leave out the columns that are not needed."""
        needed = set(names)
        self._read = [
            name
            for name in self.schema.names
            if any(name == each or each.startswith(f"{name}.") for each in needed)
        ]

    def make_strings(self, names: Iterable[str]) -> None:
        """Change the type of columns to string."""
        pa, _ = import_pyarrow()
        for name in names:
            at = self.schema.get_field_index(name)
            if at >= 0:
                self.schema = self.schema.set(at, pa.field(name, pa.string()))
        self.encode = partial(encode_table, schema=self.schema)

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each row as a record."""
        self.done = 0
        with _open_parquet(self.path) as file:
            batches = file.iter_batches(batch_size=ROWS_AT_A_TIME, columns=self._read)
            while (batch := _next_batch(batches, self.path)) is not None:
                for row in _to_rows(batch):
                    self.done += 1
                    place = f"row {self.done:,}"
                    if isinstance(row, str):
                        reason = f"column {row!r} has a value that cannot be read; {TO_DROP}"
                    else:
                        reason = find_fault(row, self.columns)
                    if isinstance(row, str) or reason:
                        error = BioclinError(f"{self.path}, {place}: {reason}")
                        yield Unreadable(self.done, place, error)
                    else:
                        yield Record(self.done, place, row)

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the parts as row groups of about `JOINED_BYTES`."""
        # A Python file, because it raises errors of the system ("disk full"), not of Arrow.
        with target.open("wb") as file:
            with GroupWriter(file, self.schema) as writer:
                for part in parts:
                    writer.add(part)
            file.flush()
            os.fsync(file.fileno())


class GroupWriter:
    """Write tables to a Parquet file, in row groups of about `JOINED_BYTES`.

    file (IO[bytes]): Open for writing. It is not closed.
    schema (pyarrow.Schema): That of all tables.
    """

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        _, pq = import_pyarrow()
        self._writer = pq.ParquetWriter(file, schema)
        self._waiting: list[Any] = []
        self.waiting_bytes = self.n_groups = 0

    def __enter__(self) -> "GroupWriter":
        return self

    def __exit__(self, kind: Any, *exception: Any) -> None:
        if kind is None and self._waiting:
            self._write()
        self._writer.close()

    def add(self, part: bytes) -> None:
        """Add a table that `encode_table` wrote."""
        pa, _ = import_pyarrow()
        table = pa.ipc.open_file(part).read_all()
        self._waiting.append(table)
        self.waiting_bytes += table.nbytes
        if self.waiting_bytes >= JOINED_BYTES:
            self._write()

    def _write(self) -> None:
        pa, _ = import_pyarrow()
        self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting, self.waiting_bytes = [], 0
        self.n_groups += 1


def encode_table(rows: Sequence[Row], *, schema: Any) -> bytes:
    """Write rows as an Arrow file, which keeps all types."""
    pa, _ = import_pyarrow()
    sink = io.BytesIO()
    columns = [_to_array([row[field.name] for row in rows], field) for field in schema]
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return sink.getvalue()


@without_context()
def _to_array(values: list[Any], field: Any) -> Any:
    """Convert the values of a column.

    RAISES (BioclinError): One is not of its type: a date that was shifted may be too late for it.
    """
    pa, _ = import_pyarrow()
    try:
        if not any(isinstance(value, ArrowValue) for value in values):
            return pa.array(values, type=field.type)
        return pa.concat_arrays(
            value.array if isinstance(value, ArrowValue) else pa.array([value], type=field.type)
            for value in values
        )
    except Exception as error:  # Arrow's messages quote the value
        raise BioclinError(
            f"column {field.name!r}: a value cannot be written as {field.type} "
            f"({type(error).__name__}); {TO_DROP}"
        ) from None


def _paths(path: str, type: Any) -> list[str]:
    """List the paths of a column's fields."""
    pa, _ = import_pyarrow()
    if pa.types.is_struct(type):
        inner = [type.field(i) for i in range(type.num_fields)]
        return [p for field in inner for p in _paths(f"{path}.{field.name}", field.type)]
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return _paths(path, type.value_type)
    return [path]


def _to_rows(batch: Any) -> Iterator[Row | str]:
    """Convert a batch to rows; instead of one, the name of a column that cannot be read in it."""
    names = batch.schema.names
    columns = [_to_values(column) for column in batch.columns]
    for values in zip(*columns, strict=True) if columns else ():
        bad = [name for name, value in zip(names, values, strict=True) if value is UNREADABLE]
        yield bad[0] if bad else dict(zip(names, values, strict=True))


def _to_values(column: Any) -> list[Any]:
    """Convert a column: what would not come back as it was is an `ArrowValue`."""
    pa, _ = import_pyarrow()
    try:
        values = column.to_pylist()
        if _is_plain(column.type) or _comes_back(values, column):
            return values
    except Exception:  # of year 10,000, nanoseconds, a string that is not UTF-8
        values = []
    if len(column) > 1:
        return [value for i in range(len(column)) for value in _to_values(column.slice(i, 1))]
    if pa.types.is_nested(column.type):
        return values if "nan" in str(values) else [UNREADABLE]
    kinds = (pa.types.is_temporal, pa.types.is_decimal)
    return [ArrowValue(column)] if any(is_kind(column.type) for is_kind in kinds) else [UNREADABLE]


def _is_plain(type: Any) -> bool:
    """Check whether all values of a type come back as they were."""
    pa, _ = import_pyarrow()
    is_number = pa.types.is_integer(type) or pa.types.is_float32(type) or pa.types.is_float64(type)
    is_text = pa.types.is_string(type) or pa.types.is_large_string(type)
    return is_number or is_text or pa.types.is_boolean(type) or pa.types.is_null(type)


def _comes_back(values: list[Any], column: Any) -> bool:
    pa, _ = import_pyarrow()
    again = pa.array(values, type=column.type)
    if pa.types.is_dictionary(column.type):
        again, column = again.dictionary_decode(), column.dictionary_decode()
    return again.equals(column)


@without_context()
def _next_batch(batches: Iterator[Any], path: Path) -> Any:
    try:
        return next(batches, None)
    except Exception as error:  # Arrow has many kinds, and its messages quote values
        raise _broken(path, error) from None


@without_context()
def _open_parquet(path: Path) -> Any:
    _, pq = import_pyarrow()
    try:
        return pq.ParquetFile(path)
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> BioclinError:
    return BioclinError(
        f"{path}: cannot be read as Parquet ({type(error).__name__}); get or make the file again"
    )


def import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow.

    RETURNS (tuple): pyarrow, and pyarrow.parquet.
    RAISES (BioclinError): It is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise BioclinError(
            "Parquet files need pyarrow: pip install 'spacy-bioclin[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet
