"""Trials as tasks of Ray: of a fake one, and of a real one."""

import os
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps.plan import Trial
from spacy_bioclin.sweeps.ray_tasks import run_on_ray, start_ray

ROOT = Path(__file__).parents[2]


class FakeRay:
    """As much of Ray as `run_on_ray` uses: tasks run when they are waited for, the last first."""

    class exceptions:
        class RayError(Exception): ...

    def __init__(self) -> None:
        self.most = 0  # tasks that waited at the same time
        self.cancelled: list[tuple] = []

    def remote(self, **limits: int):
        assert limits == {"num_cpus": 2, "num_gpus": 0, "max_retries": 0, "max_calls": 1}
        return lambda function: SimpleNamespace(remote=lambda trial: (function, trial))

    def wait(self, tasks: list):
        self.most = max(self.most, len(tasks))
        return tasks[-1:], tasks[:-1]

    def get(self, task: tuple):
        function, trial = task
        try:
            function(trial)
        except ValueError as error:
            raise self.exceptions.RayError from error

    def cancel(self, task: tuple, *, force: bool) -> None:
        self.cancelled.append(task)


def write_or_fail(folder: Path, trial: Trial) -> None:
    if trial.seed == 2:
        raise ValueError
    (folder / str(trial.seed)).write_text(os.getcwd())


def test_some_tasks_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.chdir(tmp_path)
    trials = [Trial("t", "e", "s", 0.1, seed) for seed in range(4)]
    run = partial(write_or_fail, tmp_path)
    ended = dict(run_on_ray(trials, run, jobs=3, threads=2, gpus=0))
    assert {trial.seed: code for trial, code in ended.items()} == {0: 0, 1: 0, 2: 1, 3: 0}
    assert ray.most == 3 and ray.cancelled == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "3"]
    stopped = run_on_ray(trials, run, jobs=3, threads=2, gpus=0)
    next(stopped)
    stopped.close()
    assert len(ray.cancelled) == 2


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BioclinError, match=r"--ray needs Ray: pip install 'spacy-bioclin\[ray\]'"):
        start_ray("local", 1)


def run_or_die(folder: Path, trial: Trial) -> None:
    """What Ray runs."""
    if trial.seed == 1:
        os.kill(os.getpid(), 9)
    if trial.seed == 2:
        raise ValueError
    (folder / str(trial.seed)).write_text(os.getcwd())


@pytest.mark.full
def test_tasks_are_apart_and_work_in_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # where Ray's processes find `run_or_die`
    ray = pytest.importorskip("ray")
    trials = [Trial("t", "e", "s", 0.1, seed) for seed in range(4)]
    try:
        assert start_ray("local", jobs=1000) == 1
    except BioclinError as error:  # on a machine that has no time for it
        pytest.skip(str(error))
    run = partial(run_or_die, tmp_path)
    ended = {}
    for trial, code in run_on_ray(trials, run, jobs=2, threads=1, gpus=0):
        ended[trial.seed] = code
    ray.shutdown()
    assert ended == {0: 0, 1: 1, 2: 1, 3: 0}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "0": str(tmp_path),
        "3": str(tmp_path),
    }
