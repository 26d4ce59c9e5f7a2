"""Read tables: CSV and TSV with a header, and JSON lines."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import BioclinError
from ...settings import find_nearest
from ..files import BOM, read_text

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = ".jsonl"
# The csv module's own limit is 131,072, less than a long note.
MAX_FIELD_CHARS = 10_000_000
# What can be shown of a first row, which may be data: it is short, and has at most three digits.
COLUMN_NAME = re.compile(r"(?!(?:.*\d){4})\w+(?:[ _./#-]\w+){0,4}")


def read_rows(
    path: Path, columns: Sequence[str], *, plain_quotes: bool = False
) -> Iterator[tuple[int, dict[str, Any] | BioclinError]]:
    """Read the rows of a .csv, .tsv or .jsonl file in UTF-8.

    columns (Sequence[str]): Columns that the table must have. The first row of CSV and TSV names
        all columns.
    plain_quotes (bool): In CSV and TSV, quotation marks are characters like others.
    YIELDS (tuple): Line where a row begins, and the values of its columns, or what is wrong with
        it.
    RAISES (BioclinError): The file cannot be read, is of another format, or lacks a column.
    """
    suffix = path.suffix.lower()
    if suffix != JSON_LINES and suffix not in DELIMITERS:
        raise BioclinError(f"{path}: the name of a table has to end in .csv, .tsv or .jsonl")
    content = read_text(path).removeprefix(BOM)
    if suffix == JSON_LINES:
        yield from _read_json_lines(path, content, columns)
    else:
        quoting = csv.QUOTE_NONE if plain_quotes else csv.QUOTE_MINIMAL
        yield from _read_separated(path, content, columns, DELIMITERS[suffix], quoting)


def _read_separated(
    path: Path, content: str, columns: Sequence[str], delimiter: str, quoting: Any
) -> Iterator[tuple[int, dict[str, Any] | BioclinError]]:
    csv.field_size_limit(MAX_FIELD_CHARS)
    file = io.StringIO(content, newline="")
    reader = csv.reader(file, delimiter=delimiter, quoting=quoting, strict=True)
    header: list[str] | None = None
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error:
            raise BioclinError(
                f"{path}, line {line}: a quotation mark that is not closed or not doubled, or a "
                f"cell of more than {MAX_FIELD_CHARS:,} characters; --plain-quotes reads quotation "
                "marks as characters like others"
            ) from None
        if cells is None:
            break
        if cells and header is None:
            header = [cell.strip() for cell in cells]
            _check_columns(f"{path}, line {line}: ", header, columns)
        elif cells and header is not None:
            found: dict[str, Any] | BioclinError = dict(zip(header, cells, strict=False))
            if len(cells) != len(header):
                found = BioclinError(f"{len(cells)} columns, but the header has {len(header)}")
            yield line, found
        line = reader.line_num + 1
    if header is None:
        raise BioclinError(f"{path}: empty; want a row with the names of the columns, and rows")


def _read_json_lines(
    path: Path, content: str, columns: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any] | BioclinError]]:
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            yield number, BioclinError("not a JSON object")
            continue
        try:
            _check_columns("", list(values), columns)
        except BioclinError as error:
            yield number, error
        else:
            yield number, values


def _check_columns(where: str, header: Sequence[str], columns: Sequence[str]) -> None:
    """Check that a table has the columns, each once.

    RAISES (BioclinError): It has not.
    """
    for name in columns:
        if name not in header:
            there = f"{find_nearest(name, header)}there are {', '.join(header)}"
            # It may hold text of notes.
            if not all(map(COLUMN_NAME.fullmatch, header)):
                there = "want a first row with the names of the columns, but it seems to be data"
            raise BioclinError(f"{where}no column {name!r}; {there}")
        if header.count(name) > 1:
            raise BioclinError(f"{where}{header.count(name)} columns are named {name!r}")
