"""Convert a table of texts, or of pairs of texts, with labels or scores into gold Docs.

The labels of a text are in `doc.cats`: every label of the table, 1.0 or 0.0. A graded score is
`doc.cats["score"]`.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations.pairs import SCORE, make_pair
from ..errors import BioclinError, without_context
from ..outputs import Output
from ..settings import find_nearest
from ..types import GOLD_KEY
from .convert import ignore, make_nlp
from .docbin import write_docs
from .tables.rows import read_rows

MAX_LABEL = 100  # characters; what is longer is a text in the wrong column

OnBadRow = Callable[[BioclinError], None]


class Columns(NamedTuple):
    """Names of the columns of a table.

    text (str): The text, or the first text of a pair.
    second (str | None): The second text of a pair; None if the rows are no pairs.
    label (str | None): The label or labels. Either this or `score` is set.
    score (str | None): A graded score.
    id (str | None): The id of the row; None for the name of the file and the number of the row.
    """

    text: str
    second: str | None = None
    label: str | None = None
    score: str | None = None
    id: str | None = None


class LabeledText(NamedTuple):
    """A row of a table.

    texts (tuple[str, ...]): One text, or two of a pair.
    labels (tuple[str, ...]): Its labels.
    score (float | None): Its score; None in a table of labels.
    """

    id: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    score: float | None


class TableSummary(NamedTuple):
    """What a table has.

    n_docs (int): Texts or pairs.
    n_skipped (int): Rows that were left out because something is wrong with them.
    labels (dict[str, int]): Every label -> number of rows with it.
    n_unlabeled (int): Rows without any label.
    scores (tuple[float, float] | None): Lowest and highest score; None in a table of labels.
    """

    n_docs: int
    n_skipped: int
    labels: dict[str, int]
    n_unlabeled: int
    scores: tuple[float, float] | None


def convert_table(
    path: Path,
    out: Path | Output,
    columns: Columns,
    *,
    lang: str,
    separator: str | None = None,
    labels: Sequence[str] | None = None,
    task: str = "",
    skip_bad: bool = False,
    plain_quotes: bool = False,
    on_skip: OnBadRow = ignore,
    on_progress: Callable[[float, int], None] = ignore,
) -> TableSummary:
    """Convert a table into gold Docs.

    path (Path): A .csv, .tsv or .jsonl file in UTF-8; the first row of CSV and TSV names the
        columns.
    out (Path | Output): The output, see `write_docs`. An error leaves it as it was.
    lang (str): Language of the texts.
    separator (str | None): What is between the labels of a row, which may have none or several;
        None if every row has exactly one.
    labels (Sequence[str] | None): All labels that there may be; None for those of the table.
    task (str): Name of the task that the table was annotated for.
    skip_bad (bool): Skip and count rows with which something is wrong.
    plain_quotes (bool): In CSV and TSV, quotation marks are characters like others.
    on_skip (Callable): Called with the error of each row that is skipped.
    on_progress (Callable): Called with the share done, from 0 to 1, and the number of Docs.
    RETURNS (TableSummary): What the table has.
    RAISES (BioclinError): The table cannot be read, or something is wrong with a row; see
        `read_table`.
    """
    nlp = make_nlp(lang)
    skipped: list[BioclinError] = []

    def on_bad(error: BioclinError) -> None:
        if not skip_bad:
            raise BioclinError(f"{error}; --skip-bad leaves such rows out and counts them")
        skipped.append(error)
        on_skip(error)

    rows = read_table(
        path,
        columns,
        separator=separator,
        labels=labels,
        plain_quotes=plain_quotes,
        on_bad=on_bad,
    )
    return write_texts(
        nlp, rows, out, labels=labels, task=task, n_skipped=len(skipped), on_progress=on_progress
    )


def write_texts(
    nlp: Language,
    rows: Sequence[LabeledText],
    out: Path | Output,
    *,
    labels: Sequence[str] | None = None,
    task: str = "",
    n_skipped: int = 0,
    on_progress: Callable[[float, int], None] = ignore,
) -> TableSummary:
    """Write the gold Docs of the rows of a table.

    nlp, task, on_progress: See `make_docs`.
    out (Path | Output): The output, see `write_docs`.
    labels (Sequence[str] | None): All labels of the task; None for those of the rows.
    n_skipped (int): Rows that were left out, for the summary.
    RETURNS (TableSummary): What was written.
    RAISES (BioclinError): A row has a label that is not one of the task.
    """
    counts = Counter(label for row in rows for label in row.labels)
    known = list(labels) if labels is not None else sorted(counts)
    for label in counts:
        if label not in known:  # it may be text from the wrong place of a file
            raise BioclinError(
                f"a text has a label that is not one of the task; {find_nearest(label, known)}want "
                f"{', '.join(known)}"
            )
    write_docs(make_docs(nlp, rows, known, task=task, on_progress=on_progress), out)
    scores = [row.score for row in rows if row.score is not None]
    return TableSummary(
        len(rows),
        n_skipped,
        {label: counts[label] for label in known},
        0 if scores else sum(not row.labels for row in rows),
        (min(scores), max(scores)) if scores else None,
    )


@without_context()
def read_table(
    path: Path,
    columns: Columns,
    *,
    separator: str | None = None,
    labels: Sequence[str] | None = None,
    plain_quotes: bool = False,
    on_bad: OnBadRow,
) -> list[LabeledText]:
    """Read a table, and check every row.

    path, columns, separator, labels, plain_quotes: See `convert_table`.
    on_bad (Callable): Called with the error of each bad row, which names file, line and column,
        but holds no text.
    RETURNS (list[LabeledText]): The good rows.
    RAISES (BioclinError): The file cannot be read, is of another format, lacks a column, or has no
        good rows.
    """
    rows: list[LabeledText] = []
    lines: dict[str, int] = {}  # of the ids
    names = [name for name in columns if name is not None]
    found = read_rows(path, names, plain_quotes=plain_quotes)
    for number, (line, values) in enumerate(found, start=1):
        try:
            if isinstance(values, BioclinError):
                raise values
            row = _parse_row(values, columns, separator, labels, f"{path.stem}-{number}")
            if row.id in lines:
                raise BioclinError(
                    f"column {columns.id}: the row at line {lines[row.id]} has the same id; "
                    "ids must differ"
                )
        except BioclinError as error:
            on_bad(BioclinError(f"{path}, line {line}, {error}"))
        else:
            lines[row.id] = line
            rows.append(row)
    if not rows:
        raise BioclinError(f"{path}: no rows to convert")
    return rows


def make_docs(
    nlp: Language,
    rows: Sequence[LabeledText],
    labels: Iterable[str],
    *,
    task: str = "",
    on_progress: Callable[[float, int], None] = ignore,
) -> Iterator[Doc]:
    """Make the gold Docs of the rows of a table.

    nlp (Language): Tokenizes; its components run too (sentences).
    labels (Iterable[str]): All labels of the task, in the order that `doc.cats` gets.
    task (str): Name of the task.
    on_progress (Callable): See `convert_table`.
    YIELDS (Doc): The Docs, in order.
    """
    known = list(labels)
    for number, row in enumerate(rows, start=1):
        doc = nlp(make_pair(nlp, *row.texts) if len(row.texts) > 1 else row.texts[0])
        if row.score is not None:
            doc.cats = {SCORE: row.score}
        else:
            doc.cats = {label: float(label in row.labels) for label in known}
        doc.user_data[GOLD_KEY] = {"id": row.id, "task": task, "layers": {}}
        yield doc
        on_progress(number / len(rows), number)


def _parse_row(
    values: dict[str, Any],
    columns: Columns,
    separator: str | None,
    labels: Sequence[str] | None,
    default_id: str,
) -> LabeledText:
    """Make a row from the values of its columns.

    RAISES (BioclinError): Something is wrong with a column; the message begins with it.
    """
    names = [name for name in (columns.text, columns.second) if name is not None]
    texts = tuple(_read_string(values, name) for name in names)
    for name, text in zip(names, texts, strict=True):
        if not text.strip():
            what = "a pair with one text" if any(map(str.strip, texts)) else "empty"
            raise BioclinError(f"column {name}: {what}")
    id = default_id if columns.id is None else _read_name(values, columns.id)
    if columns.score is not None:
        return LabeledText(id, texts, (), _read_score(values, columns.score))
    assert columns.label is not None
    found = _read_labels(values, columns.label, separator)
    for label in found:
        if labels is not None and label not in labels:
            raise BioclinError(
                f"column {columns.label}: a label that is not in --labels; "
                f"{find_nearest(label, labels)}want {', '.join(labels)}"
            )
    return LabeledText(id, texts, found, None)


def _read_labels(values: dict[str, Any], column: str, separator: str | None) -> tuple[str, ...]:
    """Read the labels of a row, each once.

    RAISES (BioclinError): There are too many or too few, or one cannot be a label.
    """
    parts = [values[column]]
    if isinstance(parts[0], list):
        parts = parts[0]
    elif separator is not None and isinstance(parts[0], str):
        parts = parts[0].split(separator) if parts[0].strip() else []
    elif separator is not None and parts[0] is None:
        parts = []
    found = tuple(dict.fromkeys(_read_name({column: part}, column) for part in parts))
    if len(found) != 1 and separator is None:
        raise BioclinError(
            f"column {column}: {len(found)} labels; with --separator, a row may have none or "
            "several"
        )
    if SCORE in found:
        raise BioclinError(
            f"column {column}: a label cannot be {SCORE!r}, the key of graded scores in doc.cats"
        )
    return found


def _read_string(values: dict[str, Any], column: str) -> str:
    """Read a text.

    RAISES (BioclinError): It is none, or no file of Docs can hold it.
    """
    value = "" if values[column] is None else values[column]
    if not isinstance(value, str):
        raise BioclinError(f"column {column}: not a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise BioclinError(f"column {column}: has half a surrogate pair") from None
    return value


def _read_name(values: dict[str, Any], column: str) -> str:
    """Read a label or an id, without white space around it.

    RAISES (BioclinError): It is empty, or cannot be one.
    """
    value = values[column]
    if isinstance(value, bool | int):
        value = json.dumps(value)
    name = _read_string({column: value}, column).strip()
    if not name:
        raise BioclinError(f"column {column}: empty")
    if len(name) > MAX_LABEL or not name.isprintable():
        raise BioclinError(
            f"column {column}: longer than {MAX_LABEL} characters or with control characters; is "
            "this the right column?"
        )
    return name


def _read_score(values: dict[str, Any], column: str) -> float:
    value = values[column]
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError
        score = float(value)
        if not math.isfinite(score):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise BioclinError(f"column {column}: not a finite number, such as 3.5") from None
    return score
