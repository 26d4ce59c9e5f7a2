"""Pooling of pieces into tokens."""

import numpy as np
from spacy import registry
from thinc.api import Ragged, reduce_first


def first_piece():
    return registry.layers.get("spacy-bioclin.first_piece.v1")()


def test_first_piece_is_that_of_thinc_where_every_token_has_pieces():
    X = Ragged(np.arange(12, dtype="f").reshape(6, 2), np.array([1, 3, 2], dtype="i"))
    dY = np.ones((3, 2), dtype="f") * [[1], [2], [3]]
    results = []
    for model in (first_piece(), reduce_first()):
        Y, backprop = model(X, is_train=True)
        results.append((Y.tolist(), backprop(dY.astype("f")).dataXd.tolist()))
    assert results[0] == results[1]


def test_a_token_without_pieces_has_zeros_and_gives_no_gradient():
    X = Ragged(np.array([[1, 2], [3, 4], [5, 6]], dtype="f"), np.array([0, 2, 0, 1, 0], dtype="i"))
    Y, backprop = first_piece()(X, is_train=True)
    assert Y.tolist() == [[0, 0], [1, 2], [0, 0], [5, 6], [0, 0]]
    dX = backprop(np.array([[9, 9], [1, 1], [9, 9], [2, 2], [9, 9]], dtype="f"))
    assert dX.dataXd.tolist() == [[1, 1], [0, 0], [2, 2]]
    assert dX.lengths.tolist() == [0, 2, 0, 1, 0]


def test_no_tokens():
    X = Ragged(np.zeros((0, 2), dtype="f"), np.zeros(0, dtype="i"))
    Y, backprop = first_piece()(X, is_train=True)
    assert Y.shape == (0, 2)
    assert backprop(Y).dataXd.shape == (0, 2)
