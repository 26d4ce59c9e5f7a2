"""Learning-rate schedules."""

from collections.abc import Iterator
from typing import Literal

from ..catalog.choices import choose_settings
from ..errors import BioclinError


class WarmupLinear(Iterator[float]):
    """Yield the rates of `make_warmup_linear`. Unlike a generator it can be copied and pickled, and
    with it a pipeline that has an optimizer.

    peak (float): The highest rate.
    n_rising (int): Updates before the peak.
    total_steps (int): Number of updates; 0 if it is unknown.
    """

    def __init__(self, peak: float, n_rising: int, total_steps: int) -> None:
        self.peak, self.n_rising, self.total_steps = peak, n_rising, total_steps
        self.step = 0

    def __next__(self) -> float:
        step, self.step = self.step, self.step + 1
        if step < self.n_rising:  # starts above 0: an update at rate 0 would teach nothing
            return self.peak * (step + 1) / (self.n_rising + 1)
        if not self.total_steps:
            return self.peak
        left = max(0, self.total_steps - step)
        return self.peak * left / max(1, self.total_steps - self.n_rising)


def make_warmup_linear(
    initial_rate: float | Literal["auto"],
    warmup: float | Literal["auto"] = 0.0,
    *,
    total_steps: int | str,
    warmup_steps: int = 0,
    encoder: str | None = None,
) -> Iterator[float]:
    """Make a schedule that rises linearly to a peak and falls linearly to 0 (registered as
    `spacy-bioclin.warmup_linear.v1`).

    It differs from thinc's `warmup_linear.v1` in three ways. "auto" takes what suits the encoder,
    see `choose_settings`. The warm-up may be a share of all updates, as in papers, because their
    number may be unknown until the corpus has been read. And the number of updates may be unknown:
    then the rate stays at its peak. This is so if `max_steps` is 0, which is spaCy's "no limit",
    and outside of training runs: spaCy passes the reference `${training.max_steps}` itself in
    `nlp.create_optimizer()`, `nlp.resume_training()` and `nlp.initialize()`. There it is at its
    peak from the first update, because the loops of users seldom call `optimizer.step_schedules()`.

    initial_rate (float | str): The peak, or "auto".
    warmup (float | str): Share of the updates before the peak, from 0 to less than 1, or "auto";
        BERT has 0.1 (Devlin et al. 2019).
    total_steps (int | str): Number of updates: `${training.max_steps}`.
    warmup_steps (int): Number of updates before the peak, instead of `warmup`.
    encoder (str | None): Folder or hub name of the encoder, for "auto": `${paths.encoder}`.
    RETURNS (Iterator[float]): A rate for each update; 0 for those beyond the last.
    RAISES (BioclinError): The warm-up is not such a share or number, or both are given.
    """
    choice = choose_settings(encoder)
    if initial_rate == "auto":
        initial_rate = choice.learn_rate
    if warmup == "auto":
        warmup = 0.0 if warmup_steps else choice.warmup
    given = f"spacy-bioclin.warmup_linear.v1: warmup = {warmup}, warmup_steps = {warmup_steps}"
    if not 0 <= warmup < 1:
        raise BioclinError(
            f"{given}: want a share of the updates as warmup, a number from 0 to less than 1"
        )
    if warmup_steps < 0 or (warmup and warmup_steps):
        raise BioclinError(f"{given}: want one of them, and no negative number")
    if isinstance(total_steps, str):
        return WarmupLinear(initial_rate, 0, 0)
    return WarmupLinear(initial_rate, warmup_steps or round(warmup * total_steps), total_steps)
