"""Learning-rate schedules."""

from itertools import islice

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.schedules import make_warmup_linear


def test_rises_and_falls_linearly() -> None:
    rates = list(islice(make_warmup_linear(6.0, 0.2, 10), 12))
    assert rates == pytest.approx([2.0, 4.0, 6.0, 5.25, 4.5, 3.75, 3.0, 2.25, 1.5, 0.75, 0.0, 0.0])


@pytest.mark.parametrize("total", [0, 1, 3])
def test_short_and_empty_trainings(total: int) -> None:
    rates = list(islice(make_warmup_linear(1.0, 0.1, total), total + 1))
    assert rates[:1] == [1.0][:total] + [0.0][: 1 - min(total, 1)]
    assert rates[-1] == 0.0


@pytest.mark.parametrize("warmup", [-0.1, 1.0, 100])
def test_a_warmup_that_is_not_a_share(warmup: float) -> None:
    with pytest.raises(BioclinError, match=f"warmup = {warmup}, want a share"):
        make_warmup_linear(1.0, warmup, 10)
