"""The papers' protocols over seeds and learning rates.

A run without a score (it diverged or crashed) is None. It is left out of every statistic and
counted as failed: a table without that count hides it.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Score = float | None
SELECTED = "best run, selected on the split that it is scored on: too high"


class RunsScore(NamedTuple):
    """The scores of several runs.

    value (float | None): What the paper prints; None if no run has a score, like all statistics.
    mean, median, min, max (float | None): Of the runs with a score.
    sd (float | None): Standard deviation of the sample (with n - 1); None for fewer than two runs.
    n (int): Runs with a score.
    n_failed (int): Runs without.
    note (str): What a reader of the number must know; "" if there is nothing.
    """

    value: Score
    mean: Score
    sd: Score
    median: Score
    min: Score
    max: Score
    n: int
    n_failed: int
    note: str = ""


def summarize_runs(scores: Iterable[Score]) -> RunsScore:
    """Compute the statistics of runs. Their `value` is the mean.

    scores (Iterable[float | None]): One per run.
    """
    runs = list(scores)
    known = [score for score in runs if score is not None]
    n_failed = len(runs) - len(known)
    if not known:
        return RunsScore(None, None, None, None, None, None, 0, n_failed)
    mean = statistics.fmean(known)
    sd = statistics.stdev(known) if len(known) > 1 else None
    median = statistics.median(known)
    return RunsScore(mean, mean, sd, median, min(known), max(known), len(known), n_failed)


def median_of_seeds(scores: Sequence[Score]) -> RunsScore:
    """Take the median of the seeds, as Lewis et al. (2020), section 5.2, with five of them. Of an
    even number, it is the mean of the middle two.

    scores (Sequence[float | None]): Test score of each seed.
    """
    runs = summarize_runs(scores)
    return runs._replace(value=runs.median)


def mean_sd(scores: Sequence[Score]) -> RunsScore:
    """Take mean and standard deviation of the seeds, as ouBioBERT (Wada et al. 2020) on BLUE with
    five of them. That its deviation is that of the sample is unconfirmed.

    scores (Sequence[float | None]): Test score of each seed.
    """
    return summarize_runs(scores)


def best_of_seeds(scores: Sequence[Score]) -> RunsScore:
    """Take the best run, as Mulyar and McInnes (2020) for their single-task models: "We report the
    top performing model at evaluation", of five seeds and twenty epochs, without a dev split.

    scores (Sequence[float | None]): Score of each run on the split that is reported.
    RETURNS (RunsScore): Of several runs, its note says that one was selected on that split.
    """
    runs = summarize_runs(scores)
    return runs._replace(value=runs.max, note=SELECTED if runs.n > 1 else "")


def mean_over_all(scores: Mapping[float, Sequence[Score]]) -> RunsScore:
    """Take mean and deviation over all learning rates and seeds, as Carrino et al. (2022), table 2.

    scores (Mapping[float, Sequence[float | None]]): Learning rate -> test score of each seed.
    """
    return summarize_runs(score for seeds in scores.values() for score in seeds)
