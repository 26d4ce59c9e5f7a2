"""Confidence that means what it says, and thresholds that reach a recall.

Calibration: logistic regression on the logit of the confidence (Platt, 1999), one for each group of
spans (a label of the neural component, a kind of rule), drawn toward "no change" by a prior, so
that a group of few spans changes little. Expected calibration error as in Guo et al. (2017).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .spans import NEURAL, PhiSpan

# Keeps the logit finite.
EPSILON = 1e-4
# Precision of the prior on slope (around 1) and offset (around 0): it weighs like a few spans.
PRIOR = 1.0
N_BINS = 15


class Platt(NamedTuple):
    """calibrated = sigmoid(slope * logit(confidence) + offset)."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, confidence: ArrayLike) -> NDArray[np.float64]:
        return _sigmoid(self.slope * _logit(confidence) + self.offset)


def _logit(p: ArrayLike) -> NDArray[np.float64]:
    clipped = np.clip(np.asarray(p, dtype=np.float64), EPSILON, 1 - EPSILON)
    return np.log(clipped) - np.log1p(-clipped)


def _sigmoid(x: ArrayLike) -> NDArray[np.float64]:
    return np.exp(-np.logaddexp(0, -np.asarray(x, dtype=np.float64)))


def fit_platt(confidence: ArrayLike, correct: ArrayLike) -> Platt:
    """Fit by Newton's method with halved steps; the minimum is unique.

    confidence (ArrayLike): (n,), from 0 to 1.
    correct (ArrayLike): (n,), 1 for a span that is right.
    """
    x = np.stack([_logit(confidence), np.ones(np.size(confidence))], axis=-1)
    y = np.asarray(correct, dtype=np.float64)
    prior = np.array([1.0, 0.0])

    def cost(weights: NDArray[np.float64]) -> float:
        z = x @ weights
        pull = PRIOR / 2 * np.sum((weights - prior) ** 2)
        return float(np.sum(np.logaddexp(0, z) - y * z) + pull)

    weights = prior.copy()
    for _ in range(50):
        p = _sigmoid(x @ weights)
        gradient = x.T @ (p - y) + PRIOR * (weights - prior)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + PRIOR * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        while cost(weights - step) > cost(weights) and np.abs(step).max() > 1e-10:
            step = step / 2
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    # A negative slope would turn the order of spans round: the group then has one confidence.
    if weights[0] < 0:
        rate = (y.sum() + PRIOR) / (len(y) + 2 * PRIOR)
        return Platt(0.0, float(_logit(rate)))
    return Platt(float(weights[0]), float(weights[1]))


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike) -> float:
    """RETURNS (float): Mean distance of confidence and share of right spans over 15 equal bins of
    confidence, weighted by their spans; 0 if there is none."""
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if not p.size:
        return 0.0
    bins = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(p[bins == b].sum() - y[bins == b].sum()) for b in np.unique(bins)]
    return float(np.sum(gaps) / p.size)


class Candidate(NamedTuple):
    """A detector's span, and whether it is right.

    correct (bool): A gold mention has these offsets and this label.
    """

    span: PhiSpan
    correct: bool


def fit_calibration(candidates: Iterable[Candidate]) -> dict[str, Platt]:
    """RETURNS (dict[str, Platt]): By `calibration_group`."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(calibration_group(candidate.span), []).append(candidate)
    return {
        name: fit_platt([c.span.confidence for c in group], [c.correct for c in group])
        for name, group in sorted(groups.items())
    }


def calibration_group(span: PhiSpan) -> str:
    """RETURNS (str): Spans whose confidences are calibrated together: a label of the neural
    component, or a kind of another detector."""
    return f"{NEURAL}:{span.label}" if span.detector == NEURAL else span.detector


class Mention(NamedTuple):
    """A gold mention as the detectors see it.

    label (str): Gold label.
    weakest (float): Its least covered character is covered with this confidence at best; 0 if
        nothing covers it.
    by (str): Label of the span that covers that character best; "" if nothing does.
    """

    label: str
    weakest: float
    by: str


def choose_thresholds(mentions: Sequence[Mention], target_recall: float) -> dict[str, float]:
    """Choose the highest thresholds that keep the recall of every gold label at a target.

    A mention counts as found if spans at or above the thresholds cover all of it, whatever their
    label. Each label's threshold is what the target needs of the mentions that hang on it; then
    thresholds are lowered until every gold label reaches the target as far as it can.
    RETURNS (dict[str, float]): Threshold by label of spans.
    """
    thresholds: dict[str, float] = {}
    by_label: dict[str, list[Mention]] = {}
    for mention in mentions:
        by_label.setdefault(mention.label, []).append(mention)
    for group in by_label.values():
        reachable = sorted((m for m in group if m.by), key=lambda m: -m.weakest)
        needed = reachable[: int(np.ceil(target_recall * len(group) - 1e-9))]
        for mention in needed:
            thresholds[mention.by] = min(thresholds.get(mention.by, 1.0), mention.weakest)
    return thresholds


def choose_best_f(candidates: Iterable[Candidate], n_gold: int) -> float:
    """Choose the threshold with the best strict F1. Of calibrated confidences one threshold is best
    for all labels: half of that F1 (Lipton et al., 2014).

    n_gold (int): Gold mentions.
    RETURNS (float): The best threshold; 0 if there are no candidates.
    """
    pairs = [(c.span.confidence, c.correct) for c in candidates]
    if not pairs:
        return 0.0
    confidence, correct = (
        np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True)
    )
    order = np.argsort(-confidence, kind="stable")
    f = 2 * np.cumsum(correct[order]) / (np.arange(1, len(pairs) + 1) + n_gold)
    return float(f.max() / 2)


def recall_by_label(
    mentions: Sequence[Mention], thresholds: Mapping[str, float]
) -> dict[str, float]:
    """RETURNS (dict[str, float]): By gold label, share of mentions that are found."""
    found: dict[str, list[bool]] = {}
    for mention in mentions:
        hit = bool(mention.by) and mention.weakest >= thresholds.get(mention.by, 0.0)
        found.setdefault(mention.label, []).append(hit)
    return {label: float(np.mean(hits)) for label, hits in sorted(found.items())}
