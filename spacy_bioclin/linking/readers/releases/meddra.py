"""MedDRA: the ASCII files of a release, with "$" after each cell.

Layout: MedDRA Distribution File Format Document (MSSO).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ....errors import BioclinError
from ...kb.concepts import Alias, Concept, SkipReport
from ..lines import suffix
from ..rows import SkipError, filled_lines, parse_rows
from ..values import clean

# Levels of the hierarchy, from the most special one, as mdhier.asc lists codes and names.
LEVELS = ("PT", "HLT", "HLGT", "SOC")


def read_meddra(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read the preferred terms (pt.asc), their lowest level terms (llt.asc) as aliases, and the
    groups above them (mdhier.asc). The type is the level, "PT", "HLT", "HLGT" or "SOC".

    The code of a lowest level term is an alternative id of its preferred term.

    path (Path): The folder of the files (MedAscii), or one of them.
    report (SkipReport): Counts lowest level terms that are no longer current, and wrong rows.
    YIELDS (Concept): Partial records, one a row and level.
    RAISES (BioclinError): There is neither pt.asc nor llt.asc, or a file cannot be read.
    """
    files = find_files(path)
    for file in files:
        name = file.name.lower().split(".")[0]
        yield from parse_rows(_rows(file, report), PARSERS[name], file, report)
        if name == "mdhier":
            for _, cells in _rows(file, report):
                yield from _levels(cells)


def find_files(path: Path) -> list[Path]:
    """List the files that are read, the preferred terms first.

    RAISES (BioclinError): There is none.
    """
    paths = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [p for p in paths if suffix(p) == ".asc" and p.name.lower().split(".")[0] in PARSERS]
    if not any(file.name.lower().startswith(("pt.", "llt.")) for file in files):
        raise BioclinError(f"{path}: no pt.asc or llt.asc; give the folder MedAscii of a release")
    return sorted(files, key=lambda file: list(PARSERS).index(file.name.lower().split(".")[0]))


def _rows(path: Path, report: SkipReport) -> Iterator[tuple[int, list[str]]]:
    for number, line in filled_lines(path, report):
        yield number, [clean(cell) for cell in line.split("$")]


def _preferred(cells: Sequence[str]) -> Concept:
    if len(cells) < 4:
        raise SkipError("row with fewer cells than pt.asc has")
    return Concept(cells[0], cells[1], types=LEVELS[:1])


def _lowest(cells: Sequence[str]) -> Concept:
    if len(cells) < 10:
        raise SkipError("row with fewer cells than llt.asc has")
    code, name, preferred, is_current = cells[0], cells[1], cells[2], cells[9]
    if is_current.upper() == "N":
        raise SkipError("retired: lowest level term that is not current")
    if code == preferred:
        return Concept(preferred, name, types=LEVELS[:1])
    return Concept(preferred, aliases=(Alias(name),), types=LEVELS[:1], alternative_ids=(code,))


def _hierarchy(cells: Sequence[str]) -> Concept:
    if len(cells) < 8:
        raise SkipError("row with fewer cells than mdhier.asc has")
    return Concept(cells[0], parents=(cells[1],))


def _levels(cells: Sequence[str]) -> Iterator[Concept]:
    """Yield the groups of a row of mdhier.asc: codes in cells 0 to 3, names in cells 4 to 7."""
    for i in range(1, 4) if len(cells) >= 8 else ():
        yield Concept(
            cells[i],
            cells[i + 4],
            types=(LEVELS[i],),
            parents=tuple(cells[i + 1 : i + 2] if i < 3 else ()),
        )


# File -> what makes a record of its rows, in the order in which they are read.
PARSERS: dict[str, Callable[[Sequence[str]], Concept]] = {
    "pt": _preferred,
    "llt": _lowest,
    "mdhier": _hierarchy,
}
