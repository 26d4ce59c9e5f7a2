"""Compare the models of a sweep with a baseline, by the bootstrap."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import BioclinError
from ...evaluation.bootstrap import LEVEL, PairedDifference, paired_f1_difference
from ..results import get_value
from .selection import Result, find_best_runs

Runs = Sequence[Result]


def compare_models(
    results: Sequence[Result], summary: Mapping[str, Any], against: str | None
) -> list[dict[str, Any]]:
    """Compare the test scores by a bootstrap, each model at its rate with the best mean on dev.
    Models without a score are left out.

    summary (Mapping[str, Any]): See `summarize`.
    against (str | None): See `write_report`.
    RETURNS (list[dict]): For each task and each model but the baseline: `task`, `model`,
        `baseline`, `difference` (model minus baseline), and `documents`, `documents_and_seeds` and
        `seeds`: difference, low, high and p. The first two need the counts of each document, which
        only strict F1 of entities without folds has; `seeds` is for other scores. What resamples
        seeds is None if one of the models has a single run.
    RAISES (BioclinError): `against` is not a model of the sweep.
    """
    models = list(dict.fromkeys(group["model"] for group in summary["groups"]))
    if against is not None and against not in models:
        raise BioclinError(f"model {against!r} is unknown, the sweep has: {'; '.join(models)}")
    runs: dict[str, dict[str, Runs]] = {}  # task -> model -> runs
    for group in summary["groups"]:
        if best := find_best_runs(results, group):
            runs.setdefault(group["task"], {})[group["model"]] = best
    comparisons = []
    for task, by_model in runs.items():
        baseline = against or next(iter(by_model))
        for model, own in by_model.items():
            if model != baseline and baseline in by_model:
                names = {"task": task, "model": model, "baseline": baseline}
                comparisons.append({**names, **_compare(own, by_model[baseline])})
    return comparisons


def _compare(runs: Runs, others: Runs) -> dict[str, Any]:
    """Compare the runs of two models on a task."""
    several = min(len(runs), len(others)) > 1
    found: dict[str, Any] = {"documents": None, "documents_and_seeds": None, "seeds": None}
    if all("per_doc" in run["test"] and not run["trial"].get("fold") for run in [*runs, *others]):
        counts = [[run["test"]["per_doc"] for run in side] for side in (runs, others)]
        found["documents"] = paired_f1_difference(*counts)._asdict()
        if several:
            both = paired_f1_difference(*counts, resample_runs=True)
            found["documents_and_seeds"] = both._asdict()
        return {"difference": found["documents"]["difference"], **found}
    values = [[get_value(run["test"]) for run in side] for side in (runs, others)]
    if several:
        found["seeds"] = compare_runs(*values)._asdict()
    return {"difference": float(np.mean(values[0]) - np.mean(values[1])), **found}


def compare_runs(
    a: Sequence[float], b: Sequence[float], *, n_resamples: int = 10_000, seed: int = 0
) -> PairedDifference:
    """Compare the mean scores of the runs of `a` and `b` under resampling of the runs of each.

    The documents stay as they are: the interval is for other random seeds on this test split. With
    a few runs it is rough, and usually too narrow.

    a, b (Sequence[float]): Score of each run.
    n_resamples (int): Number of resamples.
    seed (int): Random seed.
    RETURNS (PairedDifference): The difference of `a` minus `b`, with interval and p-value.
    """
    rng = np.random.default_rng(seed)
    means = [rng.choice(np.asarray(side), (n_resamples, len(side))).mean(axis=1) for side in (a, b)]
    differences = means[0] - means[1]
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # Differences of 0 within rounding errors count on both sides.
    rarer = min((differences <= 1e-12).sum(), (differences >= -1e-12).sum())
    p = min(1.0, 2 * (int(rarer) + 1) / (n_resamples + 1))
    return PairedDifference(float(np.mean(a) - np.mean(b)), float(low), float(high), p)
