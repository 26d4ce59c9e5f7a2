"""The network over the vectors of a pair, and the gradient of what it reads."""

import numpy as np
import pytest
import torch
from spacy.tokens import Doc
from thinc.api import Model

from spacy_bioclin.annotations.pairs import make_pair
from spacy_bioclin.pairs.model import PairNetwork, build_pair_classifier
from tests.trained import blank

WIDTH = 4


def make_network(**changed):
    settings = {"width": 2, "n_outputs": 1, "dropout": 0.0, "hidden": False, "compare_texts": True}
    return PairNetwork(**(settings | changed))


def test_it_reads_summary_difference_and_product():
    network = make_network()
    network.output.weight.data = torch.tensor([[1.0, 10, 100, 1000, 10_000, 100_000]])
    network.output.bias.data.zero_()
    # [CLS] is (1, 2), the texts are (3, 5) and (4, 2): |u - v| = (1, 3), u * v = (12, 10).
    found = network(torch.tensor([[1.0, 2, 3, 5, 4, 2]]))
    assert found.item() == 1 + 20 + 100 + 3000 + 120_000 + 1_000_000


@pytest.mark.parametrize("compare_texts", [False, True])
def test_gradients_of_the_vectors_are_those_of_finite_differences(compare_texts):
    nlp = blank("en")
    docs = [make_pair(nlp, "one two three", "four five"), nlp("no pair"), make_pair(nlp, "a", "b")]
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(len(doc), WIDTH)).astype("f") for doc in docs]
    gradients: list[np.ndarray] = []

    def forward(model: Model, X: list[Doc], is_train: bool):
        return vectors, gradients.extend

    model = build_pair_classifier(
        Model("vectors", forward, init=lambda model, X=None, Y=None: None),
        dropout=0.0,
        learn_rate_scale=1.0,
        hidden=True,
        compare_texts=compare_texts,
    )
    model.get_ref("head").attrs["n_outputs"] = 1
    model.initialize(X=docs)
    scores, backprop = model(docs, is_train=True)
    assert scores.shape == (2, 1)
    backprop(torch.tensor([[1.0], [2.0]]))

    def total() -> float:
        found = model.predict(docs)
        return float(found[0] + 2 * found[1])

    step = 1e-2
    for i, table in enumerate(vectors):
        for index in np.ndindex(table.shape):
            before = table[index]
            table[index] = before + step
            above = total()
            table[index] = before - step
            difference = (above - total()) / (2 * step)
            table[index] = before
            assert gradients[i][index] == pytest.approx(difference, abs=2e-3)
    assert not gradients[1].any()
