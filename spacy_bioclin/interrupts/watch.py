"""End a command that is interrupted: within a second, with one line that says how to go on, without
half-written files or processes that work on.

A signal raises `Interrupted` in the main thread, so that every `finally` cleans up. If the main
thread does not get there (it computes in a library that looks for no signals, or something has
caught the exception), a thread that follows the signals cleans up in its place.
"""

import atexit
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread, current_thread, main_thread
from typing import Any

from .message import SIGNALS, has_said, say

PATIENCE = 0.6  # seconds for the main thread to clean up
CTRL_C = int(signal.SIGINT)
# Held while a process starts. It would print a traceback if this one ended before it has told the
# new one what to do.
_STARTING = Lock()
# Removed when the process ends, however that comes about.
TEMPORARY: set[Path] = set()


class Interrupted(KeyboardInterrupt):
    """The user, or the system, wants the command to end.

    number (int): The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _State:
    """What is known of interruptions in this process."""

    installed = False
    caught = 0  # the first signal, 0 for none
    deferred = 0  # blocks that may not be interrupted
    pending = False  # a signal waits for the end of such a block
    ending = False  # no more processes are started


def exit_code(number: int) -> int:
    """Give the exit status of a command that a signal has ended: 130 after Ctrl-C."""
    return 128 + number


@contextmanager
def deferred() -> Iterator[None]:
    """Let a block end before an interruption takes effect: a rename in two steps, a clean-up."""
    _State.deferred += 1
    try:
        yield
    finally:
        _State.deferred -= 1
        if _State.pending and not _State.deferred:
            _State.pending = False
            raise Interrupted(_State.caught)


@contextmanager
def handled(on_signal: Callable[[int], None]) -> Iterator[None]:
    """Call a function for each signal while the block runs, and do not end the process.

    It is for a service, which finishes what it has accepted. In another thread than the main one it
    does nothing.

    on_signal (Callable): Called in the main thread with the number of the signal.
    """
    if current_thread() is not main_thread():
        yield
        return
    wakeup = signal.set_wakeup_fd(-1)  # the thread that follows signals must not see these
    numbers = [each for each in SIGNALS if signal.getsignal(each) != signal.SIG_IGN]
    before = {
        each: signal.signal(each, lambda number, frame: on_signal(number)) for each in numbers
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)


@contextmanager
def hidden_from_children() -> Iterator[None]:
    """Start processes, in one thread at a time, that do not see Ctrl-C, nor the closing of the
    terminal, from their first moment on: they would print a traceback each. Who starts them ends
    them.

    RAISES (Interrupted): The command is ending.
    """
    with _STARTING:
        if _State.ending:
            raise Interrupted(_State.caught)
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            yield
            return
        from multiprocessing import resource_tracker

        hidden = {signal.SIGINT, signal.SIGHUP}
        old = signal.pthread_sigmask(signal.SIG_BLOCK, hidden)
        try:
            with _quiet_tracker():
                resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, hidden)  # for that has changed it
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)


@contextmanager
def _quiet_tracker() -> Iterator[None]:
    """Let the process that cleans up after others not warn that it has to."""
    sys.warnoptions.append("ignore:resource_tracker")
    try:
        yield
    finally:
        sys.warnoptions.pop()


@contextmanager
def watched() -> Iterator[None]:
    """End the process as this module says if a signal comes while the block runs.

    It is for the main thread of a command. In another thread, or inside such a block, it does
    nothing.
    """
    if _State.installed or current_thread() is not main_thread():
        yield
        return
    _State.installed = True
    _open_streams()
    _install()
    try:
        yield
    finally:
        end_if_caught()


def end_if_caught() -> None:
    """Clean up, and end the process if a signal has come. Later signals are ignored."""
    _State.deferred += 1
    _ignore_signals()
    _State.deferred -= 1
    _remove_temporary()
    if _State.caught:
        say(_State.caught)
        end_children()
        atexit._run_exitfuncs()
        _flush()
        os._exit(exit_code(_State.caught))  # to tear the interpreter down takes too long


def caught() -> int:
    """Give the signal that has ended the command; 0 for none."""
    return _State.caught


def _open_streams() -> None:
    """Open standard streams that are closed: a file that took such a number would get what is
    printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _install() -> None:
    # What the parent has set to be ignored (nohup, a job in the background) stays so.
    numbers = [each for each in SIGNALS if signal.getsignal(each) != signal.SIG_IGN]
    for number in numbers:
        signal.signal(number, _raise)
    if hasattr(signal, "pthread_sigmask"):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=_forget)
        Thread(target=_follow, args=(reader, frozenset(numbers)), daemon=True).start()


def _raise(number: int, frame: Any) -> None:
    _ignore_signals()  # one is enough: impatience must not stop the clean-up
    _State.caught = _State.caught or number
    sys.unraisablehook = lambda unraisable: None  # objects that are interrupted while they close
    if _State.deferred:
        _State.pending = True
    else:
        raise Interrupted(number)


def _ignore_signals() -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def _forget() -> None:
    """Leave the signals of a forked process to itself."""
    signal.set_wakeup_fd(-1)
    TEMPORARY.clear()
    for each in SIGNALS:
        if signal.getsignal(each) is _raise:
            signal.signal(each, signal.SIG_DFL)


def _follow(reader: int, numbers: frozenset[int]) -> None:
    """Wait for a signal, and end the process if the main thread does not."""
    number = 0
    while number not in numbers:
        number = os.read(reader, 1)[0]
    _State.caught = _State.caught or number
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if _State.deferred and not has_said():
            end = time.monotonic() + PATIENCE
        time.sleep(0.02)
    end_children()
    # In a thread of its own: a terminal or a pipe may take nothing more.
    saying = Thread(target=say, args=(number,), daemon=True)
    saying.start()
    _remove_temporary()
    saying.join(PATIENCE)
    os._exit(exit_code(number))


def end_children() -> None:
    """Kill the processes that this one has started with multiprocessing. No more can be started."""
    _State.ending = True
    _STARTING.acquire(timeout=PATIENCE)
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            child.kill()
    # It may be importing libraries for seconds, and end only then.
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    if pid := getattr(server, "_forkserver_pid", None):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _remove_temporary() -> None:
    for path in list(TEMPORARY):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
    TEMPORARY.clear()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
