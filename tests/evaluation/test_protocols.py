"""The papers' protocols over seeds, rates and folds, against numbers worked by hand."""

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.protocols import (
    best_of_seeds,
    folds_median,
    mean_over_all,
    mean_sd,
    median_of_seeds,
)

FIVE = [0.5, 0.9, 0.7, 0.7, 0.6]
FAILED = [0.5, None, 0.9, None, 0.6, 0.8]


def test_median_of_five_seeds():
    runs = median_of_seeds(FIVE)
    assert (runs.value, runs.n, runs.n_failed, runs.note) == (0.7, 5, 0, "")
    assert (runs.min, runs.max, runs.median) == (0.5, 0.9, 0.7)
    assert runs.mean == pytest.approx(3.4 / 5)


def test_an_even_number_of_runs_has_the_mean_of_the_middle_two():
    assert median_of_seeds([0.2, 0.8, 0.4, 0.5]).value == pytest.approx(0.45)


def test_failed_runs_are_left_out_and_counted():
    runs = median_of_seeds(FAILED)
    assert runs.value == pytest.approx(0.7)  # of 0.5, 0.6, 0.8, 0.9
    assert (runs.n, runs.n_failed) == (4, 2)
    assert mean_sd(FAILED).value == pytest.approx(0.7)
    assert best_of_seeds(FAILED).value == 0.9
    assert mean_over_all({1e-5: FAILED}).n_failed == 2


def test_mean_and_deviation_of_the_sample():
    runs = mean_sd([0.1, 0.3, 0.5])
    assert runs.value == pytest.approx(0.3)
    assert runs.sd == pytest.approx((0.08 / 2) ** 0.5)  # squares 0.04, 0 and 0.04 over n - 1


def test_one_run_and_none():
    for protocol in (median_of_seeds, mean_sd, best_of_seeds):
        runs = protocol([0.4])
        assert (runs.value, runs.sd, runs.n, runs.note) == (0.4, None, 1, "")
        for scores in ([], [None, None]):
            runs = protocol(scores)
            assert (runs.value, runs.mean, runs.sd, runs.n) == (None, None, None, 0)
            assert runs.n_failed == len(scores)


def test_zero_is_a_score():
    assert best_of_seeds([0.0, None]).value == 0.0
    assert median_of_seeds([0.0, 0.0, 0.6]).value == 0.0


def test_the_best_run_says_that_it_was_selected():
    runs = best_of_seeds(FIVE)
    assert runs.value == 0.9 and "selected on the split that it is scored on" in runs.note


def test_mean_over_all_rates_and_seeds():
    runs = mean_over_all({1e-5: [0.8, 0.6], 5e-5: [0.7, None, 0.1]})
    assert runs.value == pytest.approx(2.2 / 4)  # not the mean of the means of the rates
    assert (runs.n, runs.n_failed) == (4, 1)
    assert mean_over_all({}).value is None


# -- folds -----------------------------------------------------------------------------------------

FEW = {"0": 0.80, "1": 0.5, "2": 0.7, "3": 0.9, "4": 0.6}
MANY = {"0": 0.81, "1": 0.4, "2": 0.6, "3": 0.8, "4": None}


def test_a_setting_is_chosen_on_one_fold_and_scored_on_the_others():
    found = folds_median({"5 epochs": FEW, "10 epochs": MANY})
    assert (found.setting, found.tuned_on) == ("10 epochs", "0")
    assert found.folds.value == pytest.approx(0.6)  # of 0.4, 0.6 and 0.8
    assert (found.folds.n, found.folds.n_failed) == (3, 1)
    found = folds_median({"5 epochs": FEW, "10 epochs": MANY}, tuned_on="1")
    assert found.setting == "5 epochs"
    assert found.folds.value == pytest.approx(0.75)  # of 0.6, 0.7, 0.8 and 0.9


def test_ten_folds_have_the_median_of_nine():
    scores = {str(fold): fold / 10 for fold in range(10)}
    found = folds_median({"": scores})
    assert (found.folds.value, found.folds.n) == (0.5, 9)  # of 0.1 to 0.9
    assert folds_median({"": scores}, tuned_on="9").folds.value == 0.4


def test_ties_and_failed_runs_on_the_fold_for_tuning():
    tied = {"a": {"0": 0.5, "1": 0.1}, "b": {"0": 0.5, "1": 0.9}}
    assert folds_median(tied).setting == "a"
    failed = {"a": {"0": None, "1": 0.9}, "b": {"0": 0.2, "1": 0.3}}
    assert folds_median(failed).setting == "b"
    none = folds_median({"a": {"0": None, "1": 0.9}})
    assert (none.setting, none.folds.value, none.folds.n) == (None, None, 0)


def test_the_fold_for_tuning_has_to_be_there():
    with pytest.raises(BioclinError, match=r"no run on fold '0'.*runs on 1, 2"):
        folds_median({"a": {"2": 0.5, "1": 0.4}})
    with pytest.raises(BioclinError, match="runs on no fold"):
        folds_median({})
