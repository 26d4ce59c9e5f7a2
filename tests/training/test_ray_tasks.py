import os
from functools import partial
from pathlib import Path

import pytest

from spacy_bioclin.training.ray_tasks import run_on_ray, start_ray
from spacy_bioclin.training.sweep import Trial

ray = pytest.importorskip("ray")


def run_or_die(folder: Path, trial: Trial) -> None:
    """What Ray runs."""
    if trial.seed == 1:
        os.kill(os.getpid(), 9)
    if trial.seed == 2:
        raise ValueError
    (folder / str(trial.seed)).write_text(os.getcwd())


@pytest.mark.slow
def test_tasks_are_apart_and_work_in_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    trials = [Trial("t", "e", "s", 0.1, seed) for seed in range(4)]
    assert start_ray("local", jobs=1000) == 1
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
