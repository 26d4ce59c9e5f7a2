"""The plan of a sweep, which trials it runs, and what becomes of them."""

import json
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps.sweep import (
    CRASHED,
    DONE,
    Trial,
    crashed,
    find_missing,
    read_plan,
    read_results,
    run_processes,
    write_result,
)

PLAN = """
tasks: {mine: {path: corpus, lang: es}}
encoders: {small: {path: folder, learn_rate_scale: 10}, base: elsewhere}
strategies: {plain: {}, frozen: {freeze_layers: 2, training.dropout: 0.3}}
learn_rates: [1.0e-5, 3e-5]
seeds: [0, 1, 2]
settings: {training.optimizer.L2: 0.5}
train_notes: {mine: 64}
"""


def plan_of(tmp_path, text=PLAN):
    path = tmp_path / "plan.yml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_grid_is_the_product_of_its_axes_seed_by_seed(tmp_path):
    trials = plan_of(tmp_path).trials()
    assert len(trials) == len(set(trials)) == 2 * 2 * 2 * 3
    assert [trial.seed for trial in trials] == sorted(trial.seed for trial in trials)
    assert trials[1] == Trial("mine", "small", "plain", 3e-5, 0)  # "3e-5" is a text in YAML
    assert trials[1].name == "mine-small-plain-3e-05-0"


def test_settings_of_a_trial_join_what_plan_encoder_and_strategy_say(tmp_path):
    plan = plan_of(tmp_path)
    said = plan.settings_of(Trial("mine", "small", "frozen", 3e-5, 1))
    assert said["learn_rate"] == pytest.approx(3e-4)
    assert said["encoder"] == "folder"
    assert said["train_notes"] == 64
    assert said["settings"] == {
        "training.optimizer.L2": 0.5,
        "components.transformer.model.strategy.freeze_layers": 2,
        "training.dropout": 0.3,
    }
    assert plan.settings_of(Trial("mine", "base", "plain", 3e-5, 1))["learn_rate"] == 3e-5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seeds:", "seed:"), r"unknown key 'seed'; a sweep has .*seeds"),
        (("seeds: [0, 1, 2]", ""), "seeds is missing"),
        (("seeds: [0, 1, 2]", "seeds: []"), "seeds is empty"),
        (("seeds: [0, 1, 2]", "seeds: 3"), "seeds is 3, want a list"),
        (("3e-5]", "fast]"), "learn_rates holds 'fast', want numbers"),
        (("path: folder", "folder: x"), r"encoders\.small is .*want a folder or a mapping of path"),
        (("settings: {", "settings: ["), "no YAML"),
        (
            ("seeds:", "published: [{task: t}]\nseeds:"),
            r"published holds .*want task, model, source",
        ),
    ],
)
def test_mistakes_in_the_plan(tmp_path, change, message):
    with pytest.raises(BioclinError, match=message):
        plan_of(tmp_path, PLAN.replace(*change))
    with pytest.raises(BioclinError, match="no such file"):
        read_plan(tmp_path / "nothing.yml")


def result_of(plan, trial, status=DONE):
    return {**crashed(plan, trial, "why"), "status": status}


def test_what_is_done_is_not_run_again_and_what_crashed_is(tmp_path):
    plan = plan_of(tmp_path)
    trials = plan.trials()
    write_result(tmp_path, result_of(plan, trials[0]))
    write_result(tmp_path, result_of(plan, trials[1], CRASHED))
    (tmp_path / "trials" / trials[2].name).mkdir()  # was killed
    assert find_missing(plan, tmp_path, trials) == trials[1:]
    assert [r["status"] for r in read_results(tmp_path, trials)] == [DONE, CRASHED]


def test_results_of_another_plan_are_not_taken_for_this_one(tmp_path):
    plan = plan_of(tmp_path)
    write_result(tmp_path, result_of(plan, plan.trials()[0]))
    other = plan_of(tmp_path, PLAN.replace("L2: 0.5", "L2: 0.1"))
    with pytest.raises(BioclinError, match=r"was run with settings = .*0\.5.*another folder"):
        find_missing(other, tmp_path, other.trials())


def run_or_die(trial: Trial) -> None:
    """What `test_processes_are_apart` runs."""
    if trial.seed == 1:
        os.kill(os.getpid(), 9)
    Path(trial.task, trial.name).write_text(json.dumps(os.getpid()), encoding="utf-8")


def test_processes_are_apart(tmp_path, monkeypatch):
    trials = [Trial(str(tmp_path), "e", "s", 0.1, seed)._replace(task=".") for seed in range(4)]
    monkeypatch.chdir(tmp_path)
    ended = dict(run_processes(trials, run_or_die, jobs=2, preload="json"))
    assert {trial.seed: code for trial, code in ended.items()} == {0: 0, 1: -9, 2: 0, 3: 0}
    pids = {json.loads((tmp_path / trial.name).read_text()) for trial in trials if trial.seed != 1}
    assert len(pids) == 3


def sleep_long(trial: Trial) -> None:
    Path(trial.name).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(60)


def start_sweep(folder: str) -> None:
    os.chdir(folder)
    list(run_processes([Trial(".", "e", "s", 0.1, 0)], sleep_long, jobs=1, preload="json"))


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
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
