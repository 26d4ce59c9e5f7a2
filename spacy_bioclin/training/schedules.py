"""Learning-rate schedules."""

from collections.abc import Iterator

from ..errors import BioclinError


def make_warmup_linear(initial_rate: float, warmup: float, total_steps: int) -> Iterator[float]:
    """Make a schedule that rises linearly to a peak and falls linearly to 0 (registered as
    `spacy-bioclin.warmup_linear.v1`).

    Unlike thinc's `warmup_linear.v1` it takes the warm-up as a share of all updates, as papers do,
    because the number of updates may be unknown until the corpus has been read.

    initial_rate (float): The peak.
    warmup (float): Share of the updates before the peak, from 0 to less than 1; BERT has 0.1
        (Devlin et al. 2019).
    total_steps (int): Number of updates; `${training.max_steps}`.
    RETURNS (Iterator[float]): A rate for each update; 0 for those beyond the last.
    RAISES (BioclinError): The warm-up is not such a share.
    """
    if not 0 <= warmup < 1:
        raise BioclinError(
            f"spacy-bioclin.warmup_linear.v1: warmup = {warmup}, want a share of the updates: a "
            "number from 0 to less than 1"
        )
    return _warmup_linear(initial_rate, round(warmup * total_steps), total_steps)


def _warmup_linear(peak: float, n_rising: int, total_steps: int) -> Iterator[float]:
    for step in range(n_rising):  # starts above 0: an update at rate 0 would teach nothing
        yield peak * (step + 1) / (n_rising + 1)
    for step in range(n_rising, total_steps):
        yield peak * (total_steps - step) / (total_steps - n_rising)
    while True:
        yield 0.0
