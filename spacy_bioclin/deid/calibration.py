"""Calibrate confidences, choose thresholds that reach a recall, and apply both in `bioclin_deid`.

Calibration is a logistic regression on the logit of the confidence (Platt, 1999), one for each
group of spans (a label of the neural component, a kind of rule), with a prior of no change, so that
a group of few spans changes little. Expected calibration error as in Guo et al. (2017).
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import srsly
from numpy.typing import ArrayLike, NDArray
from spacy.pipeline import Pipe

from ..errors import BioclinError
from .labels import check_scheme
from .spans import NEURAL, PhiSpan

# Sets of thresholds that `bioclin calibrate` chooses.
BALANCED, HIGH_RECALL = "balanced", "high_recall"
OPERATING_POINTS = (BALANCED, HIGH_RECALL)

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
    """A detector's span, and whether it is PHI: most of its characters are, whatever their label.

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


def choose_best_f(candidates: Sequence[Candidate], mentions: Sequence[Mention]) -> float:
    """Choose the one threshold with the best F1 of what is hidden.

    Precision is the share of candidates that are PHI, recall the share of mentions that are covered
    completely, whatever the labels.
    RETURNS (float): The threshold, halfway between two candidates; 0 if there are no candidates
        or no mentions.
    """
    if not candidates or not mentions:
        return 0.0
    confidence = np.array([candidate.span.confidence for candidate in candidates])
    order = np.argsort(-confidence, kind="stable")
    confidence = confidence[order]
    correct = np.array([candidate.correct for candidate in candidates])[order]
    precision = np.cumsum(correct) / np.arange(1, len(confidence) + 1)
    weakest = np.sort([mention.weakest if mention.by else -1.0 for mention in mentions])
    recall = 1 - np.searchsorted(weakest, confidence) / len(weakest)
    f1 = 2 * precision * recall / np.maximum(precision + recall, EPSILON)
    last = confidence[np.argmax(f1)]
    following = confidence[confidence < last]
    return float(last + (following[0] if following.size else 0.0)) / 2


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


class Calibrated(Pipe):
    """A component with calibrated confidences, and thresholds for two operating points.

    operating_points (dict[str, dict[str, float]]): Least calibrated confidence by label, for each
        operating point, from `bioclin calibrate`.
    calibration (dict[str, Platt]): By group of spans: "ner:LABEL", or kind of a rule.
    calibrated_scheme (str): Scheme of the labels in `operating_points` and `calibration`; the
        policy may have another one.
    detectors (list[str]): Components that found PHI when the pipeline was calibrated; empty if it
        was not, or before 0.3.
    """

    name: str

    def set_up(self, *, scheme: str, operating_point: str | None) -> None:
        """Begin without calibration.

        scheme (str): Scheme of the labels.
        operating_point (str | None): That of the component's config.
        RAISES (BioclinError): There is no such operating point.
        """
        self.operating_points: dict[str, dict[str, float]] = {}
        # The config of the component is compared with that which was saved: what differs was given.
        self._given = self._operating_point = self._check_name(operating_point)
        self._thresholds: dict[str, float] = {}  # of pipelines calibrated before 0.3: one set
        self.calibration: dict[str, Platt] = {}
        self.calibrated_scheme: str = scheme
        self.detectors: list[str] = []

    @property
    def operating_point(self) -> str | None:
        """Which thresholds apply: "balanced" or "high_recall"; None if there is but one set."""
        return self._operating_point

    @operating_point.setter
    def operating_point(self, name: str | None) -> None:
        """Choose the thresholds that apply.

        RAISES (BioclinError): There is no such operating point, or the pipeline has none.
        """
        self._operating_point = self._check_name(name)
        _ = self.thresholds

    @property
    def thresholds(self) -> dict[str, float]:
        """The least calibrated confidence by label, at the operating point.

        RAISES (BioclinError): The pipeline has no thresholds for its operating point.
        """
        if self._operating_point is None:
            return self._thresholds
        try:
            return self.operating_points[self._operating_point]
        except KeyError:
            raise BioclinError(
                f"[components.{self.name}] operating_point = {self._operating_point!r}: this "
                "pipeline has no thresholds for it; make them with bioclin calibrate"
            ) from None

    @thresholds.setter
    def thresholds(self, thresholds: dict[str, float]) -> None:
        """Set the thresholds of the operating point."""
        if self._operating_point is None:
            self._thresholds = thresholds
        else:
            self.operating_points[self._operating_point] = thresholds

    def _check_name(self, operating_point: str | None) -> str | None:
        if operating_point is not None and operating_point not in OPERATING_POINTS:
            raise BioclinError(
                f"[components.{self.name}] operating_point = {operating_point!r}: want "
                f"{' or '.join(OPERATING_POINTS)}"
            )
        return operating_point

    def calibrate_span(self, span: PhiSpan) -> PhiSpan:
        """Replace the confidence of a span, labelled as at calibration, by the calibrated one."""
        confidence = self._calibrate(span.confidence, span.label, span.detector)
        return span._replace(confidence=confidence)

    def _calibrate(self, confidence: float, label: str, detector: str) -> float:
        platt = self.calibration.get(calibration_group(label, detector))
        return confidence if platt is None else float(platt(confidence))

    def _state(self) -> dict[str, Any]:
        """Collect what is saved with the pipeline; the key never is."""
        calibration = {group: list(platt) for group, platt in self.calibration.items()}
        return {
            "operating_points": self.operating_points,
            "operating_point": self._operating_point,
            "given": self._given,
            "thresholds": self._thresholds,
            "calibration": calibration,
            "scheme": self.calibrated_scheme,
            "detectors": self.detectors,
        }

    def _set_state(self, state: Any) -> None:
        """Take over what was saved. A threshold that is no number would let PHI through."""
        try:
            thresholds, calibration = dict(state["thresholds"]), dict(state["calibration"])
            points = state.get("operating_points", {})  # not saved before 0.3
            points = {self._check_name(name): dict(points[name]) for name in points}
            platts = {group: Platt(*platt) for group, platt in calibration.items()}
            numbers = [number for platt in platts.values() for number in platt]
            numbers += [x for part in (thresholds, *points.values()) for x in part.values()]
            right = all(math.isfinite(number) for number in numbers)
            saved = self._check_name(state.get("operating_point"))
            scheme = state.get("scheme", self.calibrated_scheme)  # not saved before 0.3
            check_scheme(scheme)
            detectors = list(state.get("detectors", []))  # not saved before 0.3
            right &= all(isinstance(name, str) for name in detectors)
        except (TypeError, KeyError, ValueError, AttributeError):
            right = False
        if not right:
            raise BioclinError(
                f"[components.{self.name}] calibration.json is damaged: copy the pipeline again, "
                "or run bioclin calibrate again"
            )
        self.operating_points, self._thresholds = points, thresholds
        self.calibration, self.calibrated_scheme = platts, scheme
        self.detectors = detectors
        given = self._given if self._given != state.get("given") else None
        self.operating_point = saved if given is None else given

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize thresholds and calibration."""
        return srsly.msgpack_dumps(self._state())

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_bytes` made."""
        self._set_state(srsly.msgpack_loads(data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save thresholds and calibration in a folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        # Not by srsly, which rounds: a threshold would exclude the span from which it was taken.
        (Path(path) / "calibration.json").write_text(json.dumps(self._state(), indent=2), "utf-8")

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Load what `to_disk` saved."""
        file = Path(path) / "calibration.json"
        try:
            state = json.loads(file.read_text("utf-8"))
        except (ValueError, RecursionError):
            state = None
        self._set_state(state)
        return self
