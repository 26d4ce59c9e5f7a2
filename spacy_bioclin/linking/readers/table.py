"""Tables (TSV, CSV, semicolons) with a column for the id and one for the name: ICD, ICD-O, and
whatever a hospital exports."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from string import digits

import srsly

from ...errors import BioclinError
from ...text import fold_alnum
from ..kb.concepts import Alias, Concept, SkipReport
from .lines import read_lines
from .rows import SkipError, parse_rows
from .values import clean, compact_id, language_code

Columns = Mapping[str, str | Sequence[str]]

# In characters; a longer cell begins with a quote that is never closed.
MAX_CELL = 131_072
UNCLOSED = "line within a quote: is it never closed?"
UNREAD = "value in column {!r}, which is not read; to read it, name it in columns"
DELIMITERS = ("\t", ";", ",", "|")
_DATA = srsly.read_yaml(Path(__file__).with_name("headers.yml"))
# See headers.yml: what a column holds -> its usual headers; headers of columns that hold aliases.
HEADERS: dict[str, list[str]] = _DATA["columns"]
ALIAS_HEADERS = frozenset(_DATA["aliases"])


def read_table(
    path: Path, report: SkipReport, *, columns: Columns | None = None
) -> Iterator[Concept]:
    """Read a table, one record a row; several rows may belong to one id.

    A cell of names, types, parents or references may hold several values with "|" between them; the
    first name is the preferred one. The delimiter is detected in the first line.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts rows without id, with nothing but an id, with more cells than the
        first line, lines that a quote makes part of an id or a name, and the values of each column
        that is not read.
    columns (Columns | None): "id", "name", "alias", "lang", "type", "definition", "parent", "xref"
        -> header of the column or columns that hold it, or their numbers from 1 in a table without
        a header line; other columns are not read. None recognises the usual headers, see `HEADERS`.
    YIELDS (Concept): One for each row.
    RAISES (BioclinError): The file cannot be read, has one column only, lacks a column that
        `columns` names, or has none for the id or for names; a quote is never closed.
    """
    rows = read_quoted_rows(path, report)
    number, header = next(rows, (1, []))
    where = f"{path}, line {number}"
    found = find_columns(header, columns, where) if columns else recognise_columns(header, where)
    names = dict(enumerate(header))
    if columns and has_numbers(columns):
        rows = chain([(number, header)], rows)
        names = {i: str(i + 1) for i in names}
    read = {i for indices in found.values() for i in indices}
    unread = {i: UNREAD.format(name) for i, name in names.items() if i not in read}
    of_one_line = [i for key in ("id", "name", "alias") for i in found.get(key, ())]

    def to_concept(cells: list[str]) -> Concept:
        if any(cells[len(header) :]):
            raise SkipError("more cells than the first line")
        cells += [""] * (len(header) - len(cells))
        if any("\n" in cells[i] for i in of_one_line):
            raise SkipError(UNCLOSED, "".join(cells).count("\n") + 1)
        return _to_concept(cells, found)

    yield from parse_rows(count_unread(rows, unread, path, report), to_concept, path, report)


def count_unread(
    rows: Iterable[tuple[int, list[str]]], unread: Mapping[int, str], path: Path, report: SkipReport
) -> Iterator[tuple[int, list[str]]]:
    """Count the cells in columns that are not read.

    rows (Iterable[tuple[int, list[str]]]): Line numbers and cells.
    unread (Mapping[int, str]): Index of a column -> reason for the report.
    YIELDS (tuple[int, list[str]]): The rows, unchanged.
    """
    for number, cells in rows:
        for i, reason in unread.items():
            if i < len(cells) and cells[i]:
                report.skip(reason, f"{path}, line {number}")
        yield number, cells


def read_quoted_rows(path: Path, report: SkipReport) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a table, with the header as the first; cells may be quoted as in CSV.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts what `read_lines` leaves out, and lines that a quote joins to one
        cell that contains a tab.
    YIELDS (tuple[int, list[str]]): Number of the row's last line, and its cells, not all empty.
    RAISES (BioclinError): The file cannot be read or is empty, its first line holds one cell only,
        or a quote is never closed.
    """
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for at, line in read_lines(path, report):
            number = at
            if line.strip():
                yield line + "\n"

    text = lines()
    first = next(text, "")
    if not first:
        raise BioclinError(f"{path}: no line in it")
    counts = {delimiter: first.count(delimiter) for delimiter in DELIMITERS}
    # Names contain commas, but no tabs.
    delimiter = "\t" if counts["\t"] else max(DELIMITERS, key=counts.__getitem__)
    if not counts[delimiter]:
        raise BioclinError(
            f"{path}, line {number}: one column only; a table needs columns separated by a tab, "
            "a semicolon, a comma or |, and the first line must name them"
        )
    # This setting of the process is raised when notes are read.
    csv.field_size_limit(MAX_CELL)
    try:
        for cells in csv.reader(chain([first], text), delimiter=delimiter):
            cells = [cell.strip() for cell in cells]
            if delimiter == "\t" and any("\t" in cell and "\n" in cell for cell in cells):
                n_lines = sum(cell.count("\n") for cell in cells) + 1
                report.skip(UNCLOSED, f"{path}, line {number}", n_lines)
            elif any(cells):
                yield number, cells
    except csv.Error as error:
        raise BioclinError(
            f"{path}, line {number}: {error}; a quote before it may never be closed"
        ) from None


def has_numbers(columns: Columns) -> bool:
    """Check whether columns are given by number, because the table has no header line."""
    return all(wanted.isdecimal() for value in columns.values() for wanted in _as_list(value))


def find_columns(header: Sequence[str], columns: Columns, where: str) -> dict[str, list[int]]:
    """Find the columns that the user named.

    header (Sequence[str]): Cells of the first line.
    columns (Columns): As `read_table` takes them.
    where (str): File and line, for messages.
    RETURNS (dict[str, list[int]]): Key -> indices of its columns.
    RAISES (BioclinError): A key or a column does not exist, or none is named for the id.
    """
    keys = (*HEADERS, "alias")
    if unknown := sorted(set(columns) - set(keys)):
        raise BioclinError(f"columns: no key {unknown[0]!r}; there are {', '.join(keys)}")
    if "id" not in columns or len(columns) < 2:
        raise BioclinError("columns must name the column of the id and another, such as the name's")
    names = [str(n) for n in range(1, len(header) + 1)] if has_numbers(columns) else list(header)
    found = {}
    for key, value in columns.items():
        wanted = _as_list(value)
        if missing := [name for name in wanted if name not in names]:
            there = ", ".join(map(repr, names))
            raise BioclinError(f"{where}: no column {missing[0]!r} ({key}); there are {there}")
        found[key] = [names.index(name) for name in wanted]
    return found


def recognise_columns(header: Sequence[str], where: str) -> dict[str, list[int]]:
    """Recognise the usual headers in Spanish and English.

    header (Sequence[str]): Cells of the first line.
    where (str): File and line, for messages.
    RETURNS (dict[str, list[int]]): Key -> indices of its columns.
    RAISES (BioclinError): No column is recognised for the id, or none for names.
    """
    names = [fold_alnum(name).rstrip(digits) for name in header]
    found = {"alias": [i for i, name in enumerate(names) if name in ALIAS_HEADERS]}
    taken = set(found["alias"])
    for key, usual in HEADERS.items():
        for index in (names.index(name) for name in usual if name in names):
            if index not in taken:
                found[key] = [index]
                taken.add(index)
                break
    if "id" in found and ("name" in found or found["alias"]):
        return found
    raise BioclinError(
        f"{where}: no column is recognised as the {'name' if 'id' in found else 'id'}; there are "
        f"{', '.join(map(repr, header))}. Name them with columns, such as id=codigo and "
        "name=descriptor, by number in a table without a header line; or the delimiter is not a "
        "tab, semicolon, comma or |"
    )


def _as_list(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _to_concept(cells: Sequence[str], found: Mapping[str, Sequence[int]]) -> Concept:
    def values(key: str) -> list[str]:
        parts = (part for i in found.get(key, ()) for part in cells[i].split("|"))
        return [clean(part) for part in parts if part.strip()]

    def whole(key: str) -> str:
        return next((cells[i] for i in found.get(key, ()) if cells[i]), "")

    lang = language_code(whole("lang"))
    names = values("name")
    return Concept(
        compact_id(whole("id")),
        names[0] if names else "",
        lang if names else "",
        aliases=tuple(Alias(name, lang) for name in (*names[1:], *values("alias"))),
        types=tuple(values("type")),
        definition=clean(whole("definition")),
        parents=tuple(map(compact_id, values("parent"))),
        xrefs=tuple(values("xref")),
    )
