"""A child process that works on one part after another, and whose death is noticed."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, Generic, TypeVar

from ..interrupts import hidden_from_children
from ..notices import call_without_text, hide_texts

P = TypeVar("P")
R = TypeVar("R")


class WorkerDied(Exception):
    """A process ended before it gave a result.

    starting (bool): It had not begun to work on a part.
    """

    def __init__(self, *, starting: bool = False) -> None:
        super().__init__("a process died")
        self.starting = starting


class ChildProcess(Generic[P, R]):
    """A child process that works on parts, one at a time.

    start (Callable): Called once in the process (so it can be pickled); gives what does the work.
    one_thread (bool): Let torch use one thread, because there is a process for each core.
    RAISES (WorkerDied): It died while it started.
    RAISES (Exception): `start` failed.
    """

    def __init__(self, start: Callable[[], Callable[[P], R]], *, one_thread: bool) -> None:
        # Not "fork": the progress bar runs in a thread, and a fork may copy a lock that it holds.
        context = get_context("spawn")
        self._connection, inside = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(inside, start, one_thread), daemon=True
        )
        with hidden_from_children():  # its locks start Python's resource tracker
            self._process.start()
        inside.close()  # so that its end is noticed
        try:
            self._receive()
        except WorkerDied:
            self.close()
            raise WorkerDied(starting=True) from None
        except BaseException:
            self.close()
            raise

    def work(self, part: P) -> R:
        """Work on a part.

        RETURNS (R): What became of it.
        RAISES (WorkerDied): The process died.
        RAISES (Exception): The work failed: the error holds no text of a note.
        """
        try:
            self._connection.send(part)
        except OSError:
            raise WorkerDied() from None
        result: R = self._receive()
        return result

    def _receive(self) -> Any:
        try:
            result, error = self._connection.recv()
        except (EOFError, OSError):
            raise WorkerDied() from None
        if error is not None:
            raise error
        return result

    def kill(self) -> None:
        """End the process, whatever it does, without waiting for its end."""
        self._process.kill()

    def close(self) -> None:
        """End the process, whatever it does."""
        self.kill()
        self._process.join()


def _serve(
    connection: Connection, start: Callable[[], Callable[[Any], Any]], one_thread: bool
) -> None:
    """Do the work of a child process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows it cannot be hidden
    end_with_parent()
    hide_texts()
    work, error = answer(start)
    if one_thread and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.collect()
    gc.freeze()  # what `start` made is needed to the end, so it need not be looked through
    with suppress(EOFError, OSError):  # nobody wants more
        connection.send((None, error))
        while work is not None:
            part = connection.recv()
            connection.send(answer(work, part))


def answer(function: Callable[..., R], *args: Any) -> tuple[R | None, Exception | None]:
    """Call a function.

    RETURNS (tuple): What it returned and None, or None and its error without text of a note.
    """
    try:
        return call_without_text(function, *args), None
    except Exception as error:
        return None, error


def end_with_parent() -> None:
    """End this process as soon as its parent is killed, instead of working on for nobody."""
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    Thread(target=follow, daemon=True).start()
