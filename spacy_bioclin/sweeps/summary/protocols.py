"""The numbers that papers report, from the runs of a task: settings are chosen on dev."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ...evaluation.protocols import best_of_seeds, folds_median, mean_sd, median_of_seeds
from ..results import get_value

Run = Mapping[str, Any]
Runs = Sequence[Run]  # of one configuration
Figures = dict[str, Any]


def apply_protocols(configurations: Sequence[Runs]) -> dict[str, Figures | None]:
    """Compute what each paper would report for a task and a model.

    configurations (Sequence[Runs]): The results of each configuration, mostly of each learning
        rate.
    RETURNS (dict[str, dict | None]): "lewis", "blue" and "mulyar", each None if no run has a score.
        All have "value", "learn_rate" and "runs", the number of runs behind it. See `report_lewis`
        and the others. Ready for JSON.
    """
    scored = [[run for run in runs if run["dev"] is not None] for runs in configurations]
    scored = [runs for runs in scored if runs]
    return {
        "lewis": report_lewis(scored) if scored else None,
        "blue": report_blue(scored) if scored else None,
        "mulyar": report_mulyar(scored) if scored else None,
    }


def report_lewis(configurations: Sequence[Runs]) -> Figures | None:
    """Report the median of the seeds, as Lewis et al. (2020), at the configuration whose median is
    best on dev.

    With folds, the configuration is that whose median is best on dev of the first fold, and the
    value is the median over the others of the median of the seeds.

    RETURNS (dict | None): "folds": number of folds behind the value, 0 for one split. None if there
        are folds and no run of the others.
    """
    folds = _list_folds(configurations)
    if not folds:
        best = max(configurations, key=lambda runs: _take_median(runs, "dev"))
        value = _take_median(best, "test")
        return {"value": value, "learn_rate": _get_rate(best), "runs": len(best), "folds": 0}
    first = folds[0]
    scores: dict[str, dict[str, float | None]] = {}
    for index, runs in enumerate(configurations):
        by_fold = _group(runs, "fold")
        scores[str(index)] = {
            # Test of a fold is in train of the others: dev chooses here.
            fold: _take_median(own, "dev" if fold == first else "test")
            for fold, own in by_fold.items()
        }
    if not any(first in of_fold for of_fold in scores.values()):
        return None
    found = folds_median(scores, tuned_on=first)
    if found.setting is None or found.folds.value is None:
        return None
    best = configurations[int(found.setting)]
    runs = sum(run["trial"]["fold"] != first for run in best)
    return {
        "value": found.folds.value,
        "learn_rate": _get_rate(best),
        "runs": runs,
        "folds": found.folds.n,
    }


def report_blue(configurations: Sequence[Runs]) -> Figures:
    """Report mean and deviation of the seeds, as ouBioBERT (Wada et al., 2020) on BLUE, at the
    configuration whose mean is best on dev. With folds, the score of a seed is the mean over them.

    RETURNS (dict): "sd", None for one seed, and "by_seed": seed -> score.
    """
    best = max(configurations, key=lambda runs: statistics.fmean(_list(runs, "dev")))
    by_seed = {
        str(seed): statistics.fmean(_list(runs, "test"))
        for seed, runs in _group(best, "seed").items()
    }
    found = mean_sd(list(by_seed.values()))
    return {
        "value": found.value,
        "sd": found.sd,
        "learn_rate": _get_rate(best),
        "runs": len(best),
        "by_seed": by_seed,
    }


def report_mulyar(configurations: Sequence[Runs]) -> Figures:
    """Report the best run, as Mulyar and McInnes (2020): best on the split that it is scored on, so
    that the value is too high.

    RETURNS (dict): "seed", and "tasks": task -> score of this run, for tasks that were trained
        together; empty for one task.
    """
    runs = [run for runs in configurations for run in runs]
    found = best_of_seeds(_list(runs, "test"))
    best = next(run for run in runs if get_value(run["test"]) == found.value)
    tasks = best["test"].get("tasks", {})
    return {
        "value": found.value,
        "learn_rate": _get_rate([best]),
        "runs": found.n,
        "seed": best["trial"]["seed"],
        "tasks": {name: scores["value"] for name, scores in tasks.items()},
    }


def _list(runs: Runs, split: str) -> list[float]:
    """List the scores of runs on a split."""
    return [get_value(run[split]) for run in runs]


def _take_median(runs: Runs, split: str) -> float:
    value = median_of_seeds(_list(runs, split)).value
    assert value is not None  # all runs here have a score
    return value


def _list_folds(configurations: Sequence[Runs]) -> list[str]:
    """List the folds of runs in their order; none if the task has one split."""
    folds = {run["trial"].get("fold", "") for runs in configurations for run in runs}
    return sorted(folds - {""}, key=lambda fold: (len(fold), fold))


def _group(runs: Runs, key: str) -> dict[Any, list[Run]]:
    """Group runs by seed or fold."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(run["trial"][key], []).append(run)
    return groups


def _get_rate(runs: Runs) -> float:
    rate: float = runs[0]["settings"]["learn_rate"]
    return rate
