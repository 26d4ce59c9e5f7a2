"""Run the tests in a random order: ``BIOCLIN_SEED=3 pytest -p benchmarks.suite.shuffle``.

Files change places, and so do the tests of each file.
"""

import os
import random

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle files, and tests inside of them. Every process draws the same order."""
    draw = random.Random(int(os.environ.get("BIOCLIN_SEED", "0")))
    files = sorted({item.nodeid.partition("::")[0] for item in items})
    draw.shuffle(files)
    place = {name: number for number, name in enumerate(files)}
    draw.shuffle(items)
    items.sort(key=lambda item: place[item.nodeid.partition("::")[0]])
