"""Calibration of confidence, and thresholds for a recall."""

import numpy as np
import pytest

from spacy_bioclin.deid.calibration import (
    Candidate,
    Mention,
    choose_best_f,
    choose_thresholds,
    expected_calibration_error,
    fit_calibration,
    fit_platt,
    recall_by_label,
)
from spacy_bioclin.deid.spans import PhiSpan


def test_calibration_error_by_hand() -> None:
    # Bin 13 (0.867 to 0.933): two spans at 0.9, one right; last bin: two spans at 1.0, both right.
    error = expected_calibration_error([0.9, 0.9, 1.0, 1.0], [1, 0, 1, 1])
    assert error == pytest.approx((abs(1.8 - 1) + 0) / 4)
    assert expected_calibration_error([], []) == 0


def test_platt_mends_overconfidence() -> None:
    rng = np.random.default_rng(0)
    true = rng.uniform(0.05, 0.95, 4000)
    correct = rng.uniform(size=4000) < true
    logit = np.log(true / (1 - true))
    confidence = 1 / (1 + np.exp(-(3 * logit + 1)))
    before = expected_calibration_error(confidence, correct)
    platt = fit_platt(confidence, correct)
    after = expected_calibration_error(platt(confidence), correct)
    assert after < 0.03 < 0.1 < before
    assert platt.slope == pytest.approx(1 / 3, abs=0.05)


def test_few_spans_change_little() -> None:
    platt = fit_platt([0.9], [1])
    assert platt.slope == pytest.approx(1, abs=0.3)
    assert float(platt(0.9)) == pytest.approx(0.9, abs=0.05)


def test_the_order_is_never_turned_round() -> None:
    platt = fit_platt([0.1] * 50 + [0.9] * 50, [1] * 50 + [0] * 50)
    assert platt.slope == 0
    assert float(platt(0.3)) == pytest.approx(0.5, abs=0.02)


def test_thresholds_reach_the_target_and_no_more() -> None:
    mentions = [Mention("A", weakest, "A") for weakest in (0.9, 0.8, 0.7, 0.2)]
    mentions += [Mention("B", 0.6, "A"), Mention("B", 0.4, "B"), Mention("C", 0.0, "")]
    thresholds = choose_thresholds(mentions, 0.75)
    # Three of four A: 0.7; but both B are needed, and one of them hangs on a span labelled A.
    assert thresholds == {"A": 0.6, "B": 0.4}
    assert recall_by_label(mentions, thresholds) == {"A": 0.75, "B": 1.0, "C": 0.0}
    assert choose_thresholds(mentions, 1.0) == {"A": 0.2, "B": 0.4}


def test_one_threshold_is_best_for_f() -> None:
    # Worked by hand: precision after 1, 2, 3, 4 spans is 1, 1, 2/3, 3/4, recall of 4 mentions 1/4,
    # 2/4, 2/4, 3/4 (the span of 0.2 covers the third, the fourth is not found).
    found = [(0.9, True), (0.8, True), (0.3, False), (0.2, True)]
    candidates = [Candidate(PhiSpan(0, 1, "A", p, "ner"), right) for p, right in found]
    mentions = [Mention("A", weakest, "A") for weakest in (0.9, 0.8, 0.2)] + [Mention("A", 0, "")]
    assert choose_best_f(candidates, mentions) == pytest.approx(0.1)
    assert choose_best_f(candidates, [*mentions[:2], mentions[3]]) == pytest.approx(0.55)
    assert choose_best_f([], mentions) == choose_best_f(candidates, []) == 0


def test_groups_are_calibrated_apart() -> None:
    spans = [PhiSpan(0, 1, "A", 0.9, "ner"), PhiSpan(0, 1, "B", 0.9, "ner")]
    spans.append(PhiSpan(0, 1, "A", 0.9, "es_dni"))
    candidates = [Candidate(span, span.label == "A") for span in spans for _ in range(50)]
    fitted = fit_calibration(candidates)
    assert set(fitted) == {"ner:A", "ner:B", "es_dni"}
    assert float(fitted["ner:A"](0.9)) > 0.97 > 0.1 > float(fitted["ner:B"](0.9))
