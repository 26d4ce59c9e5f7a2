"""The tables of the papers from the statistics of a sweep, beside published rows."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..text import show_controls
from .plan import Published

Statistics = Mapping[str, Any]
Score = Sequence[Any]  # mean or median, and standard deviation or None
MISSING = "–"
OURS = "ours"  # source of rows and columns that are not published


class Table(NamedTuple):
    """A table of text.

    title (str): Title.
    head (list[str]): Names of the columns.
    rows (list[list[str]]): Cells.
    note (str): What a reader must know to read the table.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str


def to_markdown(table: Table) -> str:
    """Write a table with its title and note in Markdown; a cell stays on its line."""
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    body = ["| " + " | ".join(map(_escape_cell, row)) + " |" for row in lines]
    return "\n".join([f"### {table.title}", "", *body, "", table.note, ""])


def _escape_cell(cell: str) -> str:
    text = " ".join(show_controls(cell).splitlines())
    return text.replace("|", "\\|")


def make_carrino_table(summary: Statistics, published: Sequence[Published] = ()) -> Table:
    """Make table 2 of Carrino et al. (2022).

    Each task and model has mean ± sd of F1, precision and recall over all configurations and seeds,
    and F1 of the configuration with the best run on dev.

    summary (Statistics): See `summarize`.
    published (Sequence[Published]): Rows of the paper, shown above ours.
    """
    rows = []
    for task in _list_tasks(summary, published):
        for row in published:
            if row.task == task and row.f:
                scores = [_format_pair(pair, 2) for pair in (row.f, row.p, row.r, row.best)]
                chosen = [format_rate(row.learn_rate), _format_epoch(row.epoch)]
                rows.append([task, row.model, row.source, *scores, *chosen, "", ""])
        for group in summary["groups"]:
            if group["task"] != task:
                continue
            scores, chosen = [_format_spread(group["test"][key]) for key in "fpr"], [MISSING] * 3
            if best := group["best"]["by_run"]:
                chosen = [_format_spread(best["test"]["f"]), format_rate(best["learn_rate_used"])]
                chosen += [_format_epoch(best["run"]["epoch"])]
            counts = [str(group["test"]["f"]["n"]), str(len(group["failed"]))]
            rows.append([task, group["model"], OURS, *scores, *chosen, *counts])
    head = ["Task", "Model", "From", "F1 (all)", "P (all)", "R (all)", "F1 (best)", "LR", "Epoch"]
    note = (
        "Test scores, mean ± sd. All: every rate and seed. Best: the seeds at the rate of the run "
        "that is best on dev; epoch: of that run. LR: as used, grid times scale of encoder."
    )
    title = "Average of all configurations, and best on dev"
    return Table(title, [*head, "Runs", "Failed"], rows, note)


def make_lewis_table(summary: Statistics, published: Sequence[Published] = ()) -> Table:
    """Make table 2 of Lewis et al. (2020): the median of the seeds at the rate whose median is best
    on dev, in percent; a row for each task, a column for each model."""
    return _make_model_table(
        "Median of the seeds",
        "Test F1 in percent: median of the seeds, at the rate whose median is best on dev.",
        summary,
        published,
        lambda row: None if row.median is None else (row.median, None),
        "by_median",
        lambda f: (f["median"], None),
    )


def make_blue_table(summary: Statistics, published: Sequence[Published] = ()) -> Table:
    """Make the table of ouBioBERT's BLUE: mean (sd) of the seeds at the rate whose mean is best on
    dev, in percent; a row for each task, a column for each model."""
    return _make_model_table(
        "Mean (sd) of the seeds",
        "Test F1 in percent: mean (sd) of the seeds, at the rate whose mean is best on dev.",
        summary,
        published,
        lambda row: row.mean,
        "by_mean",
        lambda f: (f["mean"], f["sd"]),
    )


def _make_model_table(
    title: str,
    note: str,
    summary: Statistics,
    published: Sequence[Published],
    get_published: Callable[[Published], Score | None],
    best: str,
    get_score: Callable[[Statistics], Score],
) -> Table:
    """Make a table with a column for each model, and the mean over the tasks that all models have.

    get_published (Callable): Published row -> its score.
    best (str): Key of the configuration in `best` of a group.
    get_score (Callable): Statistics of the F1 of that configuration -> its score.
    """
    models: dict[str, dict[str, Score]] = {}  # model -> task -> score
    for row in published:
        if score := get_published(row):
            models.setdefault(f"{row.model} ({row.source})", {})[row.task] = score
    for group in summary["groups"]:
        scores = models.setdefault(f"{group['model']} ({OURS})", {})
        if chosen := group["best"][best]:
            scores[group["task"]] = get_score(chosen["test"]["f"])
    head, rows, shared = ["Task", *models], [], []
    for task in _list_tasks(summary, published):
        found = [scores.get(task) for scores in models.values()]
        if any(found):
            rows.append([task, *map(_format_percent, found)])
        if all(found):
            shared.append(task)
    if len(shared) > 1:
        means = [statistics.fmean(scores[task][0] for task in shared) for scores in models.values()]
        rows.append([f"Mean of {len(shared)} tasks", *(f"{100 * mean:.1f}" for mean in means)])
    return Table(title, head, rows, note)


def make_spread_table(summary: Statistics) -> Table:
    """Make a table of all statistics of the test F1 over all configurations and seeds."""
    rows = []
    for group in summary["groups"]:
        f = group["test"]["f"]
        shown = [_format_score(f[key]) for key in ("mean", "sd", "median", "min", "max")]
        failed = f"{len(group['failed'])} of {group['trials']}"
        rows.append([group["task"], group["model"], str(f["n"]), *shown, failed])
    head = ["Task", "Model", "Runs", "Mean", "Sd", "Median", "Min", "Max", "Failed"]
    note = (
        "Test F1 of all rates and seeds. Failed: stopped, diverged, or an F1 on dev below "
        f"{summary['failed_below']:g} (these count in the mean)."
    )
    return Table("Spread of all runs", head, rows, note)


def make_rate_table(summary: Statistics) -> Table:
    """Make a table of the test F1 at each learning rate, mean ± sd of the seeds."""
    configurations = [one for group in summary["groups"] for one in group["configurations"]]
    rates = sorted({one["learn_rate"] for one in configurations})
    rows = []
    for group in summary["groups"]:
        scores = {one["learn_rate"]: one["test"]["f"] for one in group["configurations"]}
        shown = [_format_spread(scores[rate]) if rate in scores else "" for rate in rates]
        rows.append([group["task"], group["model"], *shown])
    head = ["Task", "Model", *map(format_rate, rates)]
    return Table("By learning rate", head, rows, "Test F1, mean ± sd of the seeds.")


def make_search_table(summary: Statistics) -> Table:
    """Make a table of the configurations of a search, the best on dev first."""
    known = {"sample", "learn_rate", "learn_rate_used", "trials", "failed", "dev", "test", "run"}
    rows = []
    for group in summary["groups"]:
        scored = [one for one in group["configurations"] if one["run"] is not None]
        for one in sorted(scored, key=lambda one: -one["dev"]["f"]["mean"]):
            settings = [
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in one.items()
                if key not in known
            ]
            scores = [_format_spread(one[split]["f"]) for split in ("dev", "test")]
            shown = [str(one["sample"]), ", ".join(settings), format_rate(one["learn_rate_used"])]
            rows.append([group["task"], group["model"], *shown, *scores])
    head = ["Task", "Model", "Sample", "Settings", "LR", "F1 on dev", "F1 on test"]
    note = "Mean ± sd of the seeds. The search maximises the mean on dev and never sees test."
    return Table("Search", head, rows, note)


def make_failure_table(summary: Statistics) -> Table | None:
    """Make a table of the failed runs with their errors; None if no run has failed."""
    rows = []
    for group in summary["groups"]:
        for run in group["failed"]:
            trial = [
                group["task"],
                group["model"],
                format_rate(run["learn_rate"]),
                str(run["seed"]),
            ]
            rows.append([*trial, run["status"], _format_score(run["dev_f"]), run["error"] or ""])
    head = ["Task", "Model", "LR", "Seed", "Status", "F1 on dev", "Error"]
    return Table("Failed runs", head, rows, "") if rows else None


def make_comparison_table(comparisons: Sequence[Statistics]) -> Table | None:
    """Make a table of paired comparisons; None if nothing was compared.

    comparisons (Sequence[Statistics]): See `compare_models`.
    """
    rows = []
    for one in comparisons:
        difference = f"{100 * one['documents']['difference']:+.2f}"
        rows.append([one["task"], one["model"], one["baseline"], difference])
        for found in (one["documents"], one["documents_and_seeds"]):
            rows[-1] += (
                [MISSING, MISSING]
                if found is None
                else [
                    f"{100 * found['low']:+.2f} to {100 * found['high']:+.2f}",
                    f"{found['p']:.4f}",
                ]
            )
    head = ["Task", "Model", "Against", "Difference", "95 % interval", "p"]
    head += ["95 %, seeds too", "p, seeds too"]
    note = (
        "Points of test F1, means of the seeds at the rate whose mean is best on dev. Paired "
        "bootstrap: over the documents of these runs, and over documents and seeds."
    )
    return Table("Paired comparison", head, rows, note) if rows else None


def _list_tasks(summary: Statistics, published: Sequence[Published]) -> list[str]:
    """List our tasks, and then those that only the papers have."""
    ours = [group["task"] for group in summary["groups"]]
    return list(dict.fromkeys([*ours, *(row.task for row in published)]))


def _format_score(score: float | None) -> str:
    return MISSING if score is None else f"{score:.4f}"


def _format_spread(figures: Statistics) -> str:
    return _format_pair((figures["mean"], figures["sd"]) if figures["n"] else None, 3)


def _format_pair(pair: Score | None, digits: int) -> str:
    """Write mean and sd as "0.8913±0.01", with so many digits of the sd."""
    if pair is None:
        return MISSING
    mean, sd = pair
    return _format_score(mean) if sd is None else f"{mean:.4f}±{sd:.{digits}f}"


def _format_percent(score: Score | None) -> str:
    """Write mean and sd as "89.1 (1.2)"."""
    if score is None:
        return MISSING
    mean, sd = score
    return f"{100 * mean:.1f}" + ("" if sd is None else f" ({100 * sd:.1f})")


def _format_epoch(epoch: float | None) -> str:
    return MISSING if epoch is None else f"{epoch:.1f}".removesuffix(".0")


def format_rate(rate: float | None) -> str:
    """Write a learning rate as papers do: 5e-5 for 0.00005."""
    if rate is None:
        return MISSING
    digits, _, power = f"{rate:.3e}".partition("e")
    return f"{float(digits):g}e{int(power)}"
