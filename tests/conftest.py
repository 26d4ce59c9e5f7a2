"""Fixtures shared by all tests. No test needs a network."""

import os

# Tiny models: more threads only wait for each other. Set before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.util import make_encoder

ROOT = Path(__file__).parents[1]
# A slow or busy machine is no reason to fail.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
# Fixtures of one room that tests of commands use too.
pytest_plugins = [
    "tests.contract.fixtures",
    "tests.linking.fixtures",
    "tests.packaging.fixtures",
    "tests.pretraining.fixtures",
    "tests.runner.fixtures",
]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real corpora; where there is none, tests are skipped with a reason."""
    path = Path(os.environ.get("BIOCLIN_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip("real corpora not found: set BIOCLIN_DATA or put them in ../shared/data")
    return path


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny random BERT with a WordPiece vocabulary."""
    return make_encoder(tmp_path_factory.mktemp("encoders") / "bert")
