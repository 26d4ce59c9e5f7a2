"""`bioclin sweep` from the command line, with a function in the place of training."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.sweeps import run as sweep_run
from spacy_bioclin.sweeps.plan import read_plan
from spacy_bioclin.sweeps.results import read_results, write_result

PLAN = """
tasks: {mine: {path: corpus, lang: es}}
encoders: {tiny: {path: folder, learn_rate_scale: 10}}
strategies: {plain: {}, frozen: {freeze_layers: 2}}
learn_rates: [1.0e-5, 1.0e-4]
seeds: [0, 1]
published:
  - {task: mine, model: theirs, source: A paper, f: [0.9, 0.01], p: [0.9, 0.0], r: [0.9, 0.0]}
"""
SEARCH = PLAN.replace("published:", "search: {n_trials: 4}\npublished:")


def fake_trial(plan: Any, out: Path, gpu_id: int, threads: int, trial: Any) -> None:
    """Better at 1e-4 than at 1e-5, and better frozen; seed 1 diverges at 1e-5."""
    settings = plan.get_settings(trial)
    frozen = "components.transformer.model.strategy.freeze_layers" in settings["settings"]
    good = trial.learn_rate > 2e-5 or trial.seed == 0
    n_right = round(6 - abs(math.log10(trial.learn_rate) + 4)) + 2 * frozen
    per_doc = [[n_right, 1, 10 - n_right] for _ in range(5)]
    f = 2 * n_right / (n_right + 11)
    scores = {"p": f, "r": f, "f": f, "per_doc": per_doc} if good else None
    fields = {"steps": 2, "curve": [], "best_step": 2, "best_epoch": 1.0, "seconds": 1.0}
    status, error = ("done", None) if good else ("diverged", "the loss is nan")
    result = {"trial": trial._asdict(), "status": status, "error": error, "settings": settings}
    write_result(out, {**result, **fields, "dev": scores, "test": scores})


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """RETURNS (Callable): Runs the command on a plan; its result has the trials that were run."""
    ran: list[str] = []

    def run_here(trials, run, *, jobs, preload):
        for trial in trials:
            ran.append(trial.name)
            run(trial)
            yield trial, 0

    monkeypatch.setattr(sweep_run, "run_trial", fake_trial)
    monkeypatch.setattr(sweep_run, "run_processes", run_here)
    for name in ("prepare_corpora", "make_config"):
        monkeypatch.setattr(sweep_run, name, lambda *args: None)

    def invoke(plan: str, *options: str) -> Any:
        (tmp_path / "plan.yml").write_text(plan, encoding="utf-8")
        ran.clear()
        args = ["sweep", str(tmp_path / "plan.yml"), "-o", str(tmp_path / "out"), *options]
        return CliRunner().invoke(app, args), list(ran)

    return invoke


def test_tables_are_printed_and_written(sweep: Any, tmp_path: Path) -> None:
    result, ran = sweep(PLAN)
    assert result.exit_code == 0, result.output
    assert len(ran) == 8
    assert "theirs" in result.output and "tiny, frozen" in result.output
    assert "the loss is nan" in result.output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["facts"]["Trials"] == "8 of 8"
    [compared] = summary["comparisons"]
    assert (compared["model"], compared["baseline"]) == ("tiny, frozen", "tiny, plain")
    # At 1e-4: 2 · 8 / 19 frozen, 2 · 6 / 17 plain.
    assert compared["documents"]["difference"] == pytest.approx(16 / 19 - 12 / 17)
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<svg") == 1 and "Paired comparison" in page
    tables = (tmp_path / "out" / "tables.md").read_text()
    assert tables.count("### ") == 7


def test_what_is_done_is_only_reported(sweep: Any) -> None:
    _, ran = sweep(PLAN.replace("seeds: [0, 1]", "seeds: [0]"))
    assert len(ran) == 4
    _, ran = sweep(PLAN)
    assert len(ran) == 4 and all(name.endswith("-1") for name in ran)
    result, ran = sweep(PLAN, "--table", "lewis", "--against", "tiny, frozen")
    assert ran == [] and "Median of the seeds" in result.output
    assert "-13" in result.output.split("Paired comparison")[1]  # 12/17 - 16/19 = -0.136


def test_small_replaces_keys_of_the_plan(sweep: Any, tmp_path: Path) -> None:
    small = "small: {seeds: [0], encoders: [tiny], strategies: {plain: {}}, settings: {a.c: 3}}\n"
    text = f"{PLAN}settings: {{a.b: 1, a.c: 2}}\n{small}"
    result, ran = sweep(text, "--small")
    assert result.exit_code == 0, result.output
    assert len(ran) == 2 and all(name.endswith("-0") for name in ran)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["facts"]["Trials"] == "2 of 2"
    assert "small" in (tmp_path / "out" / "report.html").read_text().partition("</h1>")[0]
    [first, _] = read_results(
        tmp_path / "out", read_plan(tmp_path / "plan.yml", small=True).list_trials()
    )
    assert first["settings"]["settings"] == {"a.b": 1, "a.c": 3}
    result, _ = sweep(text)  # the whole plan has other settings
    assert result.exit_code == 1 and "was run with settings" in result.output
    result, _ = sweep(PLAN, "--small")
    assert result.exit_code == 1 and "has no section small" in result.output


def test_report_only_runs_nothing(sweep: Any) -> None:
    result, ran = sweep(PLAN, "--report-only")
    assert result.exit_code == 1 and ran == []
    assert "no results" in result.output


def test_a_search_goes_through_its_samples(sweep: Any, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    result, ran = sweep(SEARCH)
    assert result.exit_code == 0, result.output
    assert len(ran) == 4 * 2  # samples, seeds
    assert result.output.count("Search") >= 1
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    [group] = summary["groups"]
    assert group["strategy"] == "search" and len(group["configurations"]) == 4
    rates = [one["learn_rate"] for one in group["configurations"]]
    assert len(set(rates)) == 4 and all(1e-5 <= rate <= 1e-4 for rate in rates)
    assert {one["from"] for one in group["configurations"]} <= {"plain", "frozen"}
    again, ran = sweep(SEARCH)
    assert again.exit_code == 0 and ran == []


def test_a_process_that_dies_is_a_crashed_trial(
    sweep: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = [-9]

    def die_once(trials, run, *, jobs, preload):
        for trial in trials:
            code = killed.pop() if killed else 0
            if not code:
                run(trial)
            yield trial, code

    monkeypatch.setattr(sweep_run, "run_processes", die_once)
    result, _ = sweep(PLAN)
    assert "crashed: its process ended with status -9" in result.output
    assert sum(one["status"] == "crashed" for one in all_results(tmp_path)) == 1
    sweep(PLAN)  # tried again
    assert sum(one["status"] == "crashed" for one in all_results(tmp_path)) == 0


def all_results(tmp_path: Path) -> list[dict[str, Any]]:
    return read_results(tmp_path / "out", read_plan(tmp_path / "plan.yml").list_trials())
