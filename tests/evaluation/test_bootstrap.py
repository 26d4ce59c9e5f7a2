import itertools
import time

import numpy as np
import pytest

from spacy_bioclin.evaluation.bootstrap import f1_interval
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


def test_many_documents_take_little_time():
    rng = np.random.default_rng(0)
    docs = [Counts(*map(int, row)) for row in rng.integers(0, 4, size=(20_000, 3))]
    started = time.perf_counter()
    low, high = f1_interval(docs)
    assert time.perf_counter() - started < 1  # 40 ms alone on the machine
    assert 0.49 < low < high < 0.51
