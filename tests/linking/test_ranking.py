"""Scores and probabilities, by hand."""

import json

import numpy as np
import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.candidates import COLUMN, N_FEATURES
from spacy_bioclin.linking.ranking import NIL, UNTRAINED, UNTRAINED_NIL, Ranker


def features(**values):
    row = np.zeros(N_FEATURES, np.float32)
    for name, value in values.items():
        row[COLUMN[name]] = value
    return row


def network():
    weights = {
        "scale": np.full(N_FEATURES, 2.0),
        "hidden": np.zeros((N_FEATURES, 2)),
        "hidden_bias": np.array([-1.0, 0.5]),
        "out": np.array([3.0, -1.0]),
        "direct": np.zeros(N_FEATURES),
        NIL: np.array(0.5),
    }
    weights["hidden"][COLUMN["exact"]] = [1.0, -1.0]
    weights["direct"][COLUMN["similar"]] = 0.25
    return Ranker(weights)


def test_score_of_a_network_by_hand():
    # exact = 1, similar = 0.5; scaled 2 and 1. Hidden: relu(2 - 1) = 1, relu(-2 + 0.5) = 0.
    # 3 * 1 - 1 * 0 + 0.25 * 1 = 3.25. Nothing: 3 * 0 - 1 * 0.5 = -0.5.
    rows = np.stack([features(exact=1, similar=0.5), features()])
    assert network().scores(rows).tolist() == [3.25, -0.5]


def test_probabilities_and_that_of_nil_sum_to_one():
    rows = np.stack([features(exact=1, similar=0.5), features()])
    exps = np.exp([3.25, -0.5, 0.5])
    expected = (exps / exps.sum())[:2]
    assert network().probabilities(rows) == pytest.approx(expected, rel=1e-5)
    assert len(network().probabilities(np.zeros((0, N_FEATURES), np.float32))) == 0


def test_large_scores_do_not_overflow():
    ranker = network()
    ranker.weights["direct"] = ranker.weights["direct"] * 1e4
    probabilities = ranker.probabilities(np.stack([features(similar=1), features()]))
    assert probabilities.tolist() == [1, 0]


def test_untrained_weights():
    rows = np.stack([features(exact=1, similar=1), features(similar=0.2)])
    wanted = [UNTRAINED["exact"] + UNTRAINED["similar"], 0.2 * UNTRAINED["similar"]]
    assert Ranker.untrained().scores(rows) == pytest.approx(wanted, rel=1e-5)
    # The same name is surer than NIL, a remote likeness is not.
    assert wanted[1] < UNTRAINED_NIL < wanted[0]


def test_round_trip_as_json():
    data = json.loads(json.dumps(network().to_dict()))
    rows = np.stack([features(exact=1, similar=0.5)])
    assert Ranker.from_dict(data).scores(rows).tolist() == [3.25]
    data["features"] = data["features"][1:]
    with pytest.raises(BioclinError, match=r"scale has another shape; .* train it again"):
        Ranker.from_dict(data)


def test_a_ranker_with_fewer_features_ranks_as_before():
    """That of an older version, which had them in another order, too."""
    data = json.loads(json.dumps(network().to_dict()))
    kept = [name for name in reversed(data["features"]) if name != "similar_gap"]
    old = {**data, "features": kept, "weights": {**data["weights"]}}
    for name in ("scale", "hidden", "direct"):
        old["weights"][name] = [data["weights"][name][COLUMN[feature]] for feature in kept]
    rows = np.stack([features(exact=1, similar=0.5, similar_gap=0.7)])
    assert Ranker.from_dict(old).scores(rows).tolist() == [3.25]
    assert Ranker.from_dict(old).weights["direct"].shape == (len(COLUMN),)


def test_unknown_features_are_an_error():
    for names in (["exact", "smell"], ["exact", "exact"]):
        with pytest.raises(BioclinError, match="features of another version"):
            Ranker.from_dict({**network().to_dict(), "features": names})
