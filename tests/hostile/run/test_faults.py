"""Nothing is lost and nothing twice, whatever happens to `bioclin run`.

The slow tests fork one process for all commands. Those with workers, or with a disk of their own,
import the libraries anew for each process, and run on demand. benchmarks/runner/faults.py makes the
whole table, with more moments.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.commands import Commands, list_members

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

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="Linux")


# What a process runs that does not start on its own, where Python imports sitecustomize. Notes are
# annotated in the process of the command: another one would import the libraries for seconds.
BEFORE = """
import runpy
from spacy_bioclin.runner.engines.local import LocalEngine

runpy.run_path("site/sitecustomize.py")
begin = LocalEngine.__init__
LocalEngine.__init__ = lambda self, workers, *, apart=False: begin(self, workers)
"""
# The command waits after its first part until it is killed, or stopped and continued.
HOLD = """
import signal, time
from spacy_bioclin.runner.work import Work

continued = []
signal.signal(signal.SIGCONT, lambda *_: continued.append(True))
write = Work.write

def write_and_wait(self, *arguments, **options):
    write(self, *arguments, **options)
    while not continued:
        time.sleep(0.01)

Work.write = write_and_wait
"""


class ForkedStage(Stage):
    """A stage whose commands are forks of a process that has imported the libraries."""

    def __init__(self, folder: Path, commands: Commands, **options: Any) -> None:
        super().__init__(folder, **options)
        self.commands = commands
        self.sessions: list[int] = []
        self.hold_next = False  # let the next command not end by itself

    def holding(self, form: str = "jsonl") -> "ForkedStage":
        self.undisturbed(form)
        self.hold_next = True
        return self

    def start(self, command: list[str], **environment: str) -> Any:
        arguments = command[command.index("spacy_bioclin") + 1 :]
        more = {**self.environment, **environment}
        before, self.hold_next = BEFORE + HOLD * self.hold_next, False
        process = self.commands.start(
            *arguments, folder=self.folder, environment=more, before=before
        )
        self.sessions.append(process.pid)
        return process

    def processes(self) -> dict[int, str]:
        return {pid: "" for session in self.sessions for pid in list_members(session)}


@pytest.fixture(scope="module")
def forked(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedStage]:
    """A pipeline and 700 notes, which are two parts; whatever still runs in the end is killed."""
    made = ForkedStage(tmp_path_factory.mktemp("stage"), commands, n=700, delay=0.0)
    yield made
    made.end()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The same with processes that start on their own."""
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


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", pytest.param("omop", marks=pytest.mark.full)])
def test_a_run_of_one_process_is_killed(form: str, forked: ForkedStage) -> None:
    found = kill_run(forked.holding(form), f"kill-{form}", form=form)
    assert found.statuses[0] == -9
    check_all(found, forked)


@pytest.mark.full
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


@pytest.mark.full
def test_a_worker_is_killed(stage: Stage) -> None:
    """No note is taken for the reason: the quarantine has only those that fail."""
    check_all(kill_worker(stage, "worker"), stage)


@pytest.mark.full
def test_a_disk_that_is_read_only_then_full(stage: Stage) -> None:
    if not can_mount():
        pytest.skip("no disk can be mounted in a namespace here")
    found = fill_disk(stage, "full", kilobytes=stage.size() * 2 // 3)
    assert found.statuses == [1, 1, 0]
    first, second = found.message.split(" | ")
    assert "may not be written to" in first
    assert "the disk is full" in second and "--resume" in second
    check_all(found, stage)


@pytest.mark.full
def test_a_limit_of_the_size_of_files(stage: Stage) -> None:
    found = limit_files(stage, "limit")
    assert found.statuses == [1, 0] and "larger than a file may be" in found.message
    check_all(found, stage)


@pytest.mark.slow
def test_two_runs_on_one_output(forked: ForkedStage) -> None:
    found = run_twice(forked.holding(), "twice")
    assert found.statuses == [1, 0] and "another run is writing it" in found.message
    check_all(found, forked)


@pytest.mark.slow
def test_a_clock_that_goes_back(forked: ForkedStage) -> None:
    check_all(turn_clock_back(forked.holding(), "clock"), forked)


@pytest.mark.slow
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
    forked: ForkedStage,
) -> None:
    """Rows that cannot be read are in the quarantine, and the others in the output."""
    check(scene(forked, scene.__name__), n_quarantined)
