"""Run the same work on many parts in one process or several, and show how far it has come."""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import BioclinError
from .interrupts import deferred, hidden_from_children
from .notices import call_without_text, hide_texts

if TYPE_CHECKING:
    from concurrent.futures import Future

    from rich.console import Console

P = TypeVar("P")
R = TypeVar("R")
PARTS_AHEAD = 2  # parts that wait for each process, so that none is idle and memory is bounded


def map_parts(
    start: Callable[[], Callable[[P], R]],
    parts: Iterable[P],
    processes: int,
    *,
    option: str = "--processes",
) -> Iterator[tuple[P, R]]:
    """Work on parts.

    start (Callable): Called once in each process (so it can be pickled); gives what does the work.
    parts (Iterable[P]): Read as far ahead as the processes need.
    processes (int): 1 works in this process.
    option (str): Command-line option that sets their number, for the error message.
    YIELDS (tuple[P, R]): Each part and what became of it, in order.
    RAISES (BioclinError): A process was killed, or has failed: its error may hold text of a note.
    """
    if processes == 1:
        work = start()
        for part in parts:
            yield part, work(part)
        return
    # Imported here: every command shows progress, few start processes.
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Not "fork": the progress bar runs in a thread, and a fork may copy a lock that it holds.
    context = get_context("spawn")
    waiting: deque[tuple[P, Future[R]]] = deque()
    with deferred(), hidden_from_children():  # its locks start Python's resource tracker
        pool = ProcessPoolExecutor(processes, context, _start_worker, (start,))

    def submit(part: P) -> "Future[R]":
        if len(pool._processes) == processes:
            return pool.submit(_work, part)
        with deferred(), hidden_from_children():
            return pool.submit(_work, part)

    try:
        for part in parts:
            waiting.append((part, submit(part)))
            if len(waiting) > PARTS_AHEAD * processes:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()
        pool.shutdown()
    except BrokenProcessPool:
        raise BioclinError(
            f"one of {processes} processes was killed, perhaps for want of memory; use fewer with "
            f"{option}"
        ) from None
    finally:
        # After an error nobody waits for the parts that they work on, perhaps for minutes.
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(cancel_futures=True)


_WORKER: dict[str, Any] = {}  # of this process: how to start, and from then on what does the work


def _start_worker(start: Callable[[], Callable[[Any], Any]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows it cannot be hidden
    end_with_parent()
    hide_texts()
    _WORKER["start"] = start


def end_with_parent() -> None:
    """End this process as soon as its parent is killed, instead of working on for nobody."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    Thread(target=follow, daemon=True).start()


def _work(part: Any) -> Any:
    return call_without_text(_start_and_work, part)


def _start_and_work(part: Any) -> Any:
    # Not when the process starts: an error there does not reach the parent.
    if "work" not in _WORKER:
        _WORKER["work"] = _WORKER["start"]()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # there is a process a core already
    return _WORKER["work"](part)


@contextmanager
def show_progress(console: "Console", what: str) -> Iterator[Callable[..., None]]:
    """Show a bar with the share done, a rate and the time left.

    what (str): What is counted ("records").
    YIELDS (Callable): Sets the bar to a share done, from 0 to 1, the number done so far, and
        perhaps the number of words in these.
    """
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(f"{{task.fields[n]}} {what}, {{task.fields[rate]}}, left"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("", total=1.0, n=0, rate="?")

        def show(share: float, n: int, words: int | None = None) -> None:
            elapsed = progress.tasks[bar].elapsed
            rate = _format_rate(n / elapsed) if elapsed else "?"
            if elapsed and words is not None:
                rate += f", {words / elapsed:,.0f} words a second"
            progress.update(bar, completed=share, n=f"{n:,}", rate=rate)

        yield show


def _format_rate(per_second: float) -> str:
    """Write a rate in the smallest unit in which it is at least one."""
    units = {"a second": 1, "a minute": 60, "an hour": 3600}
    unit = next((unit for unit, n in units.items() if per_second * n >= 1), "an hour")
    return f"{per_second * units[unit]:,.1f} {unit}"
