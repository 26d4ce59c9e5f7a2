"""The protocol of Lewis et al. (2020) for corpora in ten folds: GAD and EU-ADR."""

from collections.abc import Mapping
from typing import NamedTuple

from ...errors import BioclinError
from .runs import RunsScore, Score, summarize_runs


class FoldsScore(NamedTuple):
    """The score of a cross-validation.

    setting (str | None): The setting that is best on the fold for tuning; None if no run on that
        fold has a score.
    tuned_on (str): Name of that fold.
    folds (RunsScore): Statistics of the setting on the other folds; its value is the median.
    """

    setting: str | None
    tuned_on: str
    folds: RunsScore


def folds_median(scores: Mapping[str, Mapping[str, Score]], tuned_on: str = "0") -> FoldsScore:
    """Choose a setting on one fold, and take the median of its scores on the others: "we choose
    early-stopping hyperparameters using one fold, and report the median test results on the other 9
    folds" (section 5.2). Of settings that are equally good, the first is chosen.

    scores (Mapping[str, Mapping[str, float | None]]): Setting, such as the number of epochs -> fold
        -> test score.
    tuned_on (str): The fold to choose on.
    RETURNS (FoldsScore): Setting and score. Folds without a run of the setting are left out.
    RAISES (BioclinError): No setting has a run on the fold to choose on.
    """
    known = {setting: folds[tuned_on] for setting, folds in scores.items() if tuned_on in folds}
    if not known:
        found = sorted({fold for folds in scores.values() for fold in folds})
        raise BioclinError(
            f"no run on fold {tuned_on!r}, which is to choose the setting; there are runs on "
            f"{', '.join(found) or 'no fold'}"
        )
    scored = {setting: score for setting, score in known.items() if score is not None}
    setting = max(scored, key=lambda one: scored[one], default=None)
    others = scores[setting] if setting is not None else {}
    runs = summarize_runs(score for fold, score in others.items() if fold != tuned_on)
    return FoldsScore(setting, tuned_on, runs._replace(value=runs.median))
