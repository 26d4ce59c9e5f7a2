"""The commands of docs/packaging.md for a machine without a network."""

import importlib.metadata
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import spacy
from packaging.requirements import Requirement

from spacy_bioclin.packaging.build import build_wheel
from spacy_bioclin.packaging.card import Provenance
from tests.markdown import ROOT

PAGE = (ROOT / "docs" / "packaging.md").read_text("utf-8")


def shell_line(word: str) -> str:
    """Find the command of the page that holds a word."""
    [line] = re.findall(rf"^\$ (.*{re.escape(word)}.*)$", PAGE, re.MULTILINE)
    return line


def write_empty_wheel(folder: Path, name: str, version: str) -> None:
    """Write a wheel without modules and requirements, in the place of a large one."""
    stem = f"{name.replace('-', '_')}-{version}"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for file, content in files.items():
            wheel.writestr(f"{stem}.dist-info/{file}", content)


@pytest.mark.full
def test_a_wheelhouse_installs_without_a_network(tmp_path: Path) -> None:
    nlp = spacy.blank("es")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PROBLEM", "pattern": "neumonía"}])
    nlp.to_disk(tmp_path / "pipeline")
    house = tmp_path / "wheelhouse"
    wheel = build_wheel(
        tmp_path / "pipeline",
        house,
        name="words",
        version="0.1.0",
        provenance=Provenance(),
    )
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read("es_bioclin_words-0.1.0.dist-info/METADATA").decode()
    required = [Requirement(line) for line in re.findall("^Requires-Dist: (.+)$", metadata, re.M)]
    assert "spacy-bioclin" in {requirement.name for requirement in required}
    venv.create(tmp_path / "env", with_pip=True)
    folder = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin")

    def run(command: str) -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        path = os.pathsep.join((str(folder), os.environ["PATH"]))
        environment = {**kept, "PATH": path, "PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": ""}
        return subprocess.run(
            ["bash", "-c", command], cwd=house, env=environment, capture_output=True, text=True
        )

    write_hashes, install = shell_line("pip hash"), shell_line("--no-index")
    assert run(write_hashes).returncode == 0
    done = run(install)
    assert done.returncode != 0 and "spacy-bioclin" in done.stderr  # nothing is taken from outside

    for requirement in required:
        write_empty_wheel(house, requirement.name, importlib.metadata.version(requirement.name))
    assert run(write_hashes).returncode == 0
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("more.py", "")
    done = run(install)
    assert done.returncode != 0 and "DO NOT MATCH THE HASHES" in done.stderr

    assert run(write_hashes).returncode == 0
    done = run(install)
    assert done.returncode == 0, done.stderr
    assert "es_bioclin_words" in run("pip list").stdout.replace("-", "_")
