"""Table 2 of Mulyar and McInnes (2020): one encoder for all tasks beside one for each."""

from collections.abc import Sequence

from ..entries import Published
from .table import MISSING, OURS, Statistics, Table, describe_scores, format_percent


def make_mulyar_table(summary: Statistics, published: Sequence[Published] = ()) -> Table:
    """Make table 2 of Mulyar and McInnes (2020), in percent: a row for each task and model, with
    the score of a pipeline for all tasks, that of a pipeline for this task, and the difference.

    published (Sequence[Published]): Rows with joint, single or both.
    """
    cells: dict[tuple[str, str, str], tuple[float | None, float | None]] = {}
    for row in published:
        if row.joint is not None or row.single is not None:
            cells[row.task, row.model, row.source] = row.joint, row.single
    groups = [group for group in summary["groups"] if group["papers"]["mulyar"]]
    together = {
        (task, group["model"]): score
        for group in groups
        for task, score in group["papers"]["mulyar"]["tasks"].items()
    }
    alone = {
        (group["task"], group["model"]): group["papers"]["mulyar"]["value"]
        for group in groups
        if not group["joint"]
    }
    for task, model in [*alone, *together]:
        score = together.get((task, model)), alone.get((task, model))
        cells[task, model, OURS] = score
    rows = [
        [task, model, source, _show(joint), _show(single), _show_difference(joint, single)]
        for wanted in dict.fromkeys(task for task, _, _ in cells)
        for (task, model, source), (joint, single) in cells.items()
        if task == wanted
    ]
    head = ["Task", "Model", "From", "Joint", "Single", "Difference"]
    note = (
        "Test scores in percent. Joint: of the run whose mean over its tasks is best; single: of "
        "the best run. As in the paper, these runs are selected on the split that they are scored "
        "on, so that the scores are too high; the other tables choose on dev."
    )
    return Table("One encoder for all tasks", head, rows, note + describe_scores(summary))


def _show(score: float | None) -> str:
    return format_percent(None if score is None else (score, None))


def _show_difference(joint: float | None, single: float | None) -> str:
    if joint is None or single is None:
        return MISSING
    return f"{100 * (joint - single):+.1f}"
