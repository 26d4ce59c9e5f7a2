"""Pairs of texts of corpora that need an agreement: MedNLI, MedSTS and n2c2 2019.

Written from the public documentation, and not tested on the corpora.

Romanov and Shivade (2018), Lessons from natural language inference in the clinical domain; Wang et
al. (2018), MedSTS; Wang et al. (2020), The 2019 n2c2/OHNLP track on clinical semantic textual
similarity.
"""

from collections.abc import Iterator
from pathlib import Path

from ...errors import BioclinError
from ..files import BOM, read_text
from ..texts import LabeledText
from .rows import read_rows

MEDNLI_LABELS = ("contradiction", "entailment", "neutral")
MEDNLI_COLUMNS = ("sentence1", "sentence2", "gold_label")
MEDNLI_ID = "pairID"
HIGHEST = 5.0
# What the names of files with the scores of NAME.txt end in.
SCORE_FILES = (".gs.sim.txt", ".labels.txt")


def read_mednli(path: Path) -> list[LabeledText]:
    """Read the pairs of a file of MedNLI.

    path (Path): A .jsonl file whose lines have sentence1, sentence2, gold_label and pairID.
    RETURNS (list[LabeledText]): The pairs with the label "entailment", "neutral" or
        "contradiction".
    RAISES (BioclinError): A line cannot be read; it names file and line.
    """
    rows: list[LabeledText] = []
    for line, values in read_rows(path, MEDNLI_COLUMNS):
        where = f"{path}, line {line}"
        if isinstance(values, BioclinError):
            raise BioclinError(f"{where}: {values}")
        first, second, label = (values[name] for name in MEDNLI_COLUMNS)
        if not (isinstance(first, str) and isinstance(second, str)):
            raise BioclinError(f"{where}: sentence1 or sentence2 is not a string")
        if label not in MEDNLI_LABELS:
            raise BioclinError(f"{where}: gold_label is not one of {', '.join(MEDNLI_LABELS)}")
        id = values.get(MEDNLI_ID)
        if not isinstance(id, str) or not id.strip():
            id = f"{path.stem}-{len(rows)}"
        rows.append(LabeledText(id, (first, second), (label,), None))
    return rows


def read_sts(path: Path) -> list[LabeledText]:
    """Read the pairs of a file of MedSTS or n2c2 2019.

    path (Path): A file without header, whose lines have two sentences and a score from 0 to 5,
        separated by tabs. If the lines have no score, as in test splits, NAME.gs.sim.txt or
        NAME.labels.txt beside it has one a line. The name begins the ids.
    RETURNS (list[LabeledText]): The pairs with their scores.
    RAISES (BioclinError): A line cannot be read, or scores are missing; it names file and line.
    """
    lines = list(_read_lines(path))
    n_columns = len(lines[0][1]) if lines else 0
    for number, cells in lines:
        if len(cells) != n_columns or n_columns not in (2, 3):
            raise BioclinError(
                f"{path}, line {number}: want two sentences and a score, separated by tabs, or in "
                f"all lines two sentences; found {len(cells)} columns"
            )
    if n_columns == 3:
        scores = [_read_score(cells[2], f"{path}, line {number}") for number, cells in lines]
    else:
        scores = _read_scores(path, len(lines)) if lines else []
    return [
        LabeledText(f"{path.stem}-{n}", (cells[0], cells[1]), (), score)
        for n, ((_, cells), score) in enumerate(zip(lines, scores, strict=True))
    ]


def _read_scores(path: Path, n_pairs: int) -> list[float]:
    """Read the scores of a file of pairs without scores.

    RAISES (BioclinError): There is no such file, or it has not one score for each pair.
    """
    places = [path.with_name(f"{path.stem}{end}") for end in SCORE_FILES]
    place = next((place for place in places if place.is_file()), None)
    if place is None:
        raise BioclinError(
            f"{path}: has no scores, and neither {places[0].name} nor {places[1].name} is beside it"
        )
    lines = list(_read_lines(place))
    if len(lines) != n_pairs:
        raise BioclinError(f"{place}: has {len(lines)} scores, but {path.name} has {n_pairs} pairs")
    return [_read_score(cells[-1], f"{place}, line {number}") for number, cells in lines]


def _read_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """List the lines that are not empty, by number, with their columns."""
    content = read_text(path).removeprefix(BOM)
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            yield number, [cell.strip() for cell in line.rstrip("\r\t ").split("\t")]


def _read_score(cell: str, where: str) -> float:
    try:
        score = float(cell) if "_" not in cell else -1.0
    except ValueError:
        score = -1.0
    if not 0 <= score <= HIGHEST:
        raise BioclinError(f"{where}: the score is not a number from 0 to 5")
    return score
