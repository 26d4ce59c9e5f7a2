"""Record what each test costs and which lines of the package it runs.

A pytest plugin: ``BIOCLIN_RECORD=FOLDER pytest -p benchmarks.suite.record``. Each process appends
a line of JSON for each test to a file of its own in the folder. With ``BIOCLIN_LINES=1`` it also
keeps the lines of spacy_bioclin that each test runs, by coverage.py; times are then too long.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("BIOCLIN_RECORD", ".work/record"))
_coverage: Any = None


def processor_seconds() -> float:
    """Return the seconds of processor time that this process and its ended children have used."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _write(test: str, seconds: float) -> None:
    with (FOLDER / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "seconds": round(seconds, 4)}) + "\n")


def pytest_configure() -> None:
    """Begin to keep lines, before a module of the package is imported."""
    global _coverage
    FOLDER.mkdir(parents=True, exist_ok=True)
    if os.environ.get("BIOCLIN_LINES"):
        import coverage

        _coverage = coverage.Coverage(
            data_file=str(FOLDER / f"{os.getpid()}.coverage"),
            source=["spacy_bioclin"],
            config_file=False,
        )
        _coverage.start()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Record the time from the start of the process to the last collected test."""
    result = yield
    _write("", processor_seconds())
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the time of a test with its fixtures, and the lines that it runs."""
    if _coverage is not None:
        _coverage.switch_context(item.nodeid)
    before = processor_seconds()
    result = yield
    _write(item.nodeid, processor_seconds() - before)
    return result


def pytest_unconfigure() -> None:
    """Save the lines."""
    if _coverage is not None:
        _coverage.stop()
        _coverage.save()
