"""Run trials side by side, each in a process of its own."""

import itertools
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait
from typing import Any

from ..interrupts import hidden_from_children
from ..notices import hide_texts, report
from ..parallel import end_with_parent
from .plan import Trial


def run_processes(
    trials: Iterable[Trial], run: Callable[[Trial], None], *, jobs: int, preload: str
) -> Iterator[tuple[Trial, int]]:
    """Run each trial in a process of its own, so that a trial that is killed, for instance because
    memory ran out, does not affect the others.

    trials (Iterable[Trial]): The trials.
    run (Callable): Runs one trial. It must be importable, so that a process can find it.
    jobs (int): Number of trials that run at the same time.
    preload (str): Module that takes long to import; it is imported once for all.
    YIELDS (tuple[Trial, int]): A trial that has ended, and the exit status of its process.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([preload])
    waiting = iter(trials)
    running: dict[Any, tuple[Trial, Any]] = {}
    try:
        while True:
            for trial in itertools.islice(waiting, jobs - len(running)):
                args = os.getcwd(), run, trial
                process = context.Process(target=_run, args=args, name=trial.name)
                with hidden_from_children():
                    process.start()
                running[process.sentinel] = trial, process
            if not running:
                return
            for sentinel in wait(list(running)):
                trial, process = running.pop(sentinel)
                process.join()
                yield trial, process.exitcode
    finally:
        for _, process in running.values():
            process.kill()
        for _, process in running.values():
            process.join()


def _run(folder: str, run: Callable[[Trial], None], trial: Trial) -> None:
    """Run a trial in this folder: the fork server is in the one it was started in."""
    os.chdir(folder)
    end_with_parent()  # else a sweep that is resumed would start a trial that still runs
    hide_texts()
    try:
        run(trial)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        report(error)
        sys.exit(1)


def count_threads(jobs: int) -> int:
    """Count the threads that each of several trials should use, at most OMP_NUM_THREADS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    share = max(1, (cores or 1) // jobs)
    return min(share, int(os.environ.get("OMP_NUM_THREADS") or share))
