"""A limit on the processor time of a default test: `pytest --max-seconds 1`.

Fixtures do not count, nor does waiting, so that a busy machine fails no test.
"""

from collections.abc import Iterator

import pytest

from .record import processor_seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--max-seconds", type=float, help="fail default tests above this limit")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that takes longer."""
    before = processor_seconds()
    result = yield
    seconds, limit = processor_seconds() - before, item.config.getoption("--max-seconds")
    if limit and seconds > limit and not {"slow", "full"} & {m.name for m in item.iter_markers()}:
        pytest.fail(f"{seconds:.1f} s of processor time: shrink it, or mark it slow")
    return result
