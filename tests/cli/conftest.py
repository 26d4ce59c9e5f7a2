"""Fixtures of other rooms that tests of commands share."""

from tests.linking.conftest import clinic, concepts, kb
from tests.packaging.conftest import pipeline
from tests.runner.conftest import read, rows, write

__all__ = ["clinic", "concepts", "kb", "pipeline", "read", "rows", "write"]
