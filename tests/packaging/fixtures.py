"""The pipelines that ship, installed."""

import zipfile
from pathlib import Path

import pytest

SHIPPED = Path(__file__).parents[2] / "assets" / "pipelines"


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for sys.path with the pipelines that ship, as pip unpacks them."""
    folder = tmp_path_factory.mktemp("shipped")
    for wheel in SHIPPED.glob("*.whl"):
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
    return folder
