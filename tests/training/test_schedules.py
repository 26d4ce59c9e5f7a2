"""Learning-rate schedules."""

import pickle
from itertools import islice
from typing import Any

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.schedules import make_warmup_linear

RATES = [2.0, 4.0, 6.0, 5.25, 4.5, 3.75, 3.0, 2.25, 1.5, 0.75, 0.0, 0.0]


def test_rises_and_falls_linearly() -> None:
    for warmup in ({"warmup": 0.2}, {"warmup_steps": 2}):
        rates = list(islice(make_warmup_linear(6.0, total_steps=10, **warmup), 12))
        assert rates == pytest.approx(RATES)


def test_short_trainings_and_more_warmup_than_training() -> None:
    for total in (1, 3):
        rates = list(islice(make_warmup_linear(1.0, 0.1, total_steps=total), total + 1))
        assert rates[0] == 1.0
        assert rates[-1] == 0.0
    rates = list(islice(make_warmup_linear(1.0, total_steps=2, warmup_steps=3), 5))
    assert rates == [0.25, 0.5, 0.75, 0.0, 0.0]


def test_stays_at_its_peak_without_a_limit() -> None:
    rates = list(islice(make_warmup_linear(1.0, total_steps=0, warmup_steps=1), 4))
    assert rates == [0.5, 1.0, 1.0, 1.0]
    assert list(islice(make_warmup_linear(1.0, 0.1, total_steps=0), 2)) == [1.0, 1.0]


def test_is_at_its_peak_outside_of_training_runs() -> None:
    """`nlp.create_optimizer()` passes the reference, and many loops never step the schedule."""
    rates = make_warmup_linear(1.0, total_steps="${training.max_steps}", warmup_steps=100)
    assert list(islice(rates, 2)) == [1.0, 1.0]


def test_continues_after_pickling() -> None:
    schedule = make_warmup_linear(6.0, total_steps=10, warmup_steps=2)
    assert list(islice(schedule, 3)) == pytest.approx(RATES[:3])
    copied = pickle.loads(pickle.dumps(schedule))
    assert list(islice(copied, 9)) == pytest.approx(RATES[3:])


def test_warmups_that_cannot_be() -> None:
    for warmup in (-0.1, 1.0, 100):
        with pytest.raises(BioclinError, match=rf"warmup = {warmup}, .*want a share"):
            make_warmup_linear(1.0, warmup, total_steps=10)
    for warmup, steps in ((0.1, 3), (0.0, -1)):
        with pytest.raises(BioclinError, match="want one of them"):
            make_warmup_linear(1.0, warmup, total_steps=10, warmup_steps=steps)


def test_auto_suits_the_encoder() -> None:
    for encoder, rate, warmup in (
        ("bioclin-sm", 5e-4, 0.05),
        ("bioclin-compact", 5e-4, 0.05),
        ("PlanTL-GOB-ES/bsc-bio-ehr-es", 3e-5, 0.1),
        (None, 5e-5, 0.1),
        ("${paths.encoder}", 5e-5, 0.1),  # what spaCy passes outside of training runs
    ):

        def make(peak: Any, share: Any, **more: Any) -> list[float]:
            return list(islice(make_warmup_linear(peak, share, total_steps=100, **more), 100))

        assert make("auto", "auto", encoder=encoder) == make(rate, warmup)
        assert make(1e-3, "auto", encoder=encoder) == make(1e-3, warmup)
        assert make("auto", 0.5, encoder=encoder) == make(rate, 0.5)
        assert make(1.0, "auto", warmup_steps=7) == make(1.0, 0.0, warmup_steps=7)
