"""A pipeline, notes, and processes of `bioclin run` that can be disturbed."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import spacy

ROOT = Path(__file__).parents[3]
WAIT = 300  # seconds, for machines that are busy
MARK, DELAY, CLOCK = "BIOCLIN_TEST_MARK", "BIOCLIN_TEST_DELAY", "BIOCLIN_TEST_CLOCK"
BAD_EVERY, NULL_EVERY = 333, 499
# A component that takes its time, and fails on some notes. It is a package with an entry point, so
# that the processes of every engine find it.
COMPONENT = f'''
import os
import time

from spacy.language import Language


@Language.factory("test_slow_component")
def make_slow(nlp, name):
    seconds = float(os.environ.get("{DELAY}", 0))

    def wait(doc):
        time.sleep(seconds)
        if "veneno" in doc.text:
            raise ValueError(doc.text)
        return doc

    return wait
'''
# The clock of a process jumps back by an hour, again and again.
CLOCK_BACK = f"""
import os, time
if os.environ.get("{CLOCK}"):
    real, begin = time.time, time.monotonic()
    time.time = lambda: real() - 3600 * int(time.monotonic() - begin)
"""
ENTRY_POINTS = "[spacy_factories]\ntest_slow_component = bioclin_test_slow:make_slow\n"
SETTINGS = "nlp_datetime: 2026-11-25T09:30:00\n"


class Outcome(NamedTuple):
    """What came of a fault.

    statuses (list[int]): Exit statuses of the command, those of resumed runs too.
    message (str): Last line of the first run that failed; "" if none did.
    lost (int): Notes that are neither in the output nor in the quarantine.
    twice (int): Notes that are there more than once.
    equal (bool): Output and quarantine have the bytes of an undisturbed run.
    quarantined (int): Notes in the quarantine.
    left (list[str]): Files beside the output that an undisturbed run does not leave.
    """

    statuses: list[int]
    message: str
    lost: int
    twice: int
    equal: bool
    quarantined: int
    left: list[str]


def write_notes(path: Path, notes: Iterable[Any]) -> Path:
    """Write rows as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for note in notes:
            file.write(json.dumps(note, ensure_ascii=False) + "\n")
    return path


class Stage:
    """A folder with a pipeline, notes of which some are bad, and the processes of a scene.

    n (int): Notes.
    delay (float): Seconds that the pipeline waits at each note.
    """

    def __init__(self, folder: Path, *, n: int = 2_000, delay: float = 0.001) -> None:
        self.folder, self.n = folder, n
        self.mark = uuid.uuid4().hex
        self.wanted: dict[str, dict[str, bytes]] = {}
        site = folder / "site"
        info = site / "bioclin_test_slow-0.0.0.dist-info"
        info.mkdir(parents=True)
        (site / "bioclin_test_slow.py").write_text(COMPONENT)
        (site / "sitecustomize.py").write_text(CLOCK_BACK)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 0.0.0\n")
        (info / "entry_points.txt").write_text(ENTRY_POINTS)
        write_model(folder / "model")
        (folder / "settings.yml").write_text(SETTINGS)
        self.source = write_notes(folder / "notes.jsonl", map(make_note, range(n)))
        paths = [str(site), str(ROOT), os.environ.get("PYTHONPATH", "")]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OMP_NUM_THREADS": "1",
            MARK: self.mark,
            DELAY: str(delay),
        }

    def command(
        self, out: Path, *options: object, form: str = "jsonl", source: Path | None = None
    ) -> list[str]:
        """Make the command."""
        more: list[object] = ["--to", form, "--id-column", "id", "--skip-bad"]
        if form == "omop":
            more += ["--settings", self.folder / "settings.yml"]
        run = [self.folder / "model", source or self.source, out, *more, *options]
        base = [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "run"]
        return [str(each) for each in (*base, *run)]

    def start(self, command: list[str], **environment: str) -> "subprocess.Popen[str]":
        """Start a command in a session of its own."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, command: list[str], **environment: str) -> tuple[int, str]:
        """Run a command to its end.

        RETURNS (tuple[int, str]): Exit status, and the last line of its messages.
        """
        process = self.start(command, **environment)
        try:
            _, err = process.communicate(timeout=WAIT)
        finally:
            if process.poll() is None:
                self.end()
        lines = [line for line in err.splitlines() if line.startswith("bioclin: ")]
        return process.returncode, " ".join(lines[-1:] or err.splitlines()[-1:])

    def processes(self) -> dict[int, str]:
        """Find the processes of this stage, of engines too, with their command lines."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if self.mark.encode() in Path(f"/proc/{entry}/environ").read_bytes():
                    found[int(entry)] = Path(f"/proc/{entry}/cmdline").read_text()
        return found

    def end(self) -> None:
        """Kill whatever this stage has started."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def undisturbed(self, form: str = "jsonl") -> dict[str, bytes]:
        """Read the files of a run that nothing disturbs, which is made once."""
        if form not in self.wanted:
            folder = self.folder / f"wanted-{form}"
            folder.mkdir()
            status, message = self.run(self.command(folder / name_of(form), form=form))
            assert status == 0, message
            self.wanted[form] = read_all(folder)
        return self.wanted[form]

    def size(self) -> int:
        """Compute the size of the output that nothing disturbs, in kilobytes."""
        return len(self.undisturbed()[name_of("jsonl")]) // 1024

    def judge(self, folder: Path, runs: list[tuple[int, str]], form: str = "jsonl") -> Outcome:
        """Compare the files of a folder with those of a run that nothing disturbs."""
        found, wanted = read_all(folder), self.undisturbed(form)
        written = Counter(list_notes(found, form))
        bad = found.get(f"{name_of(form)}.quarantine.jsonl", b"").splitlines()
        written.update(json.loads(line)["record"] - 1 for line in bad)
        compared = {name for name in (*found, *wanted) if not name.endswith("run.json")}
        return Outcome(
            statuses=[status for status, _ in runs],
            message=next((message for status, message in runs if status > 0), ""),
            lost=len(set(range(self.n)) - set(written)),
            twice=sum(n - 1 for n in written.values()),
            equal=all(found.get(name) == wanted.get(name) for name in compared),
            quarantined=len(bad),
            left=sorted(set(found) - set(wanted)),
        )


def name_of(form: str) -> str:
    """Name the output."""
    return {"omop": "out.csv", "fhir": "out.ndjson"}.get(form, f"out.{form}")


def write_model(folder: Path) -> None:
    """Write a pipeline with a slow component."""
    sys.path.insert(0, str(folder.parent / "site"))
    try:
        import bioclin_test_slow  # noqa: F401
    finally:
        sys.path.pop(0)
    nlp = spacy.blank("es")
    nlp.add_pipe("test_slow_component")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "SYMPTOM", "pattern": "tos"}])
    nlp.to_disk(folder)


def is_bad(i: int) -> bool:
    """Check whether a note fails, or cannot be read."""
    return i % BAD_EVERY == 5 or i % NULL_EVERY == 7


def make_note(i: int) -> Any:
    """Make a note; some are null, and the pipeline fails on others."""
    if i % NULL_EVERY == 7:
        return None
    text = "veneno" if i % BAD_EVERY == 5 else f"Paciente {i} con tos."
    return {"id": i, "text": text}


def read_all(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def list_notes(files: dict[str, bytes], form: str) -> list[int]:
    """List the ids of the notes in an output."""
    content = files.get(name_of(form), b"").decode("utf-8").splitlines()
    if form == "omop":  # one row for each note
        return [int(line.split(",")[1]) for line in content[1:]]
    return [int(json.loads(line)["id"]) for line in content]
