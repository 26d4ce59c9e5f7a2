"""What the progress bar says."""

from spacy_bioclin.parallel.progress import _format_rate

RATES = [
    (1234.5, "1,234.5 a second"),
    (1.0, "1.0 a second"),
    (0.5, "30.0 a minute"),
    (0.01, "36.0 an hour"),
    (0.0001, "0.4 an hour"),
]


def test_rates_have_the_unit_in_which_they_are_at_least_one() -> None:
    assert {rate: _format_rate(rate) for rate, _ in RATES} == dict(RATES)
