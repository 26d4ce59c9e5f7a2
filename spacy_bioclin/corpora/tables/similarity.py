"""BIOSSES: pairs of sentences and how similar five annotators found them.

Soğancıoğlu et al. (2017), BIOSSES: a semantic sentence similarity estimation system for the
biomedical domain.
"""

from pathlib import Path

from ...errors import BioclinError
from ..texts import LabeledText
from .rows import read_rows

COLUMNS = ("pair_id", "sentence1", "sentence2", "mean_score")
HIGHEST = 4.0


def read_biosses(path: Path) -> list[LabeledText]:
    """Read the pairs.

    path (Path): A .tsv file with the columns pair_id, sentence1, sentence2 and mean_score, the mean
        of the annotators' scores.
    RETURNS (list[LabeledText]): The pairs with scores from 0 to 4.
    RAISES (BioclinError): A row cannot be read; it names file and line.
    """
    rows = []
    for line, values in read_rows(path, COLUMNS, plain_quotes=True):
        if isinstance(values, BioclinError):
            raise BioclinError(f"{path}, line {line}: {values}")
        id, first, second, mean = (values[name] for name in COLUMNS)
        try:
            score = float(mean)
        except ValueError:
            score = -1.0
        if not 0 <= score <= HIGHEST:
            raise BioclinError(f"{path}, line {line}: mean_score is not a number from 0 to 4")
        rows.append(LabeledText(id.strip(), (first, second), (), score))
    return rows
