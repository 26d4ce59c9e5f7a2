"""Versions and the commit, as metrics and results record them."""

import subprocess
from pathlib import Path

import pytest
import spacy

from spacy_bioclin import machine


def test_versions_leave_out_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LIBRARIES", ("spacy", "no-such-library"))
    found = machine.find_versions()
    assert found["spacy"] == spacy.__version__
    assert "python" in found and "no-such-library" not in found


def test_commit_is_that_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert machine.find_commit() is None
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "file").write_text("1")
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)
    commit = machine.find_commit()
    assert commit and not commit.endswith("-dirty")
    (tmp_path / "file").write_text("2")
    assert machine.find_commit() == f"{commit}-dirty"
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    assert machine.find_commit() is None
