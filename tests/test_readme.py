"""README.md and docs/results.md show the committed results, and the README's commands run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import srsly
from spacy.cli.train import train

from benchmarks import readme
from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.pretraining.compact import build_compact_encoder
from tests.catalog.test_tasks import copy_first_notes
from tests.markdown import ROOT, code_blocks, run_block, shell_commands
from tests.util import TEXTS, use_packages

README = (ROOT / "README.md").read_text("utf-8")
FEW_UPDATES = {"training.max_steps": 4, "training.eval_frequency": 4}


def test_results_are_those_of_the_benchmarks() -> None:
    for name, make in readme.PAGES.items():
        page = (ROOT / name).read_text("utf-8")
        assert readme.replace_section(page, make()) == page, "run: python -m benchmarks.readme"


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
def test_code_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped: Path) -> None:
    """Run all Python blocks, and all `bioclin` and `spacy train` commands of the README from top to
    bottom, in a folder that has only what a clone leaves. Training takes few updates. A text block
    is what the block before it prints."""
    for name in ("assets", "configs"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    use_packages(monkeypatch, shipped)

    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in code_blocks(README):
        if block.language == "text":
            assert printed == block.content
            continue
        before, trains, after = block.content.partition("spacy train ")
        if not trains:
            printed = run_block(block, "README.md", namespace)
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
    assert Path("found.jsonl").stat().st_size and list(Path("packages").glob("*.whl"))


RUN = "python -m spacy project run"
COMMANDS = [
    command
    for block in code_blocks(README)
    for command in shell_commands(block.content, RUN)
    if "--vars.task" in command
]
# Without a recipe, the config's thousands of updates would be made.
LESS = "--training.max_steps=4 --training.eval_frequency=4"


def read_variables(command: list[str]) -> dict[str, str]:
    words = [word for word in command if word not in ("all", ".")]
    return {
        name.removeprefix("--vars."): value
        for name, value in zip(words[::2], words[1::2], strict=True)
    }


def copy_project(folder: Path) -> None:
    """Copy what a clone has, without downloads."""
    (folder / "assets").mkdir(parents=True)
    for name in ("configs", "scripts", "assets/demo", "assets/encoders"):
        (folder / name).symlink_to(ROOT / name, target_is_directory=True)
    (folder / "project.yml").write_bytes((ROOT / "project.yml").read_bytes())


@pytest.mark.full
@pytest.mark.corpora
@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(command[2:]) for command in COMMANDS])
def test_commands_on_real_corpora_run(command: list[str], data_dir: Path, tmp_path: Path) -> None:
    """On a few notes, with a tiny encoder. `.ci/run` runs the same workflow on the demo."""
    variables = read_variables(command)
    task = find_task(variables["task"], variables.get("lang"))
    copy_project(tmp_path / "clone")
    copy_first_notes(data_dir, task, tmp_path / "data")
    if "encoder" in variables:
        folder = tmp_path / "clone" / variables["encoder"]
        folder.parent.mkdir(parents=True, exist_ok=True)
        build_compact_encoder(TEXTS * 10, folder, layers=2, width=64, vocab_size=300, seed=0)
    overrides = {} if "recipe" in variables else {"SPACY_CONFIG_OVERRIDES": LESS}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *RUN.split()[1:], *command],
        cwd=tmp_path / "clone",
        env={
            **os.environ,
            **overrides,
            "PYTHONPATH": path.strip(os.pathsep),
            "BIOCLIN_DATA": str(tmp_path / "data"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    run = f"{variables['task']}-{variables.get('lang', 'es')}"
    metrics = srsly.read_json(tmp_path / "clone" / "metrics" / f"{run}.json")
    assert set(task.layer_names) <= metrics["layers"].keys()
    assert "Settings for " in done.stdout
    if "recipe" in variables:
        assert f"set by the recipe {variables['recipe']}" in done.stdout
