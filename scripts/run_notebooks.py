"""Run the notebooks of docs/notebooks from top to bottom, and keep what they show.

    python -m scripts.run_notebooks              # all; or the names of some

The kernel is this interpreter, so that the notebooks run with the installed package.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
MAX_SECONDS = 120  # for a cell


def run_notebook(path: Path, *, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder, and return it with its outputs.

    RAISES (nbclient.exceptions.CellExecutionError): A cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    # `bioclin` of a shell cell is that of this interpreter.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    client = NotebookClient(
        notebook,
        timeout=MAX_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":  # warnings are of this machine
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main(names: list[str]) -> None:
    """Run notebooks, and write each with what it shows now."""
    for path in [FOLDER / f"{name}.ipynb" for name in names] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run_notebook(path, folder=FOLDER), path)
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
