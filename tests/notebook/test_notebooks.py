"""The notebooks of docs/notebooks run, and were committed with what they show."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.markdown import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# A cell before each notebook, so that it begins as if the kernel were its own.
BEGIN = """
import builtins, os
builtins.began = getattr(builtins, "began", None) or (os.getcwd(), dict(os.environ))
os.chdir(builtins.began[0])
os.environ.clear()
os.environ.update(builtins.began[1])
%reset -f
"""


@pytest.fixture
def nbformat() -> Any:
    return pytest.importorskip("nbformat", reason="notebooks are read with nbformat")


def list_outputs(notebook: Any) -> list[Any]:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output for cell in cells for output in cell.outputs]


def test_committed_with_outputs_of_no_machine(nbformat: Any) -> None:
    """Without outputs, a reader sees nothing; with paths, he sees a machine that is not his."""
    for path in NOTEBOOKS:
        text = path.read_text("utf-8")
        notebook = nbformat.reads(text, as_version=4)
        counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
        assert counts == list(range(1, len(counts) + 1)), path
        outputs = list_outputs(notebook)
        assert any("text/html" in output.get("data", {}) for output in outputs), path
        assert not [output for output in outputs if output.output_type == "error"], path
        assert not re.search(r'[" ]/(home|root|tmp|work|Users)/|site-packages', text), path
        assert len(text) < 100_000, path


def test_says_what_it_is_and_what_it_needs(nbformat: Any) -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    for path in NOTEBOOKS:
        first = nbformat.read(path, as_version=4).cells[0]
        title = first.source.splitlines()[0]
        assert title.startswith("# ") and "This notebook needs" in first.source, path
        assert f"[{title[2:]}](notebooks/{path.name})" in page


def test_page_lists_every_notebook() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    assert sorted(re.findall(r"notebooks/(\w+\.ipynb)", page)) == [path.name for path in NOTEBOOKS]


@pytest.mark.slow
def test_all_of_them_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped: Path, nbformat: Any
) -> None:
    """A cell that fails is an error, and each cell that showed something shows something still.
    They run one after the other in one kernel, whose start is dear."""
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name, reason=f"notebooks are run with {name}")
    from scripts.run_notebooks import run_notebook

    for name in ("assets", "configs"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    folder = tmp_path / "docs" / "notebooks"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # the script adds to it
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(shipped), str(ROOT)]))
    committed = nbformat.v4.new_notebook()
    for path in NOTEBOOKS:
        committed.cells.append(nbformat.v4.new_code_cell(BEGIN.strip()))
        committed.cells += nbformat.read(path, as_version=4).cells
    for number, cell in enumerate(committed.cells):
        cell.id = f"cell-{number}"
    nbformat.write(committed, tmp_path / "all.ipynb")
    notebook = run_notebook(tmp_path / "all.ipynb", folder=folder)
    for cell, before in zip(notebook.cells, committed.cells, strict=True):
        kinds = [output.output_type for output in cell.get("outputs", ())]
        assert kinds == [output.output_type for output in before.get("outputs", ())], cell.source
    assert list(folder.iterdir()) == []  # what a notebook makes is in temporary folders
    assert json.dumps(notebook).count("Traceback") == 0
