"""What the progress bar says."""

import pytest

from spacy_bioclin.parallel.progress import _format_rate


@pytest.mark.parametrize(
    ("per_second", "shown"),
    [
        (1234.5, "1,234.5 a second"),
        (1.0, "1.0 a second"),
        (0.5, "30.0 a minute"),
        (0.01, "36.0 an hour"),
        (0.0001, "0.4 an hour"),
    ],
)
def test_rates_have_the_unit_in_which_they_are_at_least_one(per_second: float, shown: str) -> None:
    assert _format_rate(per_second) == shown
