"""Fixtures of hostile tests."""

from collections.abc import Iterator

import pytest

from tests.hostile.commands import Commands


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Start processes of `bioclin` quickly."""
    made = Commands(tmp_path_factory.mktemp("commands"))
    yield made
    made.close()
