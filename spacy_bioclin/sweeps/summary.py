"""Figures of a sweep from the results of its trials. Every choice is made on dev, none on test."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import BioclinError

Result = Mapping[str, Any]
# What a row of the papers' tables stands for; all else but the seed is a configuration.
GROUP = ("task", "encoder", "strategy")
FAILED_BELOW = 0.05


def has_failed(result: Result, failed_below: float) -> bool:
    """RETURNS (bool): Whether the trial did not end well, or learned next to nothing: a failed run
    in the sense of Mosbach et al. (2021), judged on dev."""
    return result["status"] != "done" or result["dev"]["f"] < failed_below


def summarize(results: Sequence[Result], failed_below: float = FAILED_BELOW) -> dict[str, Any]:
    """All figures of a sweep.

    Means, medians and deviations are over every run that has a score, those below `failed_below`
    included; runs without a score (diverged, crashed) are counted as failed and in nothing else.
    results (Sequence[Result]): One per trial: `trial` (task, encoder, strategy, learn_rate, seed,
        …), `status`, and `dev`, `test` with p, r, f between 0 and 1, both None unless done.
    failed_below (float): F1 on dev.
    RETURNS (dict[str, Any]): `failed_below`, and `groups`: of each task, encoder and strategy the
        number of trials, statistics of all runs, `failed`, `configurations` (what differs besides
        the seed, mostly the rate) with statistics and their `run` that is best on dev, and `best`:
        the configuration chosen on dev by its best run (`by_run`), by the median (`by_median`) and
        by the mean of its runs (`by_mean`). For JSON.
    RAISES (BioclinError): If there is no result.
    """
    if not results:
        raise BioclinError("The sweep has no results to summarize; run at least one trial.")
    groups = [
        {**dict(zip(GROUP, name, strict=True)), **_group(of_group, failed_below)}
        for name, of_group in _by(lambda result: _name(result), results).items()
    ]
    return {"failed_below": failed_below, "groups": groups}


def _name(result: Result) -> tuple[str, ...]:
    return tuple(result["trial"][key] for key in GROUP)


def _configuration(result: Result) -> dict[str, Any]:
    """RETURNS (dict): The trial without its group and its seed."""
    return {key: v for key, v in result["trial"].items() if key not in (*GROUP, "seed")}


def _by(key: Callable[[Result], Any], results: Iterable[Result]) -> dict[Any, list[Result]]:
    """RETURNS (dict): Results by a key, in order of first appearance."""
    found: dict[Any, list[Result]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return found


def _group(results: Sequence[Result], failed_below: float) -> dict[str, Any]:
    of_configuration = _by(lambda result: tuple(_configuration(result).items()), results)
    configurations = [
        {
            **_configuration(runs[0]),
            "learn_rate_used": runs[0]["settings"]["learn_rate"],
            "trials": len(runs),
            "failed": sum(has_failed(run, failed_below) for run in runs),
            **_scores(runs),
            "run": _best_run(runs),
        }
        for runs in of_configuration.values()
    ]
    scored = [one for one in configurations if one["run"] is not None]

    def best(figure: str) -> dict[str, Any] | None:
        return max(scored, key=lambda one: one["dev"]["f"][figure], default=None)

    return {
        "trials": len(results),
        **_scores(results),
        "failed": [_failure(result) for result in results if has_failed(result, failed_below)],
        "configurations": configurations,
        "best": {"by_run": best("max"), "by_median": best("median"), "by_mean": best("mean")},
    }


def _scores(results: Sequence[Result]) -> dict[str, Any]:
    """RETURNS (dict): `dev` and `test`: statistics of p, r and f."""
    return {
        split: {
            key: describe([result[split][key] for result in results if result[split] is not None])
            for key in "prf"
        }
        for split in ("dev", "test")
    }


def describe(values: Sequence[float]) -> dict[str, float | None]:
    """RETURNS (dict): `n`, mean, sd (of a sample: n - 1), median, min, max; None where there are
    too few values."""
    if not values:
        return {"n": 0, **dict.fromkeys(("mean", "sd", "median", "min", "max"))}
    return {
        "n": len(values),
        "mean": statistics.fmean(values),
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


def _best_run(runs: Sequence[Result]) -> dict[str, Any] | None:
    """RETURNS (dict | None): The run that is best on dev, and when in its training it was."""
    scored = [run for run in runs if run["dev"] is not None]
    if not scored:
        return None
    run = max(scored, key=lambda run: run["dev"]["f"])
    return {
        **{"seed": run["trial"]["seed"], "step": run["best_step"], "epoch": run["best_epoch"]},
        **{split: {key: run[split][key] for key in "prf"} for split in ("dev", "test")},
    }


def _failure(result: Result) -> dict[str, Any]:
    trial = {key: value for key, value in result["trial"].items() if key not in GROUP}
    dev = None if result["dev"] is None else result["dev"]["f"]
    return {**trial, "status": result["status"], "dev_f": dev, "error": result["error"]}


def runs_of(results: Iterable[Result], group: Mapping[str, Any]) -> list[Result]:
    """The scored runs of a group at the configuration whose mean is best on dev.

    group (Mapping[str, Any]): One of the `groups` of `summarize`.
    RETURNS (list[Result]): Empty if none has a score.
    """
    best = group["best"]["by_mean"]
    wanted = tuple(group[key] for key in GROUP)
    return [
        result
        for result in results
        if best is not None
        and _name(result) == wanted
        and result["test"] is not None
        and all(best.get(key) == value for key, value in _configuration(result).items())
    ]
