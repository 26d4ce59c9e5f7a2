"""README.md and docs/results.md show the committed results, and the README's commands run."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import srsly
from spacy.cli.train import train
from typer.testing import CliRunner

from benchmarks import readme
from spacy_bioclin.cli import app
from tests.markdown import ROOT, code_blocks, run_block, shell_commands

README = (ROOT / "README.md").read_text("utf-8")
FEW_UPDATES = {"training.max_steps": 4, "training.eval_frequency": 4}
# As few as make the demo's pipeline find something.
ENOUGH_UPDATES = {
    "training.max_steps": 60,
    "training.eval_frequency": 60,
    "training.optimizer.learn_rate.warmup_steps": 5,
}


@pytest.mark.parametrize("name", sorted(readme.PAGES))
def test_results_are_those_of_the_benchmarks(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    updated = readme.replace_section(page, readme.PAGES[name]())
    assert updated == page, "run: python -m benchmarks.readme"


def test_missing_result_file_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"nothing\.json does not exist"):
        readme.load("nothing")


def test_readme_is_short_and_shows_eight_results() -> None:
    assert len(README.splitlines()) < 200
    assert len(readme.summary_table().splitlines()) == 2 + 8


def train_briefly(config: str, output: str, **overrides: str | int) -> None:
    """Train for a few updates, quietly."""
    quiet = {"training.logger.progress_bar": None}
    train(config, output, overrides={**FEW_UPDATES, **overrides, **quiet})


@pytest.mark.slow
def test_code_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all Python blocks, and all `pip install packages/…`, `bioclin` and `spacy train` commands
    of the README from top to bottom, in a folder that has only what a clone and the demo leave.

    The demo's wheel has a pipeline of its kind. Training takes few updates.
    """
    for name in ("assets", "configs"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    make_demo_wheel()
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))

    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in code_blocks(README):
        for wheel in re.findall("^pip install (packages/.+)", block.content, re.MULTILINE):
            pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"]
            subprocess.run([*pip, "--target", "installed", wheel], check=True)
            importlib.invalidate_caches()
        before, trains, after = block.content.partition("spacy train ")
        if not trains:
            run_block(block, "README.md", namespace)
            continue
        run_block(block._replace(content=before), "README.md", namespace)
        [args] = shell_commands(trains + after, "spacy train")
        config, *options = args
        values = dict(zip(options[::2], options[1::2], strict=True))
        train_briefly(
            config, values.pop("-o"), **{name[2:]: value for name, value in values.items()}
        )
        rest = after.replace("\\\n", " ").partition("\n")[2]
        run_block(block._replace(content=rest), "README.md", namespace)
    assert Path("entities.jsonl").stat().st_size and list(Path("packages").glob("*.whl"))


def make_demo_wheel() -> None:
    """Train a pipeline like the demo's for a few updates, and package it as the demo does."""
    variables = srsly.read_yaml(ROOT / "project.yml")["vars"]
    for split in ("train", "dev"):
        args = ["convert", "brat", f"assets/demo/es/{split}", f"demo/{split}.spacy"]
        run_bioclin(*args, "--task", "demo", "--lang", variables["lang"])
    train_briefly(
        "configs/demo.cfg",
        "demo-training",
        **{
            "paths.train": "demo/train.spacy",
            "paths.dev": "demo/dev.spacy",
            "paths.encoder": variables["encoder"],
            **ENOUGH_UPDATES,
        },
    )
    name = ["--name", variables["task"], "--version", variables["version"]]
    run_bioclin("package", "demo-training/model-last", "packages", *name)


def run_bioclin(*args: str) -> None:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
