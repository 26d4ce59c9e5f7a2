"""Read and write tables with a header: CSV, TSV and Parquet."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import BioclinError
from .records import Columns, Form, Record, Row, Unreadable, find_fault, read_lines

DELIMITERS = ",;\t|"
# The csv module's own limit is 131,072, less than a long note. Without a limit, a quotation mark
# that is never closed would read the rest of the file into memory.
MAX_FIELD_CHARS = 100_000_000
ROWS_AT_A_TIME = 100
JOINED_BYTES = 32 * 2**20  # a row group of the output


class SeparatedValues(Form):
    """A .csv or .tsv file with a header.

    The delimiter is the first with which the header has the text column: the usual one, or others.
    """

    def __init__(self, path: Path, columns: Columns, *, usual: str) -> None:
        super().__init__(path, columns)
        csv.field_size_limit(MAX_FIELD_CHARS)
        first = next((line for _, line in read_lines(self)), b"")
        for self.delimiter in (usual, *DELIMITERS, usual):
            header = _read_header(self, self.delimiter)
            if columns.text in header:
                break
        self.check_header(header)
        kept = [name for name in header if name not in columns.drop]
        end = "\r\n" if first.endswith(b"\r\n") else "\n"
        self.encode = partial(encode_rows, header=kept, delimiter=self.delimiter, end=end)
        self._head = encode_line(kept, self.delimiter, end)

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each row as a record."""
        assert self.header is not None
        rows = csv.reader(_decode(self), delimiter=self.delimiter, strict=True)
        next(rows)
        number = 0
        while True:
            line = rows.line_num + 1
            values: list[str] = []
            reason = ""
            try:
                values = next(rows)
            except StopIteration:
                return
            except csv.Error:
                reason = "not CSV (a quotation mark that is not closed or not doubled?)"
            if not values and not reason:
                continue  # an empty line
            number += 1
            place = f"line {line:,}"
            row = dict(zip(self.header, values, strict=False))
            reason = reason or self._find_fault(values) or find_fault(row, self.columns)
            if reason:
                error = BioclinError(f"{self.path}, {place}: {reason}")
                yield Unreadable(number, place, error)
            else:
                yield Record(number, place, row)

    def _find_fault(self, values: list[str]) -> str:
        assert self.header is not None
        if len(values) != len(self.header):
            return f"{len(values)} columns, but the header has {len(self.header)}"
        try:
            "".join(values).encode("utf-8")
        except UnicodeEncodeError:
            return "not UTF-8"
        return ""

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the header, then the parts."""

        def all_parts() -> Iterator[bytes]:
            yield self._head
            yield from parts

        super().join(all_parts(), target)


def _decode(form: Form) -> Iterator[str]:
    """Read lines; bytes that are not UTF-8 become lone surrogates.

    Whole rows, which may span several lines, are checked for those later.
    """
    for number, line in read_lines(form):
        yield line.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape")


def _read_header(form: Form, delimiter: str) -> list[str]:
    try:
        header = next(csv.reader(_decode(form), delimiter=delimiter), [])
        "".join(header).encode("utf-8")
    except (csv.Error, UnicodeEncodeError):
        raise BioclinError(f"{form.path}, line 1: the header is not CSV in UTF-8") from None
    if not header:
        raise BioclinError(f"{form.path}, line 1: no header with the names of the columns")
    return header


def encode_rows(rows: Sequence[Row], *, header: Sequence[str], delimiter: str, end: str) -> bytes:
    """Write rows as lines of a table, without its header."""
    lines = (encode_line([row[name] for name in header], delimiter, end) for row in rows)
    return b"".join(lines)


def encode_line(values: Sequence[str], delimiter: str, end: str) -> bytes:
    """Write a line of a table.

    The csv module quotes only those of CR and LF that are in its line end, so it gets both.
    """
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\r\n").writerow(values)
    return (line.getvalue().removesuffix("\r\n") + end).encode("utf-8")


class Parquet(Form):
    """A .parquet file.

    Types and order of the columns are kept. Metadata of the file is not: it may hold PHI.
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path, columns)
        pa, _ = _import_pyarrow()
        file = _open_parquet(path)
        self.check_header(file.schema_arrow.names)
        self.total = file.metadata.num_rows
        text = file.schema_arrow.field(columns.text).type
        if not (pa.types.is_string(text) or pa.types.is_large_string(text)):
            raise BioclinError(f"{path}: column {columns.text!r} has type {text}, not string")
        self.schema = pa.schema(
            pa.field(field.name, field.type, field.nullable)
            for field in file.schema_arrow
            if field.name not in columns.drop
        )
        self.encode = partial(encode_table, schema=self.schema)

    def make_strings(self, names: Iterable[str]) -> None:
        """Change the type of columns to string."""
        pa, _ = _import_pyarrow()
        for name in names:
            at = self.schema.get_field_index(name)
            if at >= 0:
                self.schema = self.schema.set(at, pa.field(name, pa.string()))
        self.encode = partial(encode_table, schema=self.schema)

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each row as a record."""
        self.done = 0
        with _open_parquet(self.path) as file:
            batches = file.iter_batches(batch_size=ROWS_AT_A_TIME)
            while (batch := _next_batch(batches, self.path)) is not None:
                for row in _to_rows(batch):
                    self.done += 1
                    place = f"row {self.done:,}"
                    reason = (
                        "a value that Python cannot hold (not UTF-8, or nanoseconds); --drop leaves"
                        " its column out"
                        if row is None
                        else find_fault(row, self.columns)
                    )
                    if row is None or reason:
                        error = BioclinError(f"{self.path}, {place}: {reason}")
                        yield Unreadable(self.done, place, error)
                    else:
                        yield Record(self.done, place, row)

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the parts as row groups of about `JOINED_BYTES`."""
        pa, pq = _import_pyarrow()
        # A Python file, because it raises errors of the system ("disk full"), not of Arrow.
        with target.open("wb") as file:
            with pq.ParquetWriter(file, self.schema) as writer:
                waiting = []
                size = 0
                for part in parts:
                    waiting.append(pa.ipc.open_file(part).read_all())
                    size += waiting[-1].nbytes
                    if size >= JOINED_BYTES:
                        writer.write_table(pa.concat_tables(waiting))
                        waiting, size = [], 0
                if waiting:
                    writer.write_table(pa.concat_tables(waiting))
            file.flush()
            os.fsync(file.fileno())


def encode_table(rows: Sequence[Row], *, schema: Any) -> bytes:
    """Write rows as an Arrow file, which keeps all types."""
    pa, _ = _import_pyarrow()
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))
    return sink.getvalue()


def _to_rows(batch: Any) -> list[Row | None]:
    """Convert a batch to rows, None for a row with a value that Python cannot hold."""
    try:
        return batch.to_pylist()
    except ValueError:
        if batch.num_rows == 1:
            return [None]
        return [row for i in range(batch.num_rows) for row in _to_rows(batch.slice(i, 1))]


def _next_batch(batches: Iterator[Any], path: Path) -> Any:
    try:
        return next(batches, None)
    except (OSError, ValueError) as error:  # Arrow's errors are some of these
        raise _broken(path, error) from None


def _open_parquet(path: Path) -> Any:
    _, pq = _import_pyarrow()
    try:
        return pq.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> BioclinError:
    return BioclinError(
        f"{path}: cannot be read as Parquet ({type(error).__name__}); get or make the file again"
    )


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise BioclinError(
            "Parquet files need pyarrow: pip install 'spacy-bioclin[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet
