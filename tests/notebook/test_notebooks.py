"""The notebooks of docs/notebooks run, and were committed with what they show."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.markdown import ROOT

nbformat = pytest.importorskip("nbformat", reason="notebooks are read with nbformat")
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def list_outputs(notebook: Any) -> list[Any]:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output for cell in cells for output in cell.outputs]


@each
def test_committed_with_outputs_of_no_machine(path: Path) -> None:
    """Without outputs, a reader sees nothing; with paths, he sees a machine that is not his."""
    text = path.read_text("utf-8")
    notebook = nbformat.reads(text, as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    outputs = list_outputs(notebook)
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output.output_type == "error"]
    assert not re.search(r'[" ]/(home|root|tmp|work|Users)/|site-packages', text)
    assert len(text) < 100_000


@each
def test_says_what_it_is_and_what_it_needs(path: Path) -> None:
    first = nbformat.read(path, as_version=4).cells[0]
    title = first.source.splitlines()[0]
    assert title.startswith("# ") and "This notebook needs" in first.source
    page = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    assert f"[{title[2:]}](notebooks/{path.name})" in page


def test_page_lists_every_notebook() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    assert sorted(re.findall(r"notebooks/(\w+\.ipynb)", page)) == [path.name for path in NOTEBOOKS]


@pytest.mark.slow
@each
def test_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped: Path) -> None:
    """A cell that fails is an error, and each cell that showed something shows something still."""
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name, reason=f"notebooks are run with {name}")
    from scripts.run_notebooks import run_notebook

    for name in ("assets", "configs"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    folder = tmp_path / "docs" / "notebooks"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(shipped), str(ROOT)]))
    committed = nbformat.read(path, as_version=4)
    notebook = run_notebook(path, folder=folder)
    for cell, before in zip(notebook.cells, committed.cells, strict=True):
        kinds = [output.output_type for output in cell.get("outputs", ())]
        assert kinds == [output.output_type for output in before.get("outputs", ())], cell.source
    assert list(folder.iterdir()) == []  # what a notebook makes is in temporary folders
    assert json.dumps(notebook).count("Traceback") == 0
