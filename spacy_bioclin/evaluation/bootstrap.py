"""Estimate how much a score would vary on other samples of documents (Efron, 1979, percentiles)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import BioclinError
from .spans import Counts, SpanScores

LEVEL = 0.95  # share of the resamples within an interval
AT_ONCE = 500  # resamples to compute together, which limits the memory


class PairedDifference(NamedTuple):
    """The difference between two mean F1 scores.

    difference (float): Difference on the documents themselves.
    low, high (float): The 95 % interval.
    p (float): Two-sided p-value, below 0.05 if the interval does not contain 0.
    """

    difference: float
    low: float
    high: float
    p: float


def f1_interval(
    per_doc: Sequence[Counts], *, n_resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Compute the interval of the micro F1 under resampling of whole documents.

    Documents with equal counts are interchangeable, so that a resample is one multinomial draw over
    the distinct rows of counts. This takes milliseconds for any number of documents.

    per_doc (Sequence[Counts]): One entry per document, including those without any span.
    n_resamples (int): Number of resampled corpora, each as large as the given one.
    seed (int): Random seed.
    RETURNS (tuple[float, float]): Lower and upper bound of the 95 % interval; (0, 0) for no
        documents.
    """
    if not per_doc:
        return 0.0, 0.0
    rows, repeats = np.unique(np.asarray(per_doc, dtype=np.int64), axis=0, return_counts=True)
    n_docs = len(per_doc)
    draws = np.random.default_rng(seed).multinomial(n_docs, repeats / n_docs, size=n_resamples)
    tp, fp, fn = (draws @ rows).T  # each (n_resamples,)
    f1 = 2 * tp / np.maximum(2 * tp + fp + fn, 1)
    low, high = np.quantile(f1, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def summarize(per_doc: Sequence[Counts]) -> dict[str, Any]:
    """Compute scores from the counts of each document.

    RETURNS (dict[str, Any]): `p`, `r`, `f`, `tp`, `fp`, `fn` and `f_interval`, ready for JSON.
    """
    total = Counts.total(per_doc)
    return {**total.prf(), **total._asdict(), "f_interval": list(f1_interval(per_doc))}


def summarize_all(scores: SpanScores) -> dict[str, Any]:
    """Compute the scores of all labels together and of each.

    RETURNS (dict[str, Any]): "micro" and "per_type" as `summarize` returns them, and "macro".
    """
    per_type = {label: summarize(scores.of_docs(label)) for label in scores.per_label}
    return {"micro": summarize(scores.of_docs()), "macro": scores.macro, "per_type": per_type}


def paired_f1_difference(
    a: Sequence[Sequence[Sequence[int]]],
    b: Sequence[Sequence[Sequence[int]]],
    *,
    resample_runs: bool = False,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Compare the mean micro F1 of the runs of `a` and `b` under resampling of whole documents.

    Each resample has the same documents for every run of both (Koehn, 2004).

    a, b (Sequence): Counts, (n_runs, n_docs, 3) as tp, fp, fn, for the same documents in the same
        order. The numbers of runs may differ.
    resample_runs (bool): Also resample the runs of each side, so that the interval holds for other
        random seeds too (Multi-Bootstrap; Sellam et al., 2022). Otherwise it holds for these runs.
    n_resamples (int): Number of resampled corpora, each as large as the given one.
    seed (int): Random seed.
    RETURNS (PairedDifference): The difference of `a` minus `b`, with interval and p-value.
    RAISES (BioclinError): A side has no run, or the documents are not the same: their number and
        the number of gold spans of each (tp + fn) must agree in all runs.
    """
    sides = [_check_counts(name, counts) for name, counts in (("first", a), ("second", b))]
    gold = [run[:, 0] + run[:, 2] for side in sides for run in side]  # spans of each document
    if not all(np.array_equal(run, gold[0]) for run in gold):
        raise BioclinError(
            "Paired bootstrap: the runs were not scored on the same documents (of "
            f"{sides[0].shape[1]} and {sides[1].shape[1]}, the numbers of gold spans differ); "
            "compare runs that have the same test file."
        )
    rng = np.random.default_rng(seed)
    n_docs = sides[0].shape[1]
    differences = np.empty(n_resamples)
    for start in range(0, n_resamples, AT_ONCE):
        part = differences[start : start + AT_ONCE]
        draws = rng.multinomial(n_docs, np.full(n_docs, 1 / n_docs), size=len(part))
        means = []
        for side in sides:
            n_runs = len(side)
            weights = np.full((len(part), n_runs), 1 / n_runs)
            if resample_runs:
                weights = rng.multinomial(n_runs, weights[0], size=len(part)) / n_runs
            means.append((_f1_of_runs(draws, side) * weights).sum(axis=1))
        part[:] = means[0] - means[1]
    whole = [_f1_of_runs(np.ones((1, n_docs)), side).mean() for side in sides]
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # Differences of 0 within rounding errors count on both sides.
    rarer = min((differences <= 1e-12).sum(), (differences >= -1e-12).sum())
    p = min(1.0, 2 * (int(rarer) + 1) / (n_resamples + 1))
    return PairedDifference(float(whole[0] - whole[1]), float(low), float(high), p)


def _check_counts(name: str, counts: Sequence[Sequence[Sequence[int]]]) -> np.ndarray:
    """Check counts and convert them to an array, (n_runs, n_docs, 3)."""
    n_docs = {len(run) for run in counts}
    if len(n_docs) != 1 or 0 in n_docs:
        raise BioclinError(
            f"Paired bootstrap: the {name} setting has {len(counts)} runs with numbers of "
            f"documents {sorted(n_docs)}; every run needs counts of the same documents."
        )
    return np.asarray(counts, dtype=np.float64)


def _f1_of_runs(draws: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Compute the micro F1 of each run on each resample, (n_resamples, n_runs).

    draws (ndarray): How often each document was drawn, (n_resamples, n_docs).
    counts (ndarray): (n_runs, n_docs, 3).
    """
    tp, fp, fn = (draws @ counts[:, :, column].T for column in range(3))
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1)
