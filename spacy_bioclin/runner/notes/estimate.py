"""Annotate the first notes of an input, and estimate how long all of them take."""

from collections.abc import Callable
from itertools import islice
from time import perf_counter
from typing import NamedTuple

from ..parts import Part, add_counts, cut
from ..records import Form
from ..work import Counts, Done

SAMPLE_RECORDS = 50  # of a part


class Estimate(NamedTuple):
    """What a sample shows.

    first (Counts): Counts of the first note that can be read.
    counts (Counts): Sums of the timed notes.
    seconds (float): Time for these.
    refused (list[str]): Reasons for which notes of the sample would not be written.
    total (float | None): Notes of the whole input, estimated from the share that was read; None if
        that is not known.
    is_all (bool): Whether the sample is the whole input.
    """

    first: Counts
    counts: Counts
    seconds: float
    refused: list[str]
    total: float | None
    is_all: bool

    @property
    def rate(self) -> float:
        """Compute the notes a second."""
        return float(self.counts.get("written", 0)) / max(self.seconds, 1e-9)

    @property
    def hours(self) -> float | None:
        """Compute the hours for all notes in one process."""
        return self.total / self.rate / 3600 if self.total is not None and self.rate else None


def estimate(
    form: Form, start: Callable[[], Callable[[Part], Done]], *, seconds: float, limit: int | None
) -> Estimate:
    """Annotate notes for some seconds. Loading the pipeline, and the first note, are not timed.

    form (Form): The input.
    start (Callable): Loads the pipeline, and gives the function that makes a part.
    limit (int | None): Largest number of notes of the run.
    """
    make_part = start()
    counts: Counts = {"written": 0, "words": 0}
    first: Counts = {}
    refused: list[str] = []
    spent, n_read = 0.0, 0
    share, is_all = 1.0, True
    total: float | None
    for part in cut(islice(form.read(), limit), SAMPLE_RECORDS):
        refused += [str(bad.error) for bad in part.unreadable]
        if part.records and not first:
            made = make_part(Part(0, part.records[:1], []))
            first = {**made.counts, "place": part.records[0].place}
        before = perf_counter()
        made = make_part(part._replace(unreadable=[]))
        spent += perf_counter() - before
        add_counts(counts, made.counts)
        refused += [each["reason"] for each in made.refused]
        n_read += len(part.records) + len(part.unreadable)
        share = form.done / form.total if form.total else 1.0
        if spent >= seconds and share < 1:  # else the rest is in a buffer
            is_all = False
            break
    total = n_read if is_all else n_read / share if share else None
    if limit is not None and total is not None:
        total = min(total, limit)
    return Estimate(first, counts, spent, refused, total, is_all)
