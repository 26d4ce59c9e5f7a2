"""Read tables of results whose names or dates are in the first row."""

import re
from typing import NamedTuple, Protocol

from .names import Name
from .result import Result

_BREAK = re.compile(r"\t| {2,}|[^\S\n]*\|[^\S\n]*")
_RULE = re.compile(r"[\s|:+=–-]*")
_UNIT = re.compile(r"\s?[(\[][^()\[\]\n]{1,20}[)\]]|\s*:?")
_LABEL = re.compile(r"(?i)\d{1,2}(?:[:.h]\d{2})?\s?h?s?|\d{1,2}/\d{1,2}|[^\d]{0,20}")
_MIN_COLUMNS = 2

Place = tuple[int, int]


class CellReader(Protocol):
    """What reads the cells of a table."""

    def read_day(self, text: str, start: int, end: int) -> str | None:
        """Read a cell that is a date."""
        ...

    def read_cell(
        self, text: str, name: Name, start: int, end: int, date: str | None
    ) -> list[Result]:
        """Read a cell that is a value."""
        ...


class _Header(NamedTuple):
    """A first row: the names or the dates of its columns."""

    names: list[Name]
    dates: list[str]
    n_cells: int


def read_tables(
    text: str, names: list[Name], finder: CellReader
) -> tuple[list[Result], list[Place]]:
    """Read the tables of a text.

    RETURNS (tuple[list[Result], list[Place]]): What was read, and the rows that it was read from.
    """
    results: list[Result] = []
    rows: list[Place] = []
    by_start = {name.start: name for name in names}
    header: _Header | None = None
    start = 0
    for line in text.splitlines(keepends=True):
        cells = _cut(line, start)
        place = start, start + len(line)
        start += len(line)
        if _RULE.fullmatch(line) and line.strip():
            continue
        if len(cells) < _MIN_COLUMNS:
            header = None
        elif made := _read_header(text, cells, by_start, finder):
            header = made
            if made.names:
                rows.append(place)
        elif header is not None:
            found = _read_row(text, cells, header, by_start, finder)
            if found:
                results += found
                rows.append(place)
            else:
                header = None
    return results, rows


def _cut(line: str, start: int) -> list[Place]:
    """Cut a line into its cells, without blanks around them."""
    cells: list[Place] = []
    at = 0
    for found in [*_BREAK.finditer(line), None]:
        end = found.start() if found else len(line)
        cell = line[at:end]
        if cell.strip():
            first = start + at + len(cell) - len(cell.lstrip())
            cells.append((first, first + len(cell.strip())))
        at = found.end() if found else end
    return cells


def _read_header(
    text: str, cells: list[Place], by_start: dict[int, Name], finder: CellReader
) -> _Header | None:
    """Read a first row: all cells but perhaps the first are names, or dates."""
    found: list[Name] = []
    dates: list[str] = []
    for number, (start, end) in enumerate(cells):
        name = by_start.get(start)
        if name is not None and (name.end == end or _UNIT.fullmatch(text, name.end, end)):
            found.append(name)
        elif day := finder.read_day(text, start, end):
            dates.append(day)
        elif number > 0:
            return None
    if len(found) >= _MIN_COLUMNS and not dates and len(found) >= len(cells) - 1:
        return _Header(found, [], len(cells))
    if len(dates) >= _MIN_COLUMNS and not found:
        return _Header([], dates, len(cells))
    return None


def _read_row(
    text: str,
    cells: list[Place],
    header: _Header,
    by_start: dict[int, Name],
    finder: CellReader,
) -> list[Result]:
    """Read a row: a value for each name, or the values of one name for each date."""
    columns: list[tuple[Name, str | None]]
    if header.dates:
        name = by_start.get(cells[0][0])
        values = cells[1:]
        if name is None or len(values) != len(header.dates):
            return []
        columns = [(name, day) for day in header.dates]
    else:
        n_labels = len(cells) - len(header.names)
        if n_labels not in (0, 1):
            return []
        day = finder.read_day(text, *cells[0]) if n_labels else None
        if n_labels and not day and not _LABEL.fullmatch(text, *cells[0]):
            return []
        values = cells[n_labels:]
        columns = [(name, day) for name in header.names]
    found: list[Result] = []
    for (name, day), (start, end) in zip(columns, values, strict=True):
        found += finder.read_cell(text, name, start, end, day)
    return found
