"""The dictionary of BioSyn and its followers: `id||name|name`, or `id|other id||name|name`.

Format: https://github.com/dmis-lab/BioSyn (datasets, "dictionary")
"""

from collections.abc import Iterator
from pathlib import Path

from ..kb.concepts import Alias, Concept, SkipReport
from .rows import SkipError, filled_lines, parse_rows
from .values import clean


def read_names(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read a dictionary of names: the first name of a line is the preferred one.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts lines without "||", without an id or without a name.
    YIELDS (Concept): One for each line.
    RAISES (BioclinError): The file cannot be read.
    """
    return parse_rows(filled_lines(path, report), _to_concept, path, report)


def _to_concept(line: str) -> Concept:
    left, bars, right = line.partition("||")
    ids = [id.strip() for id in left.split("|") if id.strip()]
    names = [clean(name) for name in right.split("|") if name.strip()]
    if not (bars and ids and names):
        raise SkipError("no id" if bars and not ids else "no name" if bars else "line without ||")
    return Concept(
        ids[0], names[0], aliases=tuple(map(Alias, names[1:])), alternative_ids=tuple(ids[1:])
    )
