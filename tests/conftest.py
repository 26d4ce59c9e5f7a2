"""Fixtures shared by all tests. No test needs a network."""

import os

# Tiny models: more threads only wait for each other. Set before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import functools
import gc
import signal
from pathlib import Path

import catalogue
import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from tests.util import make_encoder

ROOT = Path(__file__).parents[1]
# A shell lets jobs in the background, and nohup lets all, ignore signals. Commands that tests start
# would keep that, and tests of interruptions would wait for ever.
for _name in ("SIGINT", "SIGHUP"):
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)
# A slow or busy machine is no reason to fail, and what passes once passes always: it is
# benchmarks/fuzz.py that looks for new examples.
settings.register_profile(
    "quick", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")
# A fifth of the time of a test that runs a command: typer makes all commands anew for each run.
typer.testing._get_command = functools.lru_cache(typer.testing._get_command)
# A tenth: each registered name is looked for among all entry points. A dict by their group is what
# catalogue has where importlib.metadata gives one.
_found = catalogue.AVAILABLE_ENTRY_POINTS
catalogue.AVAILABLE_ENTRY_POINTS = {
    group: list(_found.select(group=group)) for group in _found.groups
}
# An option, and fixtures of one room that tests of other rooms use too.
pytest_plugins = [
    "benchmarks.suite.limit",
    "tests.contract.fixtures",
    "tests.linking.fixtures",
    "tests.packaging.fixtures",
    "tests.pretraining.fixtures",
    "tests.runner.fixtures",
    "tests.runner.postgres",
    "tests.trained",
]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking again and again at all that was imported."""
    gc.collect()
    gc.freeze()


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
