"""Workers of any kind, each of which works on one part at a time."""

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Generic, Protocol, TypeVar

from ..errors import BioclinError
from .children import ChildProcess, WorkerDied

P = TypeVar("P")
R = TypeVar("R")
P_in = TypeVar("P_in", contravariant=True)
R_out = TypeVar("R_out", covariant=True)
PARTS_AHEAD = 2  # parts that wait for each worker, so that none is idle and memory is bounded


class Worker(Protocol[P_in, R_out]):
    """A process, here or elsewhere, that works on one part at a time."""

    def work(self, part: P_in) -> R_out:
        """Work on a part.

        RAISES (WorkerDied): Its process died.
        """

    def close(self) -> None:
        """End it, whatever it does; called from another thread too."""


class Workers(Generic[P, R]):
    """A number of workers. One that died is replaced.

    make (Callable): Makes a worker, and returns when it is ready to work.
    n (int): Largest number of workers. One is made when a part finds none that is idle.
    """

    def __init__(self, make: Callable[[], Worker[P, R]], n: int) -> None:
        self._make, self._n = make, n
        self._ready: SimpleQueue[Worker[P, R] | BaseException] = SimpleQueue()
        self._lock = Lock()
        self._all: list[Worker[P, R]] = []
        self._n_started = 0
        self._closed = False

    def work(self, part: P) -> R:
        """Work on a part as soon as a worker is idle.

        RAISES (WorkerDied): The worker died.
        RAISES (CancelledError): All workers were closed.
        """
        with self._lock:
            if self._ready.empty() and self._n_started < self._n and not self._closed:
                self._n_started += 1
                # A worker of a cluster may be ready in minutes or never; others take its parts.
                Thread(target=self._start, daemon=True).start()
        worker = self._ready.get()
        if isinstance(worker, BaseException):
            if self._closed:
                self._ready.put(worker)  # for the next
            with self._lock:
                self._n_started -= 1
            raise worker
        try:
            result = worker.work(part)
        except WorkerDied:
            if self._closed:
                raise CancelledError from None
            with self._lock:
                self._n_started -= 1
                self._all.remove(worker)
            worker.close()
            raise
        except BaseException:
            self._ready.put(worker)
            raise
        self._ready.put(worker)
        return result

    def _start(self) -> None:
        try:
            worker = self._make()
        except BaseException as error:
            self._ready.put(error)
            return
        with self._lock:
            closed = self._closed
            if not closed:
                self._all.append(worker)
        if closed:
            worker.close()
        else:
            self._ready.put(worker)

    def close(self) -> None:
        """End all workers, whatever they do."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.close()
        self._ready.put(CancelledError())


def map_in_order(
    work: Callable[[P], R], parts: Iterable[P], n: int, stop: Callable[[], None]
) -> Iterator[tuple[P, R]]:
    """Work on parts in threads, which wait for processes.

    work (Callable): Works on a part.
    parts (Iterable[P]): Read `PARTS_AHEAD` for each thread ahead.
    n (int): Number of threads.
    stop (Callable): Ends what the threads wait for.
    YIELDS (tuple[P, R]): Each part and what became of it, in order.
    """
    threads = ThreadPoolExecutor(n, initializer=leave_signals)
    waiting: deque[tuple[P, Future[R]]] = deque()
    try:
        for part in parts:
            waiting.append((part, threads.submit(work, part)))
            if len(waiting) > PARTS_AHEAD * n:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        # After an error nobody waits for the parts that they work on, perhaps for minutes.
        threads.shutdown(wait=False, cancel_futures=True)
        stop()
        threads.shutdown()


def leave_signals() -> None:
    """Leave signals to the main thread: what a thread starts would get them too."""
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})


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
    workers: Workers[P, R] = Workers(lambda: ChildProcess(start, one_thread=True), processes)

    def work_or_explain(part: P) -> R:
        try:
            return workers.work(part)
        except WorkerDied:
            raise BioclinError(describe_death(processes, option)) from None

    yield from map_in_order(work_or_explain, parts, processes, workers.close)


def describe_death(processes: int, option: str) -> str:
    """Describe for the user that a process died, whatever it worked on."""
    return (
        f"one of {processes} processes was killed, perhaps for want of memory; use fewer with "
        f"{option}"
    )
