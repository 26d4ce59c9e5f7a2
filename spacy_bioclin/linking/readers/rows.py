"""Rows of a terminology: named columns of release files, and the rows that are left out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ...errors import BioclinError
from ..kb.concepts import Concept, SkipReport, wrong_id
from .lines import read_lines

R = TypeVar("R")
# This many wrong rows before the first right one mean that the file has another format.
MAX_WRONG = 100


class SkipError(Exception):
    """A row is to be left out.

    reason (str): Why, for the report.
    n (int): How many lines of the file that is.
    """

    def __init__(self, reason: str, n: int = 1) -> None:
        super().__init__(reason)
        self.n = n


def parse_rows(
    rows: Iterable[tuple[int, R]], parse: Callable[[R], Concept], path: Path, report: SkipReport
) -> Iterator[Concept]:
    """Make a record of each row, and count the rows that are left out.

    rows (Iterable[tuple[int, R]]): Line number and content.
    parse (Callable[[R], Concept]): Makes a record of the content, or raises `SkipError`.
    path (Path): The file, for the report.
    report (SkipReport): Counts rows that `parse` refuses, and records with a wrong id or with
        nothing but an id.
    YIELDS (Concept): The records, in order.
    """
    for number, row in rows:
        try:
            concept = parse(row)
            if why := wrong_id(concept.id):
                raise SkipError(why)
            if concept == Concept(concept.id):
                raise SkipError("no name")
        except SkipError as skipped:
            report.skip(str(skipped), f"{path}, line {number}", skipped.n)
        else:
            yield concept


def filled_lines(path: Path, report: SkipReport) -> Iterator[tuple[int, str]]:
    """Read the lines of a file that hold more than white space. See `read_lines`."""
    return ((number, line) for number, line in read_lines(path, report) if line.strip())


def read_rows(
    path: Path,
    report: SkipReport,
    wanted: Sequence[str],
    *,
    layout: Sequence[str] = (),
    delimiter: str = "\t",
) -> Iterator[tuple[int, list[str]]]:
    """Read the wanted columns of a file without quoting (RRF, RF2, TSV), row by row.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts rows with another number of columns than the file's.
    wanted (Sequence[str]): Names of the columns to read.
    layout (Sequence[str]): Names of all columns, if the file has no header line.
    delimiter (str): Separates two cells; in RRF it also follows the last one.
    YIELDS (tuple[int, list[str]]): Line number, and the values in the order of `wanted`, without
        white space around them.
    RAISES (BioclinError): A wanted column is not in the header, or no row has the right number
        of columns.
    """
    lines = read_lines(path, report)
    columns = list(layout) or read_header(path, lines, wanted)
    picks = [columns.index(name) for name in wanted]
    right = wrong = 0
    for number, line in lines:
        if not line:
            continue
        cells = line.split(delimiter)
        if layout and len(cells) == len(columns) + 1 and not cells[-1]:
            cells.pop()
        if len(cells) == len(columns):
            right += 1
            yield number, [cells[i].strip() for i in picks]
            continue
        wrong += 1
        report.skip(f"row without {len(columns)} columns", f"{path}, line {number}")
        if not right and wrong == MAX_WRONG:
            break
    if wrong and not right:
        raise BioclinError(
            f"{path}: none of its first {wrong} rows has the {len(columns)} columns of this "
            f"format, separated by {delimiter!r}; give the file as it was released"
        )


def read_header(path: Path, lines: Iterator[tuple[int, str]], wanted: Sequence[str]) -> list[str]:
    """Read the line with the names of the columns, separated by tabs.

    path (Path): The file, for errors.
    lines (Iterator[tuple[int, str]]): Its lines; the first one is taken.
    wanted (Sequence[str]): Columns that are required.
    RETURNS (list[str]): All columns.
    RAISES (BioclinError): The file is empty, or a wanted column is missing.
    """
    number, header = next(lines, (1, ""))
    columns = [cell.strip() for cell in header.split("\t")]
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise BioclinError(
            f"{path}, line {number}: no column {', '.join(missing)} in {header[:200]!r}; give the "
            "file as it was released, with its header line and tabs between the columns"
        )
    return columns
