"""Fixtures shared by all tests. No test needs a network."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real corpora; tests that need it are skipped, with a reason, where it is not."""
    path = Path(os.environ.get("BIOCLIN_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip("real corpora not found: set BIOCLIN_DATA or put them in ../shared/data")
    return path
