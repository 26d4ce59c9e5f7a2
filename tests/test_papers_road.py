"""The README's commands on real corpora run as they are, on a few notes, with tiny encoders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import srsly

from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.pretraining.compact import build_compact_encoder
from tests.catalog.test_tasks import copy_first_notes
from tests.markdown import ROOT, code_blocks, shell_commands
from tests.util import TEXTS

RUN = "python -m spacy project run"
COMMANDS = [
    command
    for block in code_blocks((ROOT / "README.md").read_text("utf-8"))
    for command in shell_commands(block.content, RUN)
    if "--vars.task" in command
]
# Without a recipe, the config's thousands of updates would be made.
FEW_UPDATES = "--training.max_steps=4 --training.eval_frequency=4"


def test_there_are_commands_with_and_without_a_recipe() -> None:
    assert ["--vars.recipe" in command for command in COMMANDS] == [False, True, True]


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


@pytest.mark.slow
@pytest.mark.corpora
@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(command[2:]) for command in COMMANDS])
def test_command_runs(command: list[str], data_dir: Path, tmp_path: Path) -> None:
    variables = read_variables(command)
    task = find_task(variables["task"], variables.get("lang"))
    copy_project(tmp_path / "clone")
    copy_first_notes(data_dir, task, tmp_path / "data")
    if "encoder" in variables:
        folder = tmp_path / "clone" / variables["encoder"]
        folder.parent.mkdir(parents=True, exist_ok=True)
        build_compact_encoder(TEXTS * 10, folder, layers=2, width=64, vocab_size=300, seed=0)
    overrides = {} if "recipe" in variables else {"SPACY_CONFIG_OVERRIDES": FEW_UPDATES}
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
