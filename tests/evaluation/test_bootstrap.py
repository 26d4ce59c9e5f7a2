"""Intervals of F1 are those of all resamples."""

import itertools

import numpy as np
import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.bootstrap import f1_interval, paired_f1_difference
from spacy_bioclin.evaluation.spans import Counts

DOCS = [Counts(3, 1, 0), Counts(0, 0, 0), Counts(1, 0, 4), Counts(3, 1, 0), Counts(2, 2, 2)]


def test_equals_all_resamples_of_a_small_corpus():
    """5 documents have 3,125 equally likely resamples: the interval must be theirs."""
    f1 = [Counts.total(drawn).f1 for drawn in itertools.product(DOCS, repeat=len(DOCS))]
    expected = np.quantile(f1, [0.025, 0.975])
    assert f1_interval(DOCS, n_resamples=100_000) == pytest.approx(expected, abs=0.005)


def test_equals_drawing_documents_one_by_one():
    rng = np.random.default_rng(1)
    docs = [Counts(*map(int, row)) for row in rng.integers(0, 9, size=(60, 3))]
    f1 = [Counts.total(docs[i] for i in rng.integers(60, size=60)).f1 for _ in range(4000)]
    expected = np.quantile(f1, [0.025, 0.975])
    low, high = f1_interval(docs)
    assert (low, high) == pytest.approx(expected, abs=0.01)
    assert low < Counts.total(docs).f1 < high


def test_ends_of_the_scale():
    assert f1_interval([]) == (0.0, 0.0)
    assert f1_interval([Counts(0, 0, 0)] * 3) == (0.0, 0.0)
    assert f1_interval([Counts(5, 0, 0), Counts(1, 0, 0)]) == (1.0, 1.0)
    assert f1_interval([Counts(2, 1, 1)]) == pytest.approx((2 / 3, 2 / 3))


def test_same_seed_same_interval():
    assert f1_interval(DOCS, seed=3) == f1_interval(DOCS, seed=3)
    assert f1_interval(DOCS, n_resamples=50, seed=3) != f1_interval(DOCS, n_resamples=50, seed=4)


def test_many_documents_take_no_more_draws_than_few(monkeypatch):
    drawn = []

    class Draws:
        def __init__(self, seed):
            self.rng = make(seed)

        def multinomial(self, n, shares, size):
            drawn.append(len(shares))
            return self.rng.multinomial(n, shares, size)

    make = np.random.default_rng
    docs = [Counts(*map(int, row)) for row in make(0).integers(0, 4, size=(20_000, 3))]
    monkeypatch.setattr(np.random, "default_rng", Draws)
    low, high = f1_interval(docs)
    assert drawn == [4**3]  # one share for each row of counts, not for each document
    assert 0.49 < low < high < 0.51


# Two systems on four documents with 4, 2, 3 and 1 gold spans.
A = [[4, 0, 0], [1, 1, 1], [2, 0, 1], [1, 0, 0]]  # 2·8 / (16 + 1 + 2) = 16/19
B = [[2, 1, 2], [2, 0, 0], [1, 1, 2], [1, 1, 0]]  # 2·6 / (12 + 3 + 4) = 12/19
B2 = [[4, 0, 0], [2, 0, 0], [3, 0, 0], [1, 0, 0]]  # 1


def f1(rows) -> float:
    return Counts.total(Counts(*row) for row in rows).f1


def test_paired_difference_equals_all_resamples_of_a_small_corpus():
    """4 documents have 256 equally likely resamples, drawn alike for both systems."""
    found = paired_f1_difference([A], [B], n_resamples=100_000)
    differences = [
        f1(A[i] for i in drawn) - f1(B[i] for i in drawn)
        for drawn in itertools.product(range(4), repeat=4)
    ]
    assert found.difference == pytest.approx(4 / 19)
    expected = np.quantile(differences, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx(expected, abs=0.01)
    assert found.p == pytest.approx(2 * np.mean(np.array(differences) <= 1e-12), abs=0.005)


def test_paired_difference_is_of_the_means_over_runs():
    found = paired_f1_difference([A], [B, B2], n_resamples=10)
    assert found.difference == pytest.approx(16 / 19 - (12 / 19 + 1) / 2)
    turned = paired_f1_difference([B, B2], [A], n_resamples=10)
    assert turned.difference == pytest.approx(-found.difference)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_runs_drawn_anew_widen_the_interval():
    """Documents that are all alike leave nothing but the runs: of two runs with 1 and 1/2 on the
    one side, a half of the resamples draws both, a quarter each one twice."""
    good, poor = [[1, 0, 0]] * 3, [[1, 2, 0]] * 3
    found = paired_f1_difference([good, poor], [poor])
    assert found[:3] == pytest.approx((0.25, 0.25, 0.25))
    found = paired_f1_difference([good, poor], [poor], resample_runs=True)
    assert found[:3] == pytest.approx((0.25, 0.0, 0.5))
    assert found.p == pytest.approx(0.5, abs=0.02)  # twice the quarter without a difference


def test_equal_runs_differ_by_nothing():
    assert paired_f1_difference([A, B], [B, A]) == pytest.approx((0, 0, 0, 1))


INCOMPARABLE = [
    ([A], [B[:3]], "4 and 3"),
    ([A], [[B[0], B[2], B[1], B[3]]], "gold spans differ"),
    ([A, A[:2]], [B], r"first setting has 2 runs with numbers of documents \[2, 4\]"),
    ([A], [], "second setting has 0 runs"),
]


def test_other_documents_cannot_be_compared():
    for a, b, words in INCOMPARABLE:
        with pytest.raises(BioclinError, match=words):
            paired_f1_difference(a, b)
