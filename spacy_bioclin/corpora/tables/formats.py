"""Find a format of texts or pairs of texts by its name, and read a corpus of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ... import files
from ...errors import BioclinError, without_context
from ..files import describe_damage
from ..texts import LabeledText
from .agreement import read_mednli, read_sts
from .associations import read_euadr, read_gad
from .hallmarks import read_hallmarks, read_nodes
from .questions import read_questions
from .similarity import read_biosses


class TableFormat(NamedTuple):
    """How files of texts, or of pairs of texts, are read.

    suffixes (tuple[str, ...]): Ends of the names of the files to read in a folder.
    read (Callable): Reads one file. A row without text, or with one text of a pair empty, is left
        out and counted by `read_texts`.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path], list[LabeledText]]


TABLE_FORMATS: dict[str, TableFormat] = {
    "biosses": TableFormat((".tsv",), read_biosses),
    "euadr": TableFormat((".csv",), read_euadr),
    "gad": TableFormat((".tsv",), read_gad),
    "hoc": TableFormat((".txt",), read_hallmarks),
    "hoc-nodes": TableFormat((".txt",), read_nodes),
    "mednli": TableFormat((".jsonl",), read_mednli),
    "medsts": TableFormat((".train.txt", ".test.txt", ".tsv"), read_sts),
    "n2c2-sts": TableFormat((".train.txt", ".test.txt", ".tsv"), read_sts),
    "rqe": TableFormat((".xml",), read_questions),
}


def read_texts(format: str, paths: Sequence[Path]) -> tuple[list[LabeledText], int]:
    """Read the rows of a corpus of texts or pairs.

    format (str): One of `TABLE_FORMATS`.
    paths (Sequence[Path]): Files, and folders that are searched at any depth.
    RETURNS (tuple[list[LabeledText], int]): The rows, in the order of the paths, and the number of
        those that were left out, since a text is empty.
    RAISES (BioclinError): The format is unknown, a file cannot be read, two rows have the same id,
        or there are no rows.
    """
    if format not in TABLE_FORMATS:
        raise BioclinError(f"format is {format!r}, want one of {', '.join(TABLE_FORMATS)}")
    found = TABLE_FORMATS[format]
    rows: list[LabeledText] = []
    for _, path in files.find_files(paths, found.suffixes):
        rows += _read_file(found, path)
    good = [row for row in rows if all(text.strip() for text in row.texts)]
    if not good:
        raise BioclinError(f"{', '.join(map(str, paths))}: no texts to convert")
    if len({row.id for row in rows}) < len(rows):
        raise BioclinError(
            f"{', '.join(map(str, paths))}: two rows have the same id; is a file there twice?"
        )
    return good, len(rows) - len(good)


@without_context()
def _read_file(format: TableFormat, path: Path) -> list[LabeledText]:
    """Read a file; whatever a reader or its library stumbles over becomes a `BioclinError`."""
    try:
        return format.read(path)
    except BioclinError:
        raise
    except Exception as error:
        raise BioclinError(f"{path}: {describe_damage(error)}") from None
