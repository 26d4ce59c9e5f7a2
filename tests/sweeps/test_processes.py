"""Trials side by side, each in a process of its own."""

import json
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_bioclin.sweeps.plan import Trial
from spacy_bioclin.sweeps.processes import run_processes


def run_or_die(trial: Trial) -> None:
    """What `test_processes_are_apart` runs."""
    if trial.seed == 1:
        os.kill(os.getpid(), 9)
    Path(trial.task, trial.name).write_text(json.dumps(os.getpid()), encoding="utf-8")


@pytest.mark.slow
def test_processes_are_apart(tmp_path, monkeypatch):
    trials = [Trial(str(tmp_path), "e", "s", 0.1, seed)._replace(task=".") for seed in range(4)]
    monkeypatch.chdir(tmp_path)
    ended = dict(run_processes(trials, run_or_die, jobs=2, preload="json"))
    assert {trial.seed: code for trial, code in ended.items()} == {0: 0, 1: -9, 2: 0, 3: 0}
    pids = {json.loads((tmp_path / trial.name).read_text()) for trial in trials if trial.seed != 1}
    assert len(pids) == 3


def sleep_long(trial: Trial) -> None:
    Path(trial.name).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(600)


def start_sweep(folder: str) -> None:
    os.chdir(folder)
    list(run_processes([Trial(".", "e", "s", 0.1, 0)], sleep_long, jobs=1, preload="json"))


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
@pytest.mark.slow
def test_trials_end_with_the_sweep_that_was_killed(tmp_path):
    sweep = multiprocessing.get_context("spawn").Process(target=start_sweep, args=(str(tmp_path),))
    sweep.start()
    written = tmp_path / Trial(".", "e", "s", 0.1, 0).name
    wait_until(lambda: written.exists() and written.read_text())
    sweep.kill()
    pid = int(written.read_text())
    wait_until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    """Whether the process is there, and no zombie."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
