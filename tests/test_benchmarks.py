"""Every benchmark can be imported and shows its help, where what it imports is installed."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from benchmarks import harness

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.name != "__init__.py"
)
# Modules that have no command line, or one that other modules call.
PARTS = {
    "benchmarks.corpora",
    "benchmarks.before_after_worker",
    "benchmarks.harness",
    "benchmarks.house_source",
    "benchmarks.readme",
    "benchmarks.deid.phi_suite.generate",
    "benchmarks.deid.phi_suite.templates",
    "benchmarks.deid.phi_suite.values",
    "benchmarks.linking.names",
    "benchmarks.linking.systems",
    "benchmarks.speed.pipelines",
    "benchmarks.speed.systems",
    "benchmarks.speed.training_systems",
    "benchmarks.training.trainer_huggingface",
    "benchmarks.training.trainer_scoring",
} | {name for name in MODULES if name.startswith("benchmarks.defects.")} - {
    "benchmarks.defects.compare"
}


def load(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("benchmarks", "spacy_bioclin"):
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_shows_its_help(name, monkeypatch, capsys):
    module = load(name)
    if name in PARTS:
        return
    source = Path(module.__file__).read_text("utf-8")
    assert re.search("make_parser|ArgumentParser", source), "it would run for real"
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert "usage:" in shown
    first = (module.__doc__ or "").split("\n")[0]
    assert " ".join(first.split()) in " ".join(shown.split())


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
