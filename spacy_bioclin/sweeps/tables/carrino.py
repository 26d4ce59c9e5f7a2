"""Table 2 of Carrino et al. (2022)."""

from collections.abc import Sequence

from ..entries import Published
from .table import (
    MISSING,
    OURS,
    Statistics,
    Table,
    describe_scores,
    format_pair,
    format_rate,
    format_spread,
    list_tasks,
    name_score,
)


def make_carrino_table(summary: Statistics, published: Sequence[Published] = ()) -> Table:
    """Make table 2 of Carrino et al. (2022).

    Each task and model has mean ± sd of F1, precision and recall over all configurations and seeds,
    and F1 of the configuration with the best run on dev. Tasks of other kinds have their score
    instead of F1.

    summary (Statistics): See `summarize`.
    published (Sequence[Published]): Rows of the paper, shown above ours.
    """
    rows = []
    for task in list_tasks(summary, published):
        for row in published:
            if row.task == task and row.f:
                scores = [format_pair(pair, 2) for pair in (row.f, row.p, row.r, row.best)]
                chosen = [format_rate(row.learn_rate), _format_epoch(row.epoch)]
                rows.append([task, row.model, row.source, *scores, *chosen, "", ""])
        for group in summary["groups"]:
            if group["task"] != task:
                continue
            scores = [format_spread(group["test"][key]) for key in ("value", "p", "r")]
            chosen = [MISSING] * 3
            if best := group["best"]["by_run"]:
                chosen = [format_spread(best["test"]["value"])]
                chosen += [format_rate(best["learn_rate_used"])]
                chosen += [_format_epoch(best["run"]["epoch"])]
            counts = [str(group["test"]["value"]["n"]), str(len(group["failed"]))]
            rows.append([task, group["model"], OURS, *scores, *chosen, *counts])
    score = name_score(summary).replace("score", "Score")
    head = ["Task", "Model", "From", f"{score} (all)", "P (all)", "R (all)", f"{score} (best)"]
    note = (
        "Test scores, mean ± sd. All: every rate and seed. Best: the seeds at the rate of the run "
        "that is best on dev; epoch: of that run. LR: as used, grid times scale of encoder."
    )
    title = "Average of all configurations, and best on dev"
    columns = [*head, "LR", "Epoch", "Runs", "Failed"]
    return Table(title, columns, rows, note + describe_scores(summary))


def _format_epoch(epoch: float | None) -> str:
    return MISSING if epoch is None else f"{epoch:.1f}".removesuffix(".0")
