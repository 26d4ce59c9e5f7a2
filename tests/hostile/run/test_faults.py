"""Nothing is lost and nothing twice, whatever happens to `bioclin run`.

benchmarks/runner/faults.py makes the whole table, with more moments.
"""

import os
import shutil
from collections.abc import Callable, Iterator

import pytest

from .scenes import (
    can_mount,
    fill_disk,
    kill_run,
    kill_worker,
    limit_files,
    read_drift,
    read_odd,
    read_odd_table,
    run_twice,
    turn_clock_back,
)
from .stage import Outcome, Stage, is_bad

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="Linux"),
]
on_disk = pytest.mark.skipif(not can_mount(), reason="no disk can be mounted in a namespace here")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A pipeline and 700 notes; whatever still runs in the end is killed."""
    made = Stage(tmp_path_factory.mktemp("stage"), n=700)
    yield made
    made.end()


def check(found: Outcome, n_quarantined: int) -> None:
    assert (found.lost, found.twice, found.equal, found.left) == (0, 0, True, []), found
    assert found.quarantined == n_quarantined and found.statuses[-1] == 0, found


def check_all(found: Outcome, stage: Stage) -> None:
    check(found, sum(map(is_bad, range(stage.n))))


def need(engine: str) -> None:
    if engine in ("ray", "spark"):
        pytest.importorskip({"ray": "ray", "spark": "pyspark"}[engine])
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java: no program java")


@pytest.mark.parametrize(
    ("engine", "form", "everything"),
    [
        ("local", "omop", True),
        ("ray", "jsonl", False),
        ("spark", "jsonl", False),
    ],
)
def test_a_run_is_killed(engine: str, form: str, everything: bool, stage: Stage) -> None:
    """With its workers, or without them: then they have to notice by themselves."""
    need(engine)
    found = kill_run(stage, f"kill-{engine}", engine=engine, form=form, everything=everything)
    assert found.statuses[0] == -9
    check_all(found, stage)


def test_a_worker_is_killed(stage: Stage) -> None:
    """No note is taken for the reason: the quarantine has only those that fail."""
    check_all(kill_worker(stage, "worker"), stage)


@on_disk
def test_a_disk_that_is_read_only_then_full(stage: Stage) -> None:
    found = fill_disk(stage, "full", kilobytes=stage.size() * 2 // 3)
    assert found.statuses == [1, 1, 0]
    first, second = found.message.split(" | ")
    assert "may not be written to" in first
    assert "the disk is full" in second and "--resume" in second
    check_all(found, stage)


@pytest.mark.skipif(can_mount(), reason="a disk can be mounted here, and another test fills it")
def test_a_limit_of_the_size_of_files(stage: Stage) -> None:
    found = limit_files(stage, "limit")
    assert found.statuses == [1, 0] and "larger than a file may be" in found.message
    check_all(found, stage)


def test_two_runs_on_one_output(stage: Stage) -> None:
    found = run_twice(stage, "twice")
    assert found.statuses == [1, 0] and "another run is writing it" in found.message
    check_all(found, stage)


def test_a_clock_that_goes_back(stage: Stage) -> None:
    check_all(turn_clock_back(stage, "clock"), stage)


@pytest.mark.parametrize(
    ("scene", "n_quarantined"),
    [
        (read_odd, 11),
        (read_odd_table, 100),
        (read_drift, 100),
    ],
)
def test_odd_rows_and_files(
    scene: Callable[[Stage, str], Outcome],
    n_quarantined: int,
    stage: Stage,
) -> None:
    """Rows that cannot be read are in the quarantine, and the others in the output."""
    check(scene(stage, scene.__name__), n_quarantined)
