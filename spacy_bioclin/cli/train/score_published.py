"""The published metric of a task, beside the published figures of the catalogue."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import BioclinError
from ..tables import print_table
from .score_checks import warn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from spacy.language import Language
    from spacy.tokens import Doc

    from ...catalog.tasks import Task

COLUMNS = ("System", "Score", "Metric", "Source")
OURS = "this pipeline"


class Predictions(NamedTuple):
    """What a pipeline has found in a corpus.

    references (Sequence[Doc]): The gold Docs.
    predicted (Sequence[Doc]): The same texts, annotated by the pipeline.
    given (Mapping[str, Sequence[Doc]]): `relations_key` -> the same texts with the gold entities,
        and the relations that the pipeline finds between them.
    layers (Collection[str]): The layers of spans that both have.
    """

    references: "Sequence[Doc]"
    predicted: "Sequence[Doc]"
    given: "Mapping[str, Sequence[Doc]]"
    layers: "Collection[str]"


def find_scored_task(name: str, nlp: "Language") -> "Task":
    """Look up the task whose metric is wanted.

    RAISES (BioclinError): There is no such task, or the pipeline finds nothing of its kind.
    """
    from ...catalog.tasks import find_task
    from ...evaluation.components import find_category_components, find_relation_components

    task = find_task(name)
    found = {
        "relations": find_relation_components(nlp),
        "pairs": find_category_components(nlp),
        "texts": find_category_components(nlp),
    }
    if not found.get(task.kind, True):
        raise BioclinError(
            f"--task {name}: its metric {task.score} is of {task.kind}, and no component of the "
            f"pipeline finds any; it has {', '.join(nlp.pipe_names) or 'no components'}"
        )
    return task


def score_published(name: str, task: "Task", nlp: "Language", docs: Predictions) -> dict[str, Any]:
    """Compute the published metric of a task. Relations are those between the gold entities.

    name (str): Name of the task.
    RETURNS (dict[str, Any]): "task", "metric", "title", "value" and details of the metric, and
        "rows", the published figures in percent. Ready for JSON.
    """
    from spacy.training import Example

    from ...evaluation.published import find_metric, make_scoring

    metric = find_metric(task.score)
    scoring = make_scoring(
        nlp,
        layers=sorted(docs.layers),
        classes=task.classes,
        exclusive=task.exclusive,
        positive=task.positive,
        relations=task.relations,
    )
    predicted = docs.predicted
    if task.kind == "relations":
        predicted = docs.given.get(scoring.relations_key, ())
    pairs = zip(predicted, docs.references, strict=bool(predicted))
    scores = metric.score([Example(*pair) for pair in pairs], scoring)
    rows = [
        {
            "system": row.system,
            "percent": row.value,
            "metric": row.metric or task.score,
            "source": row.source,
            "note": row.note,
        }
        for row in task.published
    ]
    return {"task": name, "metric": task.score, "title": metric.title, **scores, "rows": rows}


def print_published(published: dict[str, Any]) -> None:
    """Print the published metric of a task as a table, ours first.

    published (dict[str, Any]): See `score_published`.
    """
    value = published["value"]
    if value is None:
        warn(
            f"{published['metric']} has no value: the corpus is not annotated for it, or it is a "
            "correlation that is not defined"
        )
    ours = "–" if value is None else f"{100 * value:.2f}"
    rows = [(OURS, ours, published["metric"], "")]
    for row in published["rows"]:
        source = f"{row['source']} ({row['note']})" if row["note"] else row["source"]
        percent = f"{row['percent']:.2f}".removesuffix("0")  # as printed, with one or two digits
        rows.append((row["system"], percent, row["metric"], source))
    title = f"{published['task']}: {published['title']}, in %"
    print_table(rows, COLUMNS, title=title, right=("Score",))
