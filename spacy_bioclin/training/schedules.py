"""Schedules of the learning rate."""

from collections.abc import Iterator

from ..errors import BioclinError


def make_warmup_linear(initial_rate: float, warmup: float, total_steps: int) -> Iterator[float]:
    """Make a schedule that rises to a peak and falls to 0, both along a line (registered as
    `spacy-bioclin.warmup_linear.v1`). Unlike thinc's `warmup_linear.v1` it takes the warm-up as a
    share, as papers state it: the number of updates may not be known before the corpus is.

    initial_rate (float): The peak.
    warmup (float): Share of the updates before the peak, from 0 to less than 1; BERT has 0.1
        (Devlin et al. 2019).
    total_steps (int): Updates; `${training.max_steps}`.
    RETURNS (Iterator[float]): A rate per update; 0 for those beyond the last.
    RAISES (BioclinError): The share is none.
    """
    if not 0 <= warmup < 1:
        raise BioclinError(
            f"spacy-bioclin.warmup_linear.v1: warmup = {warmup}, want a share of the updates: a "
            "number from 0 to less than 1"
        )
    return _warmup_linear(initial_rate, round(warmup * total_steps), total_steps)


def _warmup_linear(peak: float, n_rising: int, total_steps: int) -> Iterator[float]:
    """The first update of the rise has one step's rate rather than 0, which would teach nothing."""
    for step in range(n_rising):
        yield peak * (step + 1) / (n_rising + 1)
    for step in range(n_rising, total_steps):
        yield peak * (total_steps - step) / (total_steps - n_rising)
    while True:
        yield 0.0
