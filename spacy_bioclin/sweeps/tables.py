"""The tables of the papers, from the figures of a sweep, with published rows beside them."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Figures = Mapping[str, Any]
# What papers print: rows with task, model, source, and what their table shows, between 0 and 1:
# f, p, r, best (each [mean, sd]), learn_rate and epoch; or median; or mean ([mean, sd]).
Published = Sequence[Mapping[str, Any]]
NOTHING = "–"
OURS = "ours"


class Table(NamedTuple):
    """A table of text.

    note (str): What must be known to read it.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str


def as_markdown(table: Table) -> str:
    """RETURNS (str): The table with title and note; pipes in cells are escaped."""
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines]
    return "\n".join([f"### {table.title}", "", *body, "", table.note, ""])


def carrino_table(summary: Figures, published: Published = ()) -> Table:
    """Table 2 of Carrino et al. (2022).

    summary (Figures): From `summarize`.
    published (Published): The paper's rows; every task has them before ours.
    RETURNS (Table): Of each task and model: mean ± sd of F1, precision and recall over all
        configurations and seeds, and F1 of the configuration with the best run on dev.
    """
    name = model_names(summary)
    rows = []
    for task in _tasks(summary, published):
        for row in published:
            if row["task"] == task and "f" in row:
                scores = [_pair(row.get(key), 2) for key in ("f", "p", "r", "best")]
                chosen = [show_rate(row.get("learn_rate")), _epoch(row.get("epoch"))]
                rows.append([task, row["model"], row["source"], *scores, *chosen, "", ""])
        for group in (group for group in summary["groups"] if group["task"] == task):
            scores, chosen = [_spread(group["test"][key]) for key in "fpr"], [NOTHING] * 3
            if best := group["best"]["by_run"]:
                chosen = [_spread(best["test"]["f"]), show_rate(best["learn_rate_used"])]
                chosen += [_epoch(best["run"]["epoch"])]
            counts = [str(group["test"]["f"]["n"]), str(len(group["failed"]))]
            rows.append([task, name(group), OURS, *scores, *chosen, *counts])
    head = ["Task", "Model", "From", "F1 (all)", "P (all)", "R (all)", "F1 (best)", "LR", "Epoch"]
    head += ["Runs", "Failed"]
    note = (
        "Test scores, mean ± sd. All: every rate and seed. Best: the seeds of the rate of the run "
        "that is best on dev; epoch: that run's. LR: as used, the grid's times the encoder's scale."
    )
    return Table("Average of all configurations, and best on dev", head, rows, note)


def lewis_table(summary: Figures, published: Published = ()) -> Table:
    """Table 2 of Lewis et al. (2020): the median of the seeds, at the rate whose median is best on
    dev, in percent; a row for each task, a column for each model."""

    def ours(group: Figures) -> tuple[float, str] | None:
        best = group["best"]["by_median"]
        return best and _percent(best["test"]["f"]["median"])

    def theirs(row: Figures) -> tuple[float, str] | None:
        return _percent(row["median"]) if "median" in row else None

    note = "Test F1 in percent: median of the seeds, at the rate whose median is best on dev."
    return _table_of_models("Median of the seeds", note, summary, published, ours, theirs)


def blue_table(summary: Figures, published: Published = ()) -> Table:
    """The table of ouBioBERT's BLUE: mean (sd) of the seeds, at the rate whose mean is best on dev,
    in percent; a row for each task, a column for each model."""

    def cell(mean: float, sd: float | None) -> tuple[float, str]:
        return mean, f"{100 * mean:.1f}" + ("" if sd is None else f" ({100 * sd:.1f})")

    def ours(group: Figures) -> tuple[float, str] | None:
        best = group["best"]["by_mean"]
        return best and cell(best["test"]["f"]["mean"], best["test"]["f"]["sd"])

    def theirs(row: Figures) -> tuple[float, str] | None:
        return cell(*row["mean"]) if "mean" in row else None

    note = "Test F1 in percent: mean (sd) of the seeds, at the rate whose mean is best on dev."
    return _table_of_models("Mean (sd) of the seeds", note, summary, published, ours, theirs)


def _table_of_models(
    title: str,
    note: str,
    summary: Figures,
    published: Published,
    ours: Callable[[Figures], tuple[float, str] | None],
    theirs: Callable[[Figures], tuple[float, str] | None],
) -> Table:
    """
    ours, theirs (Callable): A group, a published row -> its figure and how it is shown.
    RETURNS (Table): With the mean over those tasks that every model has, if they are several.
    """
    name = model_names(summary)
    cells: dict[str, dict[str, tuple[float, str]]] = {}  # model -> task -> figure
    tasks = _tasks(summary, published)
    for task in tasks:
        for row in published:
            if row["task"] == task and (figure := theirs(row)):
                cells.setdefault(f"{row['model']} ({row['source']})", {})[task] = figure
    for group in summary["groups"]:
        of_model = cells.setdefault(f"{name(group)} ({OURS})", {})
        if figure := ours(group):
            of_model[group["task"]] = figure
    tasks = [task for task in tasks if any(task in of_model for of_model in cells.values())]
    rows = [
        [task, *(of_model[task][1] if task in of_model else NOTHING for of_model in cells.values())]
        for task in tasks
    ]
    shared = [task for task in tasks if all(task in of_model for of_model in cells.values())]
    if len(shared) > 1:
        means = [
            statistics.fmean(of_model[task][0] for task in shared) for of_model in cells.values()
        ]
        rows.append([f"Mean of {len(shared)} tasks", *(f"{100 * mean:.1f}" for mean in means)])
    return Table(title, ["Task", *cells], rows, note)


def spread_table(summary: Figures) -> Table:
    """Every statistic of the test F1 over all configurations and seeds, and the failed runs."""
    name = model_names(summary)
    rows = []
    for group in summary["groups"]:
        figures = group["test"]["f"]
        keys = ("mean", "sd", "median", "min", "max")
        shown = [NOTHING if figures[key] is None else f"{figures[key]:.4f}" for key in keys]
        failed = f"{len(group['failed'])} of {group['trials']}"
        rows.append([group["task"], name(group), str(figures["n"]), *shown, failed])
    head = ["Task", "Model", "Runs", "Mean", "Sd", "Median", "Min", "Max", "Failed"]
    limit = summary["failed_below"]
    note = (
        "Test F1 of all rates and seeds. Failed: stopped, diverged, or an F1 on dev below "
        f"{limit:g} (these count in the mean)."
    )
    return Table("Spread of all runs", head, rows, note)


def rate_table(summary: Figures) -> Table:
    """Test F1 at each learning rate: mean ± sd of the seeds."""
    name = model_names(summary)
    of_group = [
        {one["learn_rate"]: one["test"]["f"] for one in group["configurations"]}
        for group in summary["groups"]
    ]
    rates = sorted({rate for one in of_group for rate in one})
    rows = [
        [group["task"], name(group), *(_spread(one[rate]) if rate in one else "" for rate in rates)]
        for group, one in zip(summary["groups"], of_group, strict=True)
    ]
    note = "Test F1, mean ± sd of the seeds."
    return Table("By learning rate", ["Task", "Model", *map(show_rate, rates)], rows, note)


def search_table(summary: Figures) -> Table:
    """The configurations of a search, the best on dev first."""
    name = model_names(summary)
    figures = ("learn_rate", "learn_rate_used", "trials", "failed", "dev", "test", "run", "sample")
    rows = []
    for group in summary["groups"]:
        scored = [one for one in group["configurations"] if one["run"] is not None]
        for one in sorted(scored, key=lambda one: -one["dev"]["f"]["mean"]):
            chosen = {key: value for key, value in one.items() if key not in figures}
            shown = [
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in chosen.items()
            ]
            rows.append([group["task"], name(group), str(one["sample"]), ", ".join(shown)])
            rows[-1] += [show_rate(one["learn_rate_used"]), _spread(one["dev"]["f"])]
            rows[-1] += [_spread(one["test"]["f"])]
    head = ["Task", "Model", "Sample", "Settings", "LR", "F1 on dev", "F1 on test"]
    note = "Mean ± sd of the seeds. The search knows the mean on dev and nothing of test."
    return Table("Search", head, rows, note)


def failure_table(summary: Figures) -> Table | None:
    """RETURNS (Table | None): The failed runs, one a row, with the error of those that have one."""
    name = model_names(summary)
    rows = []
    for group in summary["groups"]:
        for run in group["failed"]:
            dev = NOTHING if run["dev_f"] is None else f"{run['dev_f']:.4f}"
            rate, error = show_rate(run["learn_rate"]), run["error"] or ""
            seed, status = str(run["seed"]), run["status"]
            rows.append([group["task"], name(group), rate, seed, status, dev, error])
    head = ["Task", "Model", "LR", "Seed", "Status", "F1 on dev", "Error"]
    return Table("Failed runs", head, rows, "") if rows else None


def comparison_table(comparisons: Sequence[Figures]) -> Table | None:
    """
    comparisons (Sequence[Figures]): `task`, `model`, `baseline`, and of each way of resampling
        (`documents`, `documents_and_seeds`): difference, low, high, p; or None.
    RETURNS (Table | None): None if nothing was compared.
    """

    def shown(found: Figures | None) -> list[str]:
        if found is None:
            return [NOTHING, NOTHING]
        return [f"{100 * found['low']:+.2f} to {100 * found['high']:+.2f}", f"{found['p']:.4f}"]

    rows = [
        [
            *(one["task"], one["model"], one["baseline"]),
            f"{100 * one['documents']['difference']:+.2f}",
            *shown(one["documents"]),
            *shown(one["documents_and_seeds"]),
        ]
        for one in comparisons
    ]
    head = ["Task", "Model", "Against", "Difference", "95 % interval", "p"]
    head += ["95 %, seeds too", "p, seeds too"]
    note = (
        "Points of test F1, means of the seeds at the rate whose mean is best on dev. Paired "
        "bootstrap over documents: of these very runs, and with the seeds drawn anew."
    )
    return Table("Paired comparison", head, rows, note) if rows else None


def model_names(summary: Figures) -> Callable[[Figures], str]:
    """RETURNS (Callable): Group -> its name: the encoder, and the strategy if the sweep has more
    than one."""
    several = len({group["strategy"] for group in summary["groups"]}) > 1
    return lambda group: f"{group['encoder']}, {group['strategy']}" if several else group["encoder"]


def _tasks(summary: Figures, published: Published) -> list[str]:
    """RETURNS (list[str]): Ours first, then those that only the paper has."""
    ours = [group["task"] for group in summary["groups"]]
    return list(dict.fromkeys([*ours, *(row["task"] for row in published)]))


def _spread(figures: Figures) -> str:
    return NOTHING if not figures["n"] else _pair((figures["mean"], figures["sd"]), 3)


def _pair(pair: Sequence[Any] | None, digits: int) -> str:
    """RETURNS (str): "0.8913±0.01", with so many digits of the sd."""
    if pair is None:
        return NOTHING
    mean, sd = pair
    return f"{mean:.4f}" if sd is None else f"{mean:.4f}±{sd:.{digits}f}"


def _percent(value: float) -> tuple[float, str]:
    return value, f"{100 * value:.1f}"


def _epoch(epoch: float | None) -> str:
    return NOTHING if epoch is None else f"{epoch:.1f}".removesuffix(".0")


def show_rate(rate: float | None) -> str:
    """RETURNS (str): 5e-5 for 0.00005."""
    if rate is None:
        return NOTHING
    digits, _, power = f"{rate:.3e}".partition("e")
    return f"{float(digits):g}e{int(power)}"
