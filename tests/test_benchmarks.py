"""What the benchmarks share: workers, kept parts, summaries of trials, parts for a GPU machine."""

import configparser
import importlib
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_pack, harness
from spacy_bioclin.cli.train.overrides import read_config

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.name != "__init__.py" and path.name != "record.py"  # a plugin that needs a folder
)


@pytest.mark.slow
def test_every_benchmark_can_be_imported():
    missing = set()
    for name in MODULES:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:  # another system that is compared
            missing.add((error.name or "").split(".")[0])
    assert not missing & {"benchmarks", "spacy_bioclin", "scripts"}


SERVER = """
from benchmarks.harness import serve
def load():
    print("not an answer")
    return {"load_seconds": 1}, lambda line: {"seconds": 0.5, "line": line}
serve(load)
"""


def test_workers_take_turns(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    commands = {"one": ["-c", SERVER]}
    found = harness.compare_workers(commands, tmp_path / "logs", {"words": 10}, 2)
    assert found["one"]["seconds"] == [0.5, 0.5] and found["one"]["words_per_second"] == 20
    assert "not an answer" in (tmp_path / "logs" / "one.log").read_text()


def test_a_worker_that_ends_names_its_log(tmp_path):
    command = ["-c", "1 / 0"]
    ended = pytest.raises(SystemExit, match=r"ended with 1, see .*log")
    with harness.Worker(command, tmp_path / "log") as worker, ended:
        worker.read()
    assert "ZeroDivisionError" in (tmp_path / "log").read_text()


def test_turns_and_kept_parts(tmp_path):
    calls = []
    systems = {name: lambda name=name: calls.append(name) or len(calls) for name in "ab"}
    assert harness.take_turns(systems, 2, warm_ups=1) == {"a": [3, 5], "b": [4, 6]}
    assert calls == list("ababab")
    path = tmp_path / "folder" / "part.json"
    assert harness.keep(path, lambda: {"a": 1}) == {"a": 1}
    assert harness.keep(path, lambda: {"a": 2}) == {"a": 1}


def test_a_gpu_machine_gets_every_requirement():
    listed = (ROOT / "benchmarks" / "gpu-wheels.txt").read_text("utf-8")
    metadata = configparser.ConfigParser()
    metadata.read(ROOT / "setup.cfg", "utf-8")
    for line in metadata["options"]["install_requires"].split():
        name = re.split(r"[<>=;]", line)[0]
        assert re.search(rf"(^|[ ,]){name}\b", listed, re.MULTILINE), f"{name} is missing"


@pytest.mark.slow
def test_parts_for_a_gpu_machine_are_joined_there(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    monkeypatch.setattr(gpu_pack, "OUT", here)
    folder = here / "corpora"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_bytes(random.Random(0).randbytes(3000))
    gpu_pack.pack(here / "libraries.tar.xz", folder, "corpora")
    gpu_pack.pack(here / "work.tar.xz", folder, "corpora")
    parts = gpu_pack.cut_into_parts([here / "libraries.tar.xz", here / "work.tar.xz"], 2000)
    assert len(parts) == 4 and all(
        sum((here / f"part-{n}" / name).stat().st_size for name in names) <= 2000
        for n, names in enumerate(parts, start=1)
    )
    there.mkdir()

    def unpack():
        script = f". {ROOT / 'benchmarks' / 'gpu_setup.sh'}"
        env = {**os.environ, "PYTHON": sys.executable}
        return subprocess.run(["bash", "-c", script], cwd=there, env=env, capture_output=True)

    work = there / ".work" / "gpu"
    for n in range(1, len(parts) + 1):  # one call for each part, as to a machine that stays warm
        shutil.copytree(here / f"part-{n}", work / f"part-{n}")
        done = unpack()
        assert done.returncode == (0 if n == len(parts) else 3), done.stderr
    for copy in (work / "site" / "corpora", there / "corpora"):
        assert (copy / "notes.txt").read_bytes() == (folder / "notes.txt").read_bytes()


def test_the_yardstick_changes_settings_that_exist():
    yardstick = importlib.import_module("benchmarks.training.yardstick")
    for choice in yardstick.CHOICES:
        settings = {**yardstick.BASE, **yardstick.merge_choices(choice)}
        settings.pop("updates", None)
        config = ROOT / settings.pop("config", yardstick.CONFIG)
        read_config(config, [str(part) for part in harness.to_options(settings)])
    with pytest.raises(SystemExit, match="twice"):
        yardstick.merge_choices("rate1e-4+rate3e-4")


def test_the_yardstick_compares_equal_seeds_and_tasks():
    yardstick = importlib.import_module("benchmarks.training.yardstick")

    def row(choice, task, seed, dev_f, encoder="compact", updates=400):
        names = {"encoder": encoder, "choice": choice, "task": task, "seed": seed}
        return {**names, "updates": updates, "dev_f": dev_f, "train_cpu_seconds": 100.0}

    rows = [
        row("base", "bc5cdr", 0, 0.70),
        row("base", "bc5cdr", 1, 0.72),
        row("base", "pharmaconer", 0, 0.60),
        row("averages", "bc5cdr", 0, 0.71),
        row("averages", "bc5cdr", 1, 0.71),
        row("averages", "bc5cdr", 2, 0.99),  # beside no base
        row("averages", "bc5cdr", 0, 0.99, updates=800),
        row("base", "pharmaconer", 0, 0.65, encoder="sm"),
        row("averages+rdrop", "bc5cdr", 0, 0.74),
        row("rdrop+reinit1", "bc5cdr", 0, 0.73),  # beside nothing: neither alone was measured
        row("rate5e-4+averages", "bc5cdr", 0, 0.69),  # the rate alone was not measured
    ]
    summary = yardstick.summarize(rows)
    beside = {row["choice"]: row for row in summary["choices"]}
    assert set(beside) == {"averages", "averages+rdrop", "rate5e-4+averages"}
    [found] = beside["averages"]["tasks"].items()
    assert found[0] == "bc5cdr" and found[1]["points"] == [1.0, -1.0]
    assert beside["averages"]["verdict"] == "no gain" and beside["averages"]["without"] == "base"
    both = beside["averages+rdrop"]
    assert both["without"] == "averages" and both["tasks"]["bc5cdr"]["points"] == [3.0]
    assert beside["rate5e-4+averages"]["tasks"]["bc5cdr"]["points"] == [-2.0]
    [encoder] = summary["encoders"]
    assert encoder["encoder"] == "sm" and encoder["tasks"]["pharmaconer"]["points_mean"] == 5.0
    assert encoder["verdict"] == "open"
    both = {task: {"seeds": 2, "points": [0.1, 0.2]} for task in yardstick.TASKS}
    assert yardstick.judge(both) == "gain"


def test_ner_summarizes_the_settings_that_are_best_on_dev():
    ner = importlib.import_module("benchmarks.accuracy.ner")

    def trial(choice, seed, dev_f, test_f):
        names = {"task": "bc5cdr", "system": "bioclin", "choice": choice, "seed": seed}
        settings = {"updates": 900, "learn_rate": 5e-4, "tokens_per_update": 1024}
        usage = {"train_cpu_seconds": 60.0, "train_seconds": 60.0, "train_peak_memory_mb": 1000}
        f1 = {"dev_f": dev_f, "test_f": test_f, "annotate_words_per_second": 1.0}
        return {**names, **settings, **usage, **f1}

    two = [trial("base", 0, 0.80, 0.7), trial("base", 1, 0.82, 0.8)]
    better = [trial("averages", 0, 0.83, 0.5), trial("averages", 1, 0.83, 0.6)]
    once = [trial("lexical", 0, 0.99, 0.9)]
    better[0] |= {"train_resumed": True, "train_cpu_seconds": 1.0}
    row = ner.summarize(two + better + once)["bc5cdr bioclin"]
    assert (row["choice"], row["seeds"], row["test_f_mean"]) == ("averages", 2, 0.55)
    assert row["dev_f_mean"] == 0.83 and row["train_cpu_seconds_median"] == 60.0


def test_linking_takes_the_pipeline_that_is_best_on_dev(tmp_path, monkeypatch):
    ner = importlib.import_module("benchmarks.accuracy.ner")
    monkeypatch.setattr(ner, "WORK", tmp_path)
    assert ner.find_pipeline("sm", "bc5cdr") is None
    for updates, dev_f in ((900, 0.8), (1800, 0.9), (3600, 0.95)):
        trial = ner.TrialName("sm", "bc5cdr", updates=updates)
        harness.write_json(trial.folder / "result.json", {"dev_f": dev_f})
        if updates < 3600:  # the best has been removed
            trial.pipeline.mkdir(parents=True)
    assert ner.find_pipeline("sm", "bc5cdr") == ner.TrialName("sm", "bc5cdr", updates=1800).pipeline


def test_settings_of_trials_with_dev_are_chosen_without_it():
    summarize = importlib.import_module("benchmarks.accuracy.ner_summary").summarize

    def trial(choice, test_f, seed=0, **dev):
        known = {"task": "bc5cdr", "system": "bioclin", "choice": choice, "seed": seed, **dev}
        more = dict.fromkeys(("train_seconds", "train_peak_memory_mb", "annotate_words_per_second"))
        return {**known, "test_f": test_f, **dict.fromkeys(more, 1)}

    without = [trial("a", 0.5, dev_f=0.8), trial("b", 0.9, dev_f=0.7)]
    with_dev = [trial("a", 0.6), trial("b", 0.95), trial("c", 0.99)]
    found = summarize(with_dev, without)["bc5cdr bioclin"]
    assert (found["choice"], found["test_f_mean"], found["dev_f_mean"]) == ("a", 0.6, None)
    more_seeds = [*with_dev, trial("b", 0.93, seed=1)]
    assert summarize(more_seeds, without)["bc5cdr bioclin"]["test_f_mean"] == 0.94
    assert summarize(without)["bc5cdr bioclin"]["choice"] == "a"


def test_linking_takes_the_same_training_with_dev(tmp_path, monkeypatch):
    ner, linking = (
        importlib.import_module("benchmarks.accuracy.ner"),
        importlib.import_module("benchmarks.linking.accuracy"),
    )
    monkeypatch.setattr(ner, "WORK", tmp_path)
    assert linking.find_pipelines("sm", "bc5cdr-disease", "test") == {}
    first = ner.TrialName("sm", "bc5cdr", choice="lexical")
    harness.write_json(first.folder / "result.json", {"dev_f": 0.8, "choice": "lexical"})
    later = [first._replace(with_dev=True, after=after) for after in ("ncbi-disease", "")]
    others = [first._replace(with_dev=True, choice=choice) for choice in ("base", "lexical+rdrop")]
    for trial in (first, *later, *others):
        trial.pipeline.mkdir(parents=True)
    joined = later[-1].folder.with_name(f"{later[-1].folder.name}-joined")
    joined.mkdir()
    found = {"train": first.pipeline, "train_dev": later[-1].pipeline, "train_dev_joined": joined}
    assert linking.find_pipelines("sm", "bc5cdr-disease", "test") == found
    assert linking.find_pipelines("sm", "bc5cdr-disease", "dev") == {"train": first.pipeline}
