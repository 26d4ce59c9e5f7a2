"""Every benchmark can be imported and shows its help, where what it imports is installed."""

import importlib
import re
import sys
from pathlib import Path

import pytest

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
