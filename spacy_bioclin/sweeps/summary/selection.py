"""Summarize the scores of a sweep and select its best runs: on dev, never on test."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...errors import BioclinError
from ..results import DONE, get_value
from ..scoring import STRICT
from .protocols import apply_protocols

Result = Mapping[str, Any]
# The rows of the papers' tables. Everything else but the seed and the fold is a configuration.
GROUP = ("task", "encoder", "strategy")
RUN = ("seed", "fold")
SCORES = ("value", "p", "r", "f")  # of a split; only strict scores of entities have all


def has_failed(result: Result, failed_below: float) -> bool:
    """Tell whether a trial has failed as in Mosbach et al. (2021), judged on dev: it did not end
    well, or learned next to nothing."""
    return result["status"] != DONE or get_value(result["dev"]) < failed_below


def summarize(results: Sequence[Result], failed_below: float) -> dict[str, Any]:
    """Compute all statistics of a sweep.

    Means, medians and deviations are over all runs with a score, those below `failed_below`
    included. Runs without a score (diverged, crashed) only count as failed.

    results (Sequence[Result]): One per trial: `trial` (task, encoder, strategy, learn_rate, seed,
        …), `status`, and `dev`, `test` with value, the score, and for entities p, r, f, all
        between 0 and 1; both None unless done.
    failed_below (float): Score on dev below which a trial has failed.
    RETURNS (dict[str, Any]): `failed_below`, and `groups`, one for each task, encoder and strategy:
        these three, `model` (the encoder, with the strategy if the sweep has several), `score`
        (name of the metric), `joint` (tasks that were trained together), `trials`, statistics of
        all runs, `failed`, `configurations` (what differs besides the seed and the fold, mostly
        the rate) with statistics and the `run` that is best on dev, `best`: the configuration
        chosen on dev by its best run (`by_run`), by the median (`by_median`) and by the mean of its
        runs (`by_mean`), and `papers`, see `apply_protocols`. Ready for JSON.
    RAISES (BioclinError): There is no result.
    """
    if not results:
        raise BioclinError("The sweep has no results to summarize; run at least one trial.")
    grouped = _group_by(lambda result: tuple(result["trial"][key] for key in GROUP), results)
    several = len({strategy for _, _, strategy in grouped}) > 1
    groups = [
        {
            "task": task,
            "encoder": encoder,
            "strategy": strategy,
            "model": f"{encoder}, {strategy}" if several else encoder,
            "score": runs[0]["settings"].get("score", STRICT),
            "joint": runs[0]["settings"].get("joint", []),
            **_summarize_group(runs, failed_below),
        }
        for (task, encoder, strategy), runs in grouped.items()
    ]
    return {"failed_below": failed_below, "groups": groups}


def find_best_runs(results: Iterable[Result], group: Mapping[str, Any]) -> list[Result]:
    """Find the scored runs of a group at the configuration whose mean is best on dev.

    group (Mapping[str, Any]): One of the `groups` of `summarize`.
    RETURNS (list[Result]): Empty if no run has a score.
    """
    best = group["best"]["by_mean"]
    return [
        result
        for result in select_group(results, group)
        if best is not None
        and result["test"] is not None
        and all(best.get(key) == value for key, value in _get_configuration(result).items())
    ]


def select_group(results: Iterable[Result], group: Mapping[str, Any]) -> list[Result]:
    """Select the results of a group of `summarize`."""
    return [one for one in results if all(one["trial"][key] == group[key] for key in GROUP)]


def describe(values: Sequence[float]) -> dict[str, float | None]:
    """Compute statistics of a sample.

    RETURNS (dict): `n`, `mean`, `sd` (with n - 1), `median`, `min` and `max`; None for those that
        need more values.
    """
    if not values:
        return {"n": 0, "mean": None, "sd": None, "median": None, "min": None, "max": None}
    return {
        "n": len(values),
        "mean": statistics.fmean(values),
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


def _group_by(key: Callable[[Result], Any], results: Iterable[Result]) -> dict[Any, list[Result]]:
    """Group results by a key, in order of first appearance."""
    groups: dict[Any, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def _get_configuration(result: Result) -> dict[str, Any]:
    """Get the trial without its group, its seed and its fold."""
    return {key: value for key, value in result["trial"].items() if key not in (*GROUP, *RUN)}


def _summarize_group(results: Sequence[Result], failed_below: float) -> dict[str, Any]:
    failed = [result for result in results if has_failed(result, failed_below)]
    grouped = _group_by(lambda result: tuple(_get_configuration(result).items()), results)
    configurations = [
        {
            **_get_configuration(runs[0]),
            "learn_rate_used": runs[0]["settings"]["learn_rate"],
            "trials": len(runs),
            "failed": sum(has_failed(run, failed_below) for run in runs),
            **_describe_scores(runs),
            "run": _find_best_run(runs),
        }
        for runs in grouped.values()
    ]
    scored = [one for one in configurations if one["run"] is not None]

    def find_best(statistic: str) -> dict[str, Any] | None:
        return max(scored, key=lambda one: one["dev"]["value"][statistic], default=None)

    return {
        "trials": len(results),
        **_describe_scores(results),
        "failed": [
            {
                **{key: value for key, value in run["trial"].items() if key not in GROUP},
                "status": run["status"],
                "dev_f": run["dev"] and get_value(run["dev"]),
                "error": run["error"],
            }
            for run in failed
        ],
        "configurations": configurations,
        "best": {
            "by_run": find_best("max"),
            "by_median": find_best("median"),
            "by_mean": find_best("mean"),
        },
        "papers": apply_protocols(list(grouped.values())),
    }


def _describe_scores(results: Sequence[Result]) -> dict[str, Any]:
    """Compute the statistics of the scores on dev and test."""
    return {
        split: {
            key: describe(
                [
                    scores[key]
                    for result in results
                    if (scores := _get_scores(result, split)) and key in scores
                ]
            )
            for key in SCORES
        }
        for split in ("dev", "test")
    }


def _get_scores(result: Result, split: str) -> dict[str, float]:
    """Get the scores of a split that are numbers; none unless the trial is done."""
    scores = result[split]
    if scores is None:
        return {}
    return {key: scores[key] for key in SCORES if key in scores} | {"value": get_value(scores)}


def _find_best_run(runs: Sequence[Result]) -> dict[str, Any] | None:
    """Find the run that is best on dev, and when in its training that was."""
    scored = [run for run in runs if run["dev"] is not None]
    if not scored:
        return None
    run = max(scored, key=lambda run: get_value(run["dev"]))
    return {
        **{key: run["trial"][key] for key in RUN if key in run["trial"]},
        "step": run["best_step"],
        "epoch": run["best_epoch"],
        "dev": _get_scores(run, "dev"),
        "test": _get_scores(run, "test"),
    }
