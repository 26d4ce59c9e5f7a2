"""Pooling, decoding and loss, against loops and finite differences."""

import numpy as np
import pytest
import torch

from spacy_bioclin.relations.candidates import Mention, find_candidates, make_types
from spacy_bioclin.relations.decoding import decode, relation_loss
from spacy_bioclin.relations.network import join_mentions, range_max


def test_range_max_is_the_maximum_of_each_range():
    for n in (1, 2, 7, 33):
        torch.manual_seed(n)
        X = torch.randn(n, 5, requires_grad=True)
        ranges = torch.tensor([(i, j) for i in range(n) for j in range(i, n + 1)])
        pooled = range_max(X, ranges)
        expected = torch.stack(
            [X[i:j].max(dim=0).values if j > i else torch.zeros(5) for i, j in ranges.tolist()]
        )
        assert torch.equal(pooled, expected)
        weights = torch.randn(pooled.shape)
        [ours] = torch.autograd.grad((pooled * weights).sum(), X)
        [theirs] = torch.autograd.grad((expected * weights).sum(), X)
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_range_max_of_nothing():
    assert range_max(torch.zeros(3, 4), torch.zeros((0, 2), dtype=torch.long)).shape == (0, 4)
    assert range_max(torch.zeros(0, 4), torch.zeros((2, 2), dtype=torch.long)).shape == (2, 4)


def test_mentions_are_joined_by_log_sum_exp():
    vectors = torch.tensor([[1.0, 100.0], [3.0, 100.0], [2.0, -5.0]], dtype=torch.double)
    vectors.requires_grad_()
    owner = torch.tensor([0, 0, 1])
    expected = torch.tensor([[np.log(np.e + np.e**3), 100 + np.log(2)], [2, -5]])
    assert torch.allclose(join_mentions(vectors, owner, 2), expected.double())
    assert torch.autograd.gradcheck(lambda v: join_mentions(v, owner, 2), vectors)
    assert torch.equal(join_mentions(vectors[:2], owner[:2], 2), vectors[:2])


def make_candidates(table, symmetric=()):
    types = make_types(table, symmetric)
    mentions = [Mention(0, 1, "DRUG"), Mention(2, 3, "PROBLEM"), Mention(4, 5, "PROBLEM")]
    sentences = np.zeros(5, dtype=np.int64)
    found = find_candidates(
        mentions, types, by_concept=False, scope="document", window=0, sentence_of=sentences
    )
    return found, types


TABLE = {"CAUSES": [("DRUG", "PROBLEM")], "TREATS": [("DRUG", "PROBLEM")]}


def test_decodes_the_most_probable_label_or_what_reaches_its_threshold():
    found, types = make_candidates(TABLE)
    # Columns: no relation, CAUSES, TREATS.
    scores = torch.tensor([[0.5, 0.3, 0.2], [0.3, 0.25, 0.45]]).log()
    [one] = decode(scores, found, types, {})
    assert (one.label, one.child.start, round(one.probability, 4)) == ("TREATS", 4, 0.45)
    both = decode(scores, found, types, {"CAUSES": 0.25})
    assert [(r.label, r.child.start) for r in both] == [
        ("CAUSES", 2),
        ("CAUSES", 4),
        ("TREATS", 4),
    ]
    assert [r.label for r in decode(scores, found, types, {"TREATS": 0.5})] == []


def test_labels_that_the_types_exclude_have_no_probability():
    table = {"CAUSES": [("DRUG", "PROBLEM")], "OF": [("PROBLEM", "PROBLEM")]}
    found, types = make_candidates(table)
    kinds = [[found.mentions[i].label for i in pair] for pair in found.pairs.tolist()]
    scores = torch.zeros(len(kinds), 3)
    relations = decode(scores, found, types, {"CAUSES": 0.0, "OF": 0.0})
    assert {(r.label, r.head.label) for r in relations} == {("CAUSES", "DRUG"), ("OF", "PROBLEM")}
    assert {round(r.probability, 6) for r in relations} == {0.5}


def test_a_symmetric_relation_is_written_once():
    table = {"LEADS_TO": [("PROBLEM", "PROBLEM")], "WITH": [("PROBLEM", "PROBLEM")]}
    found, types = make_candidates(table, ["WITH"])
    assert len(found.pairs) == 2
    scores = torch.tensor([[0.1, 0.2, 0.7], [0.1, 0.1, 0.8]]).log()
    [one] = decode(scores, found, types, {})
    assert (one.label, round(one.probability, 4)) == ("WITH", 0.8)


def test_loss_and_gradient():
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=(4, 3)), dtype=torch.double)
    labels = np.array([[1, 0], [0, 0], [1, 1], [0, 1]], dtype=bool)
    known = np.array([True, True, True, False])
    allowed = np.array([[1, 1], [1, 0], [1, 1], [1, 1]], dtype=bool)
    loss, gradient = relation_loss(scores, labels, known, allowed)
    p = scores.softmax(dim=1)
    only = scores[1, :2].softmax(dim=0)
    expected = -(p[0, 1].log() + only[0].log() + (p[2, 1].log() + p[2, 2].log()) / 2) / 3
    assert loss == pytest.approx(float(expected))
    step = 1e-6
    for i in range(4):
        for j in range(3):
            moved = scores.clone()
            moved[i, j] += step
            slope = (relation_loss(moved, labels, known, allowed)[0] - loss) / step
            assert slope == pytest.approx(float(gradient[i, j]), abs=1e-5)
    assert not gradient[3].any()
    assert gradient[1, 2] == 0
