"""Workbooks of Excel and LibreOffice, with python-calamine (extra `excel`)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import BioclinError
from ...files import check_regular
from ..kb.concepts import SkipReport

SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
N_TITLE = 20  # a title may be above the header
# A sheet with one of these in its title lists what is no longer valid.
RETIRED = ("baja", "eliminad", "retirad", "suprimid", "obsolet", "deleted", "retired", "inactiv")
# Excel keeps 15 digits of a number.
MAX_NUMBER = 10**15


def read_sheets(
    path: Path, report: SkipReport, is_header: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a workbook, with the header as the first: those of the first sheet that has
    a header, and of all further sheets with the same one.

    path (Path): The workbook.
    report (SkipReport): Counts rows above a header, and those of sheets that are not read.
    is_header (Callable): Whether a row is a header, which is looked for in the first `N_TITLE`
        rows; if none is, the first row of the first sheet is taken for it.
    YIELDS (tuple[int, list[str]]): Number of the row, and its cells, not all empty.
    RAISES (BioclinError): python-calamine is not installed, the workbook cannot be read or has a
        password, or a number in it was rounded.
    """
    try:
        import python_calamine
    except ImportError:
        raise BioclinError(
            f"{path}: to read a workbook, python-calamine is needed: "
            "pip install 'spacy-bioclin[excel]'; or save it as CSV UTF-8"
        ) from None
    check_regular(path)
    try:
        workbook = python_calamine.CalamineWorkbook.from_path(str(path))
        sheets = ((name, workbook.get_sheet_by_name(name)) for name in workbook.sheet_names)
        yield from _read_sheets(path, report, is_header, sheets)
    except (python_calamine.CalamineError, OSError) as error:
        raise BioclinError(
            f"{path}: cannot be read as a workbook ({error}); is it damaged, or has it a password?"
        ) from None


def _read_sheets(
    path: Path,
    report: SkipReport,
    is_header: Callable[[Sequence[str]], bool],
    sheets: Iterable[tuple[str, Any]],
) -> Iterator[tuple[int, list[str]]]:
    header: list[str] = []
    fallback: tuple[int, list[str]] | None = None
    for name, sheet in sheets:
        # Rows above the first that is filled are left out by the library.
        rows = (
            (number, [_as_text(path, number, cell) for cell in row])
            for number, row in enumerate(sheet.iter_rows(), 1 + (sheet.start or (0, 0))[0])
        )
        filled = (row for row in rows if any(row[1]))
        top = list(islice(filled, N_TITLE))
        fallback = fallback or next(iter(top), None)
        above = next((i for i, (_, cells) in enumerate(top) if is_header(cells)), None)
        is_current = not any(word in name.lower() for word in RETIRED)
        if above is None or not is_current or header not in ([], top[above][1]):
            if n := len(top) + sum(1 for _ in filled):
                report.skip("row of a sheet that is not read", f"{path}, sheet {name!r}", n)
            continue
        if above:
            report.skip("line above the header", f"{path}, sheet {name!r}", above)
        if not header:
            header = top[above][1]
            yield top[above]
        yield from top[above + 1 :]
        yield from filled
    if not header and fallback:
        yield fallback


def _as_text(path: Path, number: int, cell: Any) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int | float):
        if abs(cell) >= MAX_NUMBER:
            raise BioclinError(
                f"{path}, row {number}: {cell:.0f} is a number of more than 15 digits, of which "
                "Excel lost the last ones; enter it as text"
            )
        return str(int(cell)) if cell == int(cell) else str(cell)
    return str(cell)
