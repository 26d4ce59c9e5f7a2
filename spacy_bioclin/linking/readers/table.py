"""Tables (CSV, TSV, any delimiter; sheets of Excel) with a column for the id and one for the name:
ICD, ICD-O, LOINC, and whatever a hospital exports."""

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from ...errors import BioclinError
from ..kb.concepts import Alias, Concept, SkipReport
from .headers import Columns, Layout, find_columns, has_numbers, may_hold_list, recognise_columns
from .lines import read_lines, suffix
from .rows import SkipError, parse_rows
from .sheets import SHEETS, read_sheets
from .values import clean, compact_id, language_code

# In characters; a longer cell begins with a quote that is never closed.
MAX_CELL = 131_072
UNCLOSED = "line within a quote: is it never closed?"
UNREAD = "value in column {!r}, which is not read; to read it, name it in columns"
COMMAS = "commas in column {!r} read as part of a name; write | or ; between names"
DELIMITERS = ("\t", ";", ",", "|", "$")
# The header is looked for in so many lines: a title may be above it.
N_TITLE = 20
# So many rows show what the commas of a column mean.
SAMPLE = 1000
# A spreadsheet rounds a number of more than 15 digits, and makes dates of codes such as 1-3.
ROUNDED = re.compile(r"[0-9](?:[.,][0-9]+)?[Ee]\+[0-9]+")
DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T].*)?")
# Between names in a cell, if not in brackets, as in t(8;21); commas only where those of the column
# do that, and not within a number or formula.
OUTSIDE = r"(?![^()]*\))"
COMMA = re.compile(rf"(?:,\s+|(?<=\w\w),(?=\w\w)(?![0-9])){OUTSIDE}")
SEMICOLON = re.compile(f";{OUTSIDE}")
# What follows the comma of one name, in "Diabetes, tipo 2" or "arthritis, rheumatoid".
MODIFIER = re.compile(
    r"(?:de|del|con|sin|por|no|en|a|al|tipo|otr[oa]s?|tras|y|e|o|u|of|with|without|due|not|in|by|to|type|"
    r"other|and|or|nos|nec|sai|neom|unspecified|acute|chronic|left|right|agud[oa]s?|grado|grade|"
    r"estadio|stage)\b.*|"
    r"\w*(?:\wic[oa]|al|ar|os[oa]|iv[oa]|[aeio]d[oa]|oide|ari[oa]|\wic|ous|ive|\wed|oid|ary|ant|ent)s?",
    re.IGNORECASE,
)
# If more of the cells with commas are such names, all of the column are.
MAX_MODIFIED = 0.05


def read_table(
    path: Path, report: SkipReport, *, columns: Columns | None = None
) -> Iterator[Concept]:
    """Read a table, one record a row; several rows may belong to one id.

    A cell of names, types, parents or references may hold several values with "|" between them, and
    one of aliases with ";", a line break or, where that is what the commas of its column mean, ","
    between them; the first name is the preferred one. Delimiter, header and the sheets of a
    workbook are found by what the headers say.

    path (Path): The file, compressed or not, or a workbook (see `read_sheets`).
    report (SkipReport): Counts rows without id, with nothing but an id, with more cells than the
        header, that a column says are retired (see `headers.RETIRED`), lines before the header and
        those that a quote makes part of an id or a name, commas that are part of a name, and the
        values of each column that is not read.
    columns (Columns | None): "id", "name", "alias", "lang", "type", "definition", "parent", "xref"
        -> header of the column or columns that hold it, or their numbers from 1 in a table without
        a header line; other columns are not read. None recognises the usual headers, see `HEADERS`.
    YIELDS (Concept): One for each row.
    RAISES (BioclinError): The file cannot be read, has one column only, lacks a column that
        `columns` names, or has none for the id or for names; a quote is never closed; ids were
        rounded by a spreadsheet.
    """

    by_number = columns is not None and has_numbers(columns)

    def layout_of(header: Sequence[str], where: str) -> Layout:
        return find_columns(header, columns, where) if columns else recognise_columns(header, where)

    rows = read_cells(path, report, None if by_number else layout_of)
    number, header = next(rows, (1, []))
    layout = layout_of(header, f"{path}, line {number}")
    found = layout.found
    names = dict(enumerate(header))
    if by_number:
        rows = chain([(number, header)], rows)
        names = {i: str(i + 1) for i in names}
    read = {i for indices in found.values() for i in indices} | set(layout.retired)
    unread = {i: UNREAD.format(name) for i, name in names.items() if i not in read}
    of_one_line = [i for key in ("id", "name", "alias") for i in found.get(key, ())]
    is_sheet = suffix(path) in SHEETS
    sample = list(islice(rows, SAMPLE))
    lists = [i for i in found.get("alias", ()) if may_hold_list(names[i])]
    split, unsplit = _find_commas(sample, lists)

    def to_concept(cells: list[str]) -> Concept:
        if any(cells[len(header) :]):
            raise SkipError("more cells than the first line")
        cells += [""] * (len(header) - len(cells))
        if not is_sheet and any("\n" in cells[i] for i in of_one_line):
            raise SkipError(UNCLOSED, "".join(cells).count("\n") + 1)
        if (i := layout.retired_by(cells)) is not None:
            raise SkipError(f"retired: column {names[i]!r} says so")
        id = cells[found["id"][0]]
        if ROUNDED.fullmatch(id):
            raise BioclinError(
                f"{path}: the id {id!r} is a number that a spreadsheet rounded, so its last digits "
                "are lost; export the table again with the ids as text"
            )
        if DATED.fullmatch(id):
            raise SkipError("id that a spreadsheet made a date")
        for i in lists:
            if COMMA.search(cells[i]) and (i in unsplit or _is_modified(cells[i])):
                report.skip(COMMAS.format(names[i]), f"{path}, {id}")
        return _to_concept(cells, layout, lists, split)

    rows = chain(sample, rows)
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


def read_cells(
    path: Path, report: SkipReport, layout_of: Callable[[Sequence[str], str], object] | None
) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a text file or workbook, with the header as the first.

    layout_of (Callable | None): Raises an error for a row that is no header, see `find_columns`;
        None takes the first row for it.
    YIELDS (tuple[int, list[str]]): See `read_quoted_rows` and `read_sheets`.
    """

    def is_header(cells: Sequence[str]) -> bool:
        try:
            return layout_of is None or bool(layout_of(cells, ""))
        except BioclinError:
            return False

    reader = read_sheets if suffix(path) in SHEETS else read_quoted_rows
    return reader(path, report, is_header)


def read_quoted_rows(
    path: Path,
    report: SkipReport,
    is_header: Callable[[Sequence[str]], bool] | None = None,
    *,
    quoted_tabs: bool = True,
) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a table, with the header as the first; cells may be quoted as in CSV.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts what `read_lines` leaves out, lines before the header, and lines
        that a quote joins to one cell that contains a tab.
    is_header (Callable | None): Whether a line is the header, which is looked for in the first
        `N_TITLE` lines; None, or if none of them is, takes the first line for it.
    quoted_tabs (bool): Whether cells may be quoted where tabs are the delimiter.
    YIELDS (tuple[int, list[str]]): Number of the row's last line, and its cells, not all empty.
    RAISES (BioclinError): The file cannot be read or is empty, its header holds one cell only,
        or a quote is never closed.
    """
    lines = ((number, line) for number, line in read_lines(path, report) if line.strip())
    first = list(islice(lines, N_TITLE if is_header else 1))
    if not first:
        raise BioclinError(f"{path}: no line in it")
    # This setting of the process is raised when notes are read.
    csv.field_size_limit(MAX_CELL)
    above = _find_header([line for _, line in first], is_header) if is_header else 0
    if above:
        report.skip("line above the header", f"{path}, line {first[0][0]}", above)
    number, header = first[above]
    delimiter = _delimiter(header)
    if delimiter not in header:
        raise BioclinError(
            f"{path}, line {number}: one column only; a table needs columns separated by a tab, a "
            "semicolon, a comma, | or $, and the first line must name them"
        )

    def text() -> Iterator[str]:
        nonlocal number
        for at, line in chain(first[above:], lines):
            number = at
            yield line + "\n"

    quote = '"' if quoted_tabs or delimiter != "\t" else None
    try:
        for cells in csv.reader(text(), delimiter=delimiter, quotechar=quote):
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


def _find_header(lines: Sequence[str], is_header: Callable[[Sequence[str]], bool]) -> int:
    """Find the line that is a header; 0 if none is."""
    for i, line in enumerate(lines):
        cells = next(csv.reader([line], delimiter=_delimiter(line)), [])
        if is_header([cell.strip() for cell in cells]):
            return i
    return 0


def _delimiter(line: str) -> str:
    """Names contain commas, but no tabs."""
    return "\t" if "\t" in line else max(DELIMITERS, key=line.count)


def _find_commas(
    rows: Iterable[tuple[int, list[str]]], columns: Iterable[int]
) -> tuple[set[int], set[int]]:
    """Find out what commas in columns of aliases mean, by their first cells.

    RETURNS (tuple[set[int], set[int]]): Indices of the columns in which commas are between names,
        and of those in which they are part of names.
    """
    split: set[int] = set()
    unsplit: set[int] = set()
    for i in columns:
        cells = [row[i] for _, row in rows if i < len(row)]
        commas = [cell for cell in cells if COMMA.search(cell)]
        is_list = not any("|" in cell or SEMICOLON.search(cell) for cell in cells)
        is_list &= sum(map(_is_modified, commas)) <= MAX_MODIFIED * len(commas)
        (split if is_list else unsplit).add(i)
    return split, unsplit


def _is_modified(cell: str) -> bool:
    """Check whether the part after a comma is a modifier, so that all is one name."""
    return any(MODIFIER.fullmatch(part.strip()) for part in COMMA.split(cell)[1:])


def _to_concept(
    cells: Sequence[str], layout: Layout, lists: Collection[int], split: Collection[int]
) -> Concept:
    """Make a concept of a row.

    lists, split (Collection[int]): Indices of the columns of which a cell may be a list, and of
        those in which commas are between names.
    """

    def values(key: str) -> list[str]:
        return [clean(part) for i in layout.found.get(key, ()) for part in cells[i].split("|")]

    def whole(key: str) -> str:
        return next((cells[i] for i in layout.found.get(key, ()) if cells[i]), "")

    def names(key: str) -> Iterator[Alias]:
        for i in layout.found.get(key, ()):
            cell = cells[i]
            if i in split and not _is_modified(cell):
                cell = COMMA.sub("|", cell)
            if i in lists and not has_semicolon:
                cell = SEMICOLON.sub("|", cell.replace("\n", "|"))
            for part in cell.split("|"):
                if text := clean(part):
                    yield Alias(text, layout.langs.get(i, lang))

    lang = language_code(whole("lang"))
    # Then it is part of its aliases too: "leucemia con t(9;22); BCR-ABL1".
    has_semicolon = bool(SEMICOLON.search(whole("name")))
    name, *more = [*names("name")] or [Alias("")]
    return Concept(
        compact_id(whole("id")),
        *name,
        aliases=(*more, *names("alias")),
        types=tuple(filter(None, values("type"))),
        definition=clean(whole("definition")),
        parents=tuple(map(compact_id, filter(None, values("parent")))),
        xrefs=tuple(filter(None, values("xref"))),
    )
