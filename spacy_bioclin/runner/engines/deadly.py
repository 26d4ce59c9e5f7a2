"""Find the notes that end the process that reads them: a crash in a library, or no memory."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from ...errors import BioclinError
from ...parallel import WorkerDied
from ..parts import Part
from ..records import Record
from ..work import Done

TRIES = 2  # a worker may also be killed from outside
MAX_DEADLY = 10  # of a part


class CanWork(Protocol):
    """Workers that make parts."""

    def work(self, part: Part) -> Done:
        """Make a part.

        RAISES (WorkerDied): The worker died.
        """


def work_around_deadly(workers: CanWork, part: Part, remedy: str) -> Done:
    """Make a part without the notes that end the process.

    The part is tried twice. If the worker dies each time, the part is halved until single notes are
    left. Those that end two more processes are left out.

    workers (CanWork): They make parts.
    remedy (str): How the user may get more memory.
    RAISES (BioclinError): Workers die, and it is not because of some notes.
    """

    def attempt(part: Part, tries: int) -> Done | None:
        n_died = n_unready = 0
        while n_died < tries:
            try:
                return workers.work(part)
            except WorkerDied as death:
                n_unready += death.starting
                n_died += not death.starting
            if n_unready == TRIES:
                raise BioclinError(
                    "a worker died while it loaded the pipeline; perhaps the memory is not "
                    f"enough: {remedy}"
                )
        return None

    def kills(records: Sequence[Record]) -> bool:
        tries = TRIES if len(records) == 1 else 1
        return attempt(Part(part.number, list(records), []), tries) is None

    if (done := attempt(part, TRIES)) is not None:
        return done
    deadly = find_deadly(part.records, kills) if part.records else None
    if deadly is not None:
        numbers = {record.number for record in deadly}
        rest = [record for record in part.records if record.number not in numbers]
        done = attempt(part._replace(records=rest, deadly=deadly), TRIES)
        if done is not None:
            return done
    places = [record.place for record in part.records] or ["no note"]
    raise BioclinError(
        f"every worker that reads the notes from {places[0]} to {places[-1]} dies, and not because "
        f"of a few of them; perhaps the memory is not enough: {remedy}"
    )


def find_deadly(
    records: Sequence[Record], kills: Callable[[Sequence[Record]], bool]
) -> list[Record] | None:
    """Find the notes that end the process among some that do.

    kills (Callable): Tells whether the process ends that reads some notes.
    RETURNS (list[Record] | None): In order; None if there are more than `MAX_DEADLY`, or any note
        seems to do so.
    """
    probes = [records[0], records[len(records) // 2], records[-1]] if len(records) > 2 else []
    if probes and all(kills([record]) for record in probes):
        return None
    found: list[Record] = []
    for record in _halve(records, kills):
        found.append(record)
        if len(found) > MAX_DEADLY:
            return None
    return found


def _halve(
    records: Sequence[Record], kills: Callable[[Sequence[Record]], bool]
) -> Iterator[Record]:
    if len(records) == 1:
        yield records[0]
        return
    half = len(records) // 2
    for some in (records[:half], records[half:]):
        if some and kills(some):
            yield from _halve(some, kills)
