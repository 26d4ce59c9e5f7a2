"""Measure how the work of an action grows with its input: about 4 for n and 4n if it is linear.

The lines of Python that run are counted, which is exact. What happens inside a function in C, such
as the search of a regular expression, is seen by the clock of the processor alone.
"""

import gc
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

FACTOR = 4
# Linear is 4, n log n is below 5, quadratic is 16.
MAX_RATIO = 10.0
# For the clock, linear is 16 and quadratic 256: no busy machine makes the one of the other.
CLOCK_FACTOR, MAX_CLOCK_RATIO = 16, 64.0
# The smaller input takes so many seconds of the processor or more, so that the clock is exact.
LEAST_SECONDS = 0.002
TRIES = 6


class Subject(NamedTuple):
    """Something whose work is measured.

    make (Callable): Makes the input of a size.
    run (Callable): What is measured, over that input.
    size (int): Smallest size to begin with.
    """

    make: Callable[[int], Any]
    run: Callable[[Any], Any]
    size: int


def count_lines(subject: Subject, n: int) -> int:
    """Count the lines that run for an input of a size; a line in a loop counts each time."""
    lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    made = subject.make(n)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        subject.run(made)
    finally:
        sys.settrace(before)
    return lines


def count_growth(subject: Subject) -> float:
    """Count how many times more lines run for four times the input."""
    subject.run(subject.make(subject.size // 2))  # load what is loaded once
    small, large = (count_lines(subject, n) for n in (subject.size, FACTOR * subject.size))
    return round(large / small, 1)


def seconds(subject: Subject, made: Any) -> float:
    """Measure the processor time of one call, without the garbage collector."""
    gc.disable()
    try:
        began = time.thread_time()
        subject.run(made)
        return time.thread_time() - began
    finally:
        gc.enable()


def time_growth(subject: Subject) -> tuple[int, list[float]]:
    """Measure how many times longer sixteen times the input takes.

    RETURNS (tuple[int, list[float]]): The size, and the ratio of each try; the last one is below
        MAX_CLOCK_RATIO, or all tries were above it, as no noise of the machine makes them.
    """
    subject.run(subject.make(8))  # load what is loaded once
    size = subject.size
    while (small := seconds(subject, subject.make(size))) < LEAST_SECONDS:
        size = int(size * min(8.0, max(1.5, 1.5 * LEAST_SECONDS / max(small, 1e-4))))
    made, larger = subject.make(size), subject.make(CLOCK_FACTOR * size)
    ratios: list[float] = []
    for _ in range(TRIES):
        small = max(*(seconds(subject, made) for _ in range(3)), LEAST_SECONDS / 4)
        ratios.append(round(seconds(subject, larger) / small, 1))
        if ratios[-1] < MAX_CLOCK_RATIO:
            break
    return size, ratios


def is_linear(run: Callable[[str], Any], piece: str, size: int) -> bool:
    """Check by the clock whether the work on a text grows like its length.

    size (int): Characters of a text that is large enough to measure.
    """
    subject = Subject(lambda n: piece * n, run, max(1, size // len(piece) // CLOCK_FACTOR))
    return time_growth(subject)[1][-1] < MAX_CLOCK_RATIO
