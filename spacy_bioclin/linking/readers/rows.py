"""Rows of a release file without quoting (RRF, RF2, TSV): named columns, wrong rows counted."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import BioclinError
from ..kb.concepts import SkipReport
from .lines import read_lines

# So many wrong rows before the first right one mean that the file is another one.
MAX_WRONG = 100


def read_rows(
    path: Path,
    report: SkipReport,
    wanted: Sequence[str],
    *,
    layout: Sequence[str] = (),
    delimiter: str = "\t",
) -> Iterator[tuple[int, list[str]]]:
    """Read the wanted columns of a file, row by row.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts rows with another number of columns than the file's.
    wanted (Sequence[str]): Names of the columns to give.
    layout (Sequence[str]): Names of all columns, where the file has no header line.
    delimiter (str): What stands between two cells, and in RRF after the last one too.
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
    wanted (Sequence[str]): The columns that must be there.
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
