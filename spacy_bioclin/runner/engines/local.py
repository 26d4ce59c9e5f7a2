"""Annotate in processes of this machine."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...parallel import ChildProcess, Workers, map_in_order
from ..parts import Part
from ..work import Done
from .deadly import work_around_deadly


class LocalEngine:
    """Annotate in processes of this machine.

    workers (int): Number of processes.
    apart (bool): Start a process even for one worker, so that a note that ends it does not end the
        command. Otherwise one worker is the process of the command.
    """

    name = "local"
    remedy = "use fewer processes with --processes"

    def __init__(self, workers: int, *, apart: bool = False) -> None:
        self.workers, self.apart = workers, apart

    def describe(self) -> dict[str, Any]:
        """Describe the engine for the record of a run."""
        return {"name": self.name, "workers": self.workers}

    def map(
        self, start: Callable[[], Callable[[Part], Done]], parts: Iterable[Part]
    ) -> Iterator[tuple[Part, Done]]:
        """Make parts.

        start (Callable): Called once in each process; gives the function that makes a part.
        YIELDS (tuple[Part, Done]): Each part and what became of it, in order.
        RAISES (BioclinError): The work failed, or processes die and it is not because of a few
            notes.
        """
        if self.workers == 1 and not self.apart:
            make_part = start()
            for part in parts:
                yield part, make_part(part)
            return
        one_thread = self.workers > 1  # there is a process for each core then

        def make() -> ChildProcess[Part, Done]:
            return ChildProcess(start, one_thread=one_thread)

        yield from map_with_workers(make, self.workers, parts, self.remedy)


def map_with_workers(
    make: Callable[[], Any], n: int, parts: Iterable[Part], remedy: str
) -> Iterator[tuple[Part, Done]]:
    """Make parts in workers of any engine, around the notes that end them.

    make (Callable): Makes a worker.
    n (int): Number of workers.
    remedy (str): How the user may get more memory.
    YIELDS (tuple[Part, Done]): Each part and what became of it, in order.
    """
    workers: Workers[Part, Done] = Workers(make, n)

    def work(part: Part) -> Done:
        return work_around_deadly(workers, part, remedy)

    yield from map_in_order(work, parts, n, workers.close)
