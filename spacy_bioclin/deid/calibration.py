"""Calibrate confidences, and choose thresholds that reach a recall.

Calibration is a logistic regression on the logit of the confidence (Platt, 1999), one for each
group of spans (a label of the neural component, a kind of rule), with a prior of no change, so that
a group of few spans changes little. Expected calibration error as in Guo et al. (2017).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .spans import NEURAL, PhiSpan

# Keeps the logit finite.
EPSILON = 1e-4
# Precision of the prior on slope (around 1) and offset (around 0): it weighs like a few spans.
PRIOR = 1.0
N_BINS = 15
T = TypeVar("T")


class Platt(NamedTuple):
    """Calibrate a confidence: sigmoid(slope * logit(confidence) + offset)."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, confidence: ArrayLike) -> NDArray[np.float64]:
        """Calibrate confidences of any shape."""
        return _sigmoid(self.slope * _logit(confidence) + self.offset)


def _logit(p: ArrayLike) -> NDArray[np.float64]:
    clipped = np.clip(np.asarray(p, dtype=np.float64), EPSILON, 1 - EPSILON)
    return np.log(clipped) - np.log1p(-clipped)


def _sigmoid(x: ArrayLike) -> NDArray[np.float64]:
    return np.exp(-np.logaddexp(0, -np.asarray(x, dtype=np.float64)))


def fit_platt(confidence: ArrayLike, correct: ArrayLike) -> Platt:
    """Fit a calibration by Newton's method with step halving; the minimum is unique.

    confidence (ArrayLike): (n,), from 0 to 1.
    correct (ArrayLike): (n,), 1 for a correct span.
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
    # A negative slope would reverse the order of spans: the group then has one confidence.
    if weights[0] < 0:
        rate = (y.sum() + PRIOR) / (len(y) + 2 * PRIOR)
        return Platt(0.0, float(_logit(rate)))
    return Platt(float(weights[0]), float(weights[1]))


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Compute the mean distance between confidence and share of correct spans.

    The mean is over 15 equal bins of confidence, weighted by their number of spans.
    RETURNS (float): 0 if there are no spans.
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if not p.size:
        return 0.0
    bins = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(p[bins == b].sum() - y[bins == b].sum()) for b in np.unique(bins)]
    return float(np.sum(gaps) / p.size)


class Candidate(NamedTuple):
    """A detector's span, and whether a gold mention has its offsets and label.

    annotated (bool): Whether the gold Doc was annotated for the label; if not, nobody knows whether
        the span is correct.
    """

    span: PhiSpan
    correct: bool
    annotated: bool = True


def fit_calibration(candidates: Iterable[Candidate]) -> dict[str, Platt]:
    """Fit one calibration for each `calibration_group`."""
    groups = _group(candidates, lambda c: calibration_group(c.span.label, c.span.detector))
    return {
        name: fit_platt([c.span.confidence for c in group], [c.correct for c in group])
        for name, group in sorted(groups.items())
    }


def _group(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def calibration_group(label: str, detector: str) -> str:
    """Name the group of a span: a label of the neural component, or another detector's kind."""
    return f"{NEURAL}:{label}" if detector == NEURAL else detector


class Mention(NamedTuple):
    """A gold mention and its coverage by the detectors.

    label (str): Gold label.
    weakest (float): Best confidence of a span over its least covered character; 0 if there is none.
    by (str): Label of that span; "" if there is none.
    """

    label: str
    weakest: float
    by: str


def choose_thresholds(mentions: Sequence[Mention], target_recall: float) -> dict[str, float]:
    """Choose the highest thresholds that keep the recall of every gold label at a target.

    A mention is found if spans at or above the thresholds cover all of it, whatever their label.
    A label's threshold is the lowest that the target of any gold label needs.
    RETURNS (dict[str, float]): Threshold by label of spans.
    """
    thresholds: dict[str, float] = {}
    for group in _group(mentions, lambda mention: mention.label).values():
        reachable = sorted((m for m in group if m.by), key=lambda m: -m.weakest)
        needed = reachable[: int(np.ceil(target_recall * len(group) - 1e-9))]
        for mention in needed:
            thresholds[mention.by] = min(thresholds.get(mention.by, 1.0), mention.weakest)
    return thresholds


def choose_best_f(candidates: Sequence[Candidate], n_gold: int) -> float:
    """Choose the threshold with the best strict F1.

    For calibrated confidences one threshold is best for all labels: half of the best F1 (Lipton et
    al., 2014).
    n_gold (int): Gold mentions.
    RETURNS (float): The best threshold; 0 if there are no candidates.
    """
    ranked = sorted(candidates, key=lambda candidate: -candidate.span.confidence)
    correct = np.cumsum([candidate.correct for candidate in ranked])
    f1 = 2 * correct / (np.arange(1, len(ranked) + 1) + n_gold)
    return float(f1.max(initial=0.0) / 2)


def recall_by_label(
    mentions: Sequence[Mention], thresholds: Mapping[str, float]
) -> dict[str, float]:
    """Compute the share of mentions that are found, by gold label."""
    return {
        label: float(
            np.mean([m.by != "" and m.weakest >= thresholds.get(m.by, 0.0) for m in group])
        )
        for label, group in sorted(_group(mentions, lambda mention: mention.label).items())
    }
