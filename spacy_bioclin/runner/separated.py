"""Read and write tables with a header as text: CSV and TSV.

A quotation mark that is not closed, or not doubled, hides where the next record begins: what
follows may be the rest of a note. So after such a record, lines are skipped and counted one by one
until one looks like the records before in every column beside the note.
"""

import csv
import io
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ..errors import BioclinError
from .records import (
    UTF_8,
    Columns,
    Form,
    Record,
    Row,
    Unreadable,
    find_coding_fault,
    find_fault,
    read_lines,
)

DELIMITERS = ",;\t|"
# The csv module's own limit is 131,072, less than a long note. Without a limit, a quotation mark
# that is never closed would read the rest of the file into memory.
MAX_FIELD_CHARS = 10_000_000
MAX_SHAPES = 1000
NOT_CSV = "not CSV (a quotation mark that is not closed or not doubled?)"
IN_DOUBT = "perhaps the rest of a record before it, whose quotation marks do not match"
_RUNS = re.compile(r"(?P<digits>\d+)|(?P<letters>[^\W\d_]+)|\s+")


class Lines:
    """Lines of a file, which can be given back to be read again.

    used (list[tuple[int, str]]): Numbers and lines since the last `start`.
    """

    def __init__(self, lines: Iterable[tuple[int, str]]) -> None:
        self._lines = iter(lines)
        self._again: deque[tuple[int, str]] = deque()
        self.used: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        numbered = self._again.popleft() if self._again else next(self._lines)
        self.used.append(numbered)
        return numbered[1]

    def start(self) -> None:
        """Begin a new record."""
        self.used = []

    def give_back(self) -> None:
        """Read again all lines of the record but the first."""
        self._again.extendleft(reversed(self.used[1:]))


class SeparatedValues(Form):
    """A .csv or .tsv file with a header.

    The delimiter is the first with which the header has the text column: the usual one, or others.
    """

    def __init__(self, path: Path, columns: Columns, encoding: str = UTF_8, *, usual: str) -> None:
        super().__init__(path, columns, encoding)
        csv.field_size_limit(MAX_FIELD_CHARS)
        first = next((line for _, line in read_lines(self)), "")
        best: list[str] = []
        for delimiter in (usual, *DELIMITERS):
            header = self._read_header(delimiter)
            if columns.text in header or len(header) > len(best):
                self.delimiter, best = delimiter, header
            if columns.text in header:
                break
        self.header = best
        self.check_header(best)
        kept = [name for name in best if name not in columns.drop]
        end = "\r\n" if first.endswith("\r\n") else "\n"
        self.encode = partial(encode_rows, header=kept, delimiter=self.delimiter, end=end)
        self._head = encode_line(kept, self.delimiter, end)

    def _read_header(self, delimiter: str) -> list[str]:
        lines = (line for _, line in read_lines(self))
        try:
            header = next(csv.reader(lines, delimiter=delimiter), [])
            fault = find_coding_fault("".join(header), self.encoding)
        except csv.Error:
            header, fault = [], "the header is not CSV"
        if not fault and not header:
            fault = "no header with the names of the columns"
        if fault:
            raise BioclinError(f"{self.path}, line 1: {fault}")
        return header

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each row as a record."""
        lines = Lines(read_lines(self))
        next(csv.reader(lines, delimiter=self.delimiter))
        shapes: defaultdict[str, set[str]] = defaultdict(set)
        in_doubt = False
        number = 0
        while True:
            lines.start()
            values: list[str] = []
            reason = ""
            try:
                values = next(csv.reader(lines, delimiter=self.delimiter, strict=True))
            except StopIteration:
                return
            except csv.Error:
                reason = NOT_CSV
            if not values and not reason:
                continue  # an empty line
            number += 1
            place = f"line {lines.used[0][0]:,}"
            row = dict(zip(self.header, values, strict=False))
            fault = reason
            if not reason and len(values) != len(self.header):
                fault = f"{len(values)} columns, but the header has {len(self.header)}"
            if reason or (fault and len(lines.used) > 1):
                in_doubt = True
            elif in_doubt and (fault or not self._is_like(row, shapes)):
                fault = IN_DOUBT
            fault = fault or find_coding_fault("".join(values), self.encoding)
            fault = fault or find_fault(row, self.columns)
            if in_doubt and fault:
                lines.give_back()
            if fault:
                error = BioclinError(f"{self.path}, {place}: {fault}")
                yield Unreadable(number, place, error)
            else:
                in_doubt = False
                for name, value in row.items():
                    if name != self.columns.text and len(shapes[name]) < MAX_SHAPES:
                        shapes[name].add(find_shape(value))
                yield Record(number, place, row)

    def _is_like(self, row: Row, shapes: dict[str, set[str]]) -> bool:
        """Check whether the values beside the note have the shapes of those seen before."""
        beside = (name for name in row if name != self.columns.text)
        return all(find_shape(row[name]) in shapes.get(name, ()) for name in beside)

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the header, then the parts."""

        def all_parts() -> Iterator[bytes]:
            yield self._head
            yield from parts

        super().join(all_parts(), target)


def find_shape(value: str) -> str:
    """Replace digits by one 9, letters by one a, and white space by one blank."""
    return _RUNS.sub(
        lambda run: "9" if run["digits"] else "a" if run["letters"] else " ", value[:200]
    )


def encode_rows(rows: Sequence[Row], *, header: Sequence[str], delimiter: str, end: str) -> bytes:
    """Write rows as lines of a table, without its header."""
    lines = (encode_line([row[name] for name in header], delimiter, end) for row in rows)
    return b"".join(lines)


def encode_line(values: Sequence[object], delimiter: str, end: str) -> bytes:
    """Write a line of a table.

    The csv module quotes only those of CR and LF that are in its line end, so it gets both.
    """
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\r\n").writerow(values)
    return (line.getvalue().removesuffix("\r\n") + end).encode("utf-8")
