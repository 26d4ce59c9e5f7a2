"""Tables with a row for each task and a column for each model, and means over groups of tasks."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..entries import Published, PublishedMeans
from .table import (
    MISSING,
    OURS,
    Score,
    Statistics,
    Table,
    describe_scores,
    format_percent,
    list_tasks,
)

Models = dict[str, dict[str, Score]]  # model -> task -> score
Groups = Mapping[str, Sequence[str]]  # name -> tasks
ALL = "all"


def make_lewis_table(
    summary: Statistics, published: Sequence[Published] = (), groups: Groups | None = None
) -> Table:
    """Make table 2 of Lewis et al. (2020): the median of the seeds at the rate whose median is best
    on dev, in percent; with folds, as `report_lewis` says.

    published (Sequence[Published]): Rows with a median, or with a score of another protocol.
    groups (Mapping[str, Sequence[str]] | None): Name -> tasks, in the order of the rows; each has a
        row with its mean.
    """
    models: Models = {}
    for row in published:
        score = row.score if row.median is None else row.median
        if score is not None:
            models.setdefault(f"{row.model} ({row.source})", {})[row.task] = (score, None)
    ours = _collect_ours(summary, models, "lewis", lambda found: (found["value"], None))
    title = "Median of the seeds"
    note = (
        "Test scores in percent: median of the seeds, at the rate whose median is best on dev. "
        "With folds: the rate is chosen on the first, the median is that of the others."
    )
    rows = _make_rows(summary, published, models, groups or {})
    means = _list_means(groups or {}, ours)
    rows += _make_mean_rows(models, means, partial(_take_mean, models))
    return Table(title, ["Task", *models], rows, note + describe_scores(summary))


def make_blue_table(summary: Statistics, published: Sequence[Published] = ()) -> Table:
    """Make the table of ouBioBERT's BLUE: mean (sd) of the seeds at the rate whose mean is best on
    dev, in percent. The last row is the total: the mean of the tasks for each seed, and of these
    mean and deviation."""
    models: Models = {}
    for row in published:
        if row.mean is not None:
            models.setdefault(f"{row.model} ({row.source})", {})[row.task] = row.mean
    ours = _collect_ours(summary, models, "blue", lambda found: (found["value"], found["sd"]))
    by_seed = {
        (f"{group['model']} ({OURS})", group["task"]): group["papers"]["blue"]["by_seed"]
        for group in _list_scored(summary, "blue")
    }

    def take_total(model: str, tasks: Sequence[str]) -> Score:
        of_tasks = [by_seed.get((model, task)) for task in tasks]
        seeds = set.intersection(*(set(own or ()) for own in of_tasks))
        totals = [statistics.fmean(own[seed] for own in of_tasks if own) for seed in sorted(seeds)]
        if not totals:
            return _take_mean(models, model, tasks)
        return statistics.fmean(totals), statistics.stdev(totals) if len(totals) > 1 else None

    rows = _make_rows(summary, published, models, {})
    rows += _make_mean_rows(models, _list_means({}, ours), take_total)
    note = (
        "Test scores in percent: mean (sd) of the seeds, at the rate whose mean is best on dev. "
        "With folds, a seed has the mean over them."
    )
    title = "Mean (sd) of the seeds"
    return Table(title, ["Task", *models], rows, note + describe_scores(summary))


def make_means_table(
    summary: Statistics, published: Sequence[PublishedMeans], groups: Groups
) -> Table | None:
    """Make tables 3 and 6 of Lewis et al. (2020): means over groups of tasks, a row for each model.

    published (Sequence[PublishedMeans]): Rows of the paper, over all tasks of a group.
    groups (Mapping[str, Sequence[str]]): Name -> tasks.
    RETURNS (Table | None): None if no means are published.
    """
    if not published:
        return None
    names = [*groups, ALL]
    rows = [
        [row.model, row.source, *(_format_mean(row.means.get(name)) for name in names)]
        for row in published
    ]
    models: Models = {}
    _collect_ours(summary, models, "lewis", lambda found: (found["value"], None))
    for model, scores in models.items():
        cells = []
        for tasks in [*groups.values(), _join(groups)]:
            own = [scores[task][0] for task in tasks if task in scores]
            mean = _format_mean(statistics.fmean(own) if own else None)
            cells.append(f"{mean} ({len(own)} of {len(tasks)})" if own else mean)
        rows.append([model.removesuffix(f" ({OURS})"), OURS, *cells])
    note = (
        "Means of the medians in percent. Published: over all tasks of the group. Ours: over those "
        "that are there, (n of all), so that they are comparable only if n is all."
    )
    return Table("Means over groups of tasks", ["Model", "From", *names], rows, note)


def _format_mean(mean: float | None) -> str:
    return MISSING if mean is None else f"{100 * mean:.1f}"


def _list_scored(summary: Statistics, paper: str) -> list[Statistics]:
    """List the groups of one task that have a score by the protocol of a paper."""
    return [
        group for group in summary["groups"] if not group["joint"] and group["papers"].get(paper)
    ]


def _collect_ours(
    summary: Statistics, models: Models, paper: str, get_score: Callable[[Any], Score]
) -> list[str]:
    """Add our models to those of the papers.

    RETURNS (list[str]): The tasks that all our models have.
    """
    ours: Models = {}
    for group in _list_scored(summary, paper):
        own = ours.setdefault(f"{group['model']} ({OURS})", {})
        own[group["task"]] = get_score(group["papers"][paper])
    models.update(ours)
    tasks = list(dict.fromkeys(group["task"] for group in summary["groups"]))
    return [task for task in tasks if ours and all(task in scores for scores in ours.values())]


def _make_rows(
    summary: Statistics, published: Sequence[Published], models: Models, groups: Groups
) -> list[list[str]]:
    """Make a row for each task that has a score."""
    known = list_tasks(summary, published)
    order = [task for task in _join(groups) if task in known]
    rows = []
    for task in dict.fromkeys([*order, *known]):
        found = [scores.get(task) for scores in models.values()]
        if any(found):
            rows.append([task, *map(format_percent, found)])
    return rows


def _join(groups: Groups) -> list[str]:
    """List the tasks of all groups, each once."""
    return list(dict.fromkeys(task for tasks in groups.values() for task in tasks))


class _Mean(NamedTuple):
    """A mean over tasks. name (str): What its row is called."""

    name: str
    tasks: list[str]


def _list_means(groups: Groups, ours: list[str]) -> list[_Mean]:
    """List the means that are shown, over those tasks of each group that all our models have."""
    if not groups:
        means = [_Mean(f"Mean of {len(ours)} tasks", ours)]
    else:
        means = []
        for name, tasks in [*groups.items(), (ALL, _join(groups))]:
            own = [task for task in tasks if task in ours]
            means.append(_Mean(f"Mean ({name}: {len(own)} of {len(tasks)} tasks)", own))
    return [mean for mean in means if len(mean.tasks) > 1]


def _make_mean_rows(
    models: Models, means: Sequence[_Mean], take_mean: Callable[[str, Sequence[str]], Score]
) -> list[list[str]]:
    """Make a row for each mean, with a cell for each model that has all its tasks.

    take_mean (Callable): Model and tasks -> the mean.
    """
    rows = []
    for name, tasks in means:
        cells = []
        for model, scores in models.items():
            complete = all(task in scores for task in tasks)
            cells.append(format_percent(take_mean(model, tasks) if complete else None))
        rows.append([name, *cells])
    return rows


def _take_mean(models: Models, model: str, tasks: Sequence[str]) -> Score:
    """Take the mean of a model's scores, without a deviation."""
    return statistics.fmean(models[model][task][0] for task in tasks), None
