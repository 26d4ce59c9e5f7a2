"""Measure how the time of an action grows with its input: about 4 for n and 4n if it is linear."""

import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

FACTOR = 4
# Linear is 4, n log n is below 5, quadratic is 16.
MAX_RATIO = 10.0
# The smaller input takes so many seconds of the processor or more, so that the clock is exact.
LEAST_SECONDS = 0.005
TRIES = 4


class Subject(NamedTuple):
    """Something whose time is measured.

    make (Callable): Makes the input of a size.
    run (Callable): What is measured, over that input.
    size (int): Smallest size to begin with.
    """

    make: Callable[[int], Any]
    run: Callable[[Any], Any]
    size: int


def seconds(subject: Subject, made: Any) -> float:
    """Measure the processor time of one call, without the garbage collector."""
    gc.disable()
    try:
        began = time.process_time()
        subject.run(made)
        return time.process_time() - began
    finally:
        gc.enable()


def find_growth(subject: Subject) -> tuple[int, list[float]]:
    """Measure how many times longer four times the input takes.

    RETURNS (tuple[int, list[float]]): The size, and the ratio of each try; the last one is below
        MAX_RATIO, or all tries were above it, as no noise of the machine makes them.
    """
    subject.run(subject.make(8))  # load what is loaded once
    size = subject.size
    while (small := seconds(subject, subject.make(size))) < LEAST_SECONDS:
        size = int(size * min(8.0, max(1.5, 1.5 * LEAST_SECONDS / max(small, 1e-4))))
    made, larger = subject.make(size), subject.make(FACTOR * size)
    ratios: list[float] = []
    for _ in range(TRIES):
        small = max(min(seconds(subject, made) for _ in range(2)), LEAST_SECONDS / 4)
        ratios.append(round(seconds(subject, larger) / small, 1))
        if ratios[-1] < MAX_RATIO:
            break
    return size, ratios
