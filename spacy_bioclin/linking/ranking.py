"""Rank candidates by a weighted sum, or by a small network that learned from linked mentions.

A softmax over the scores of a pool and a fixed score for "none of them" (NIL) gives probabilities,
so that a ranker is trained and calibrated as one distribution (listwise, Cao et al. 2007).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BioclinError
from ..types import FloatArray
from .candidates import COLUMN, FEATURES, N_FEATURES

# Chosen on the train and dev mentions of NCBI-disease, BC5CDR and CANTEMIST, without their names.
UNTRAINED = {
    "exact": 4.0,
    "key": 1.5,
    "core": 3.0,
    "similar": 6.0,
    "meaning": 8.0,
    "preferred": 0.3,
    "language": 0.2,
}
UNTRAINED_NIL = 3.0
NIL = "nil"
# The axes of each weight.
WEIGHTS: dict[str, tuple[str, ...]] = {
    "scale": ("features",),
    "hidden": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "out": ("hidden",),
    "direct": ("features",),
    NIL: (),
}
MAX_WEIGHT = 1e30  # not infinite, nor are sums of a few
AGAIN = "copy the folder again, or train it again with `bioclin train-linker`"


class Ranker:
    """Score the candidates of a mention.

    weights (Mapping[str, FloatArray]): `scale` (N_FEATURES,), `hidden` (N_FEATURES, n_hidden),
        `hidden_bias` (n_hidden,), `out` (n_hidden,), `direct` (N_FEATURES,), `nil` (): Score of a
        candidate x is out . relu(hidden (x * scale) + hidden_bias) + direct . (x * scale).
    """

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        self.weights = {name: np.asarray(values, np.float32) for name, values in weights.items()}

    @classmethod
    def untrained(cls) -> "Ranker":
        """Make a ranker with fixed weights, for a terminology without linked mentions."""
        direct = np.zeros(N_FEATURES)
        for name, weight in UNTRAINED.items():
            direct[COLUMN[name]] = weight
        weights: dict[str, NDArray[Any]] = {
            "scale": np.ones(N_FEATURES),
            "hidden": np.zeros((N_FEATURES, 1)),
            "hidden_bias": np.zeros(1),
            "out": np.zeros(1),
            "direct": direct,
            NIL: np.array(UNTRAINED_NIL),
        }
        return cls(weights)

    @property
    def reads_notes(self) -> bool:
        """Whether it weighs what other mentions of a note mean."""
        column = COLUMN["in_note"]
        return any(self.weights[name][column].any() for name in ("hidden", "direct"))

    def scores(self, features: FloatArray) -> FloatArray:
        """Compute the scores of candidates.

        features (FloatArray): (n, N_FEATURES).
        RETURNS (FloatArray): (n,).
        """
        w = self.weights
        scaled = features * w["scale"]
        hidden = np.maximum(scaled @ w["hidden"] + w["hidden_bias"], 0)
        return np.asarray(hidden @ w["out"] + scaled @ w["direct"], np.float32)

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Compute the probabilities of candidates, which together with NIL sum to 1.

        features (FloatArray): (n, N_FEATURES).
        RETURNS (FloatArray): (n,).
        """
        scores = self.scores(features)
        nil = float(self.weights[NIL])
        top = max(nil, float(scores.max(initial=-np.inf)))
        exps = np.exp(scores - top)
        total = exps.sum() + np.exp(nil - top)
        return (exps / total).astype(np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Get features and weights as plain values for JSON."""
        return {
            "features": list(FEATURES),
            "weights": {name: values.tolist() for name, values in self.weights.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Ranker":
        """Make it from the values of `to_dict`.

        Features that it was trained without weigh nothing: a ranker of an older version ranks as
        it did there.

        RAISES (BioclinError): It was trained with features that this version does not have, or the
            weights are damaged.
        """
        try:
            features = tuple(data["features"])
            weights = {name: np.array(data["weights"][name], np.float64) for name in WEIGHTS}
            (n_hidden,) = weights["hidden_bias"].shape
        except (KeyError, TypeError, ValueError):
            raise BioclinError(f"ranker.json: is damaged; {AGAIN}") from None
        if not set(features) <= set(FEATURES) or len(set(features)) < len(features):
            raise BioclinError(
                "ranker: trained with the features of another version of spacy-bioclin; train it "
                "again with `bioclin train-linker`"
            )
        sizes = {"features": len(features), "hidden": n_hidden}
        columns = [COLUMN[name] for name in features]
        for name, axes in WEIGHTS.items():
            values = weights[name]
            if values.shape != tuple(sizes[axis] for axis in axes):
                raise BioclinError(f"ranker.json: {name} has another shape; {AGAIN}")
            if not (np.abs(values) < MAX_WEIGHT).all():
                raise BioclinError(f"ranker.json: {name} has a weight that is no number; {AGAIN}")
            if axes[:1] == ("features",):
                weights[name] = np.zeros((N_FEATURES, *values.shape[1:]))
                weights[name][columns] = values
        return cls(weights)
