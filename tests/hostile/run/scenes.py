"""Faults of `bioclin run`, each through the real command in processes of its own.

A scene makes a fault happen, goes on as its message says, and returns what came of it. The tests
of this folder check a few, and benchmarks/runner/faults.py makes the whole table of them.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.run.stage import (
    CLOCK,
    WAIT,
    Outcome,
    Stage,
    name_of,
    read_all,
)


def make_empty(stage: Stage, name: str) -> Path:
    """Make an empty folder for the output of a scene."""
    folder = stage.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def engine_options(engine: str) -> list[str]:
    """Give the options for two workers of an engine, or for one process of this machine."""
    return [] if engine == "alone" else ["--engine", engine, "--processes", "2"]


def wait_for(condition: Callable[[], Any], process: "subprocess.Popen[str]") -> bool:
    """Wait until something is so.

    RETURNS (bool): Whether it was before the process ended.
    """
    end = time.monotonic() + WAIT
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < end
        time.sleep(0.005)
    return True


def list_parts(out: Path) -> list[Path]:
    """List the finished parts of a run that is not done."""
    return sorted(out.parent.glob(f".{out.name}.work/*.part"))


def finish(
    stage: Stage, command: list[str], runs: list[tuple[int, str]], **environment: str
) -> list[tuple[int, str]]:
    """Go on with --resume until the output is there, at most twice."""
    for _ in range(2):
        if runs and runs[-1][0] == 0:
            break
        runs.append(stage.run([*command, "--resume"], **environment))
    return runs


def kill_run(
    stage: Stage,
    name: str,
    *,
    seconds: float | None = None,
    engine: str = "alone",
    form: str = "jsonl",
    everything: bool = True,
) -> Outcome:
    """Kill a run (kill -9), and go on.

    seconds (float | None): How long after its start; None for after the first finished part.
    everything (bool): Kill the workers too. Without it, they have to notice by themselves.
    """
    out = make_empty(stage, name) / name_of(form)
    command = stage.command(out, *engine_options(engine), form=form)
    process = stage.start(command)
    try:
        if seconds is None:
            wait_for(lambda: list_parts(out), process)
        process.communicate(timeout=seconds or 0.01)
    except subprocess.TimeoutExpired:
        if everything:
            stage.end()
        else:
            process.kill()
        process.communicate()
    runs = finish(stage, command, [(process.returncode, "")])
    stage.end()
    return stage.judge(out.parent, runs, form)


WORKERS = {
    "local": "spawn_main",
    "ray": "ray::",
    "spark": "pyspark",
}


def kill_worker(stage: Stage, name: str, *, engine: str = "local") -> Outcome:
    """Kill one of two workers (kill -9) after the first finished part."""
    out = make_empty(stage, name) / name_of("jsonl")
    command = stage.command(out, *engine_options(engine))
    process = stage.start(command)

    def find() -> list[int]:
        every = stage.processes().items()
        return [pid for pid, line in every if WORKERS[engine] in line and pid != process.pid]

    if wait_for(lambda: list_parts(out), process):
        wait_for(find, process)
        for pid in find()[-1:]:
            os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=WAIT)
    runs = finish(stage, command, [(process.returncode, err.strip().rpartition("\n")[2])])
    stage.end()
    return stage.judge(out.parent, runs)


def can_mount() -> bool:
    """Check whether a disk can be mounted in a namespace of its own."""
    if shutil.which("unshare") is None:
        return False
    script = "mount -t tmpfs tmpfs /mnt"
    return subprocess.run(["unshare", "-rm", "sh", "-c", script], stderr=-3).returncode == 0


def fill_disk(stage: Stage, name: str, *, kilobytes: int) -> Outcome:
    """Run on a disk that is read-only, again when it is not but has no room, then with room."""
    folder = make_empty(stage, name)
    disk = make_empty(stage, f"{name}-disk")
    script = """
    mount -t tmpfs -o size="$SIZE"k tmpfs "$DISK" && mount -o remount,ro "$DISK" || exit 99
    "$@"
    echo $?
    mount -o remount,rw "$DISK"
    "$@"
    echo $?
    mount -o remount,size=50m "$DISK"
    "$@" --resume
    echo $?
    cp -a "$DISK"/. "$COPY"
    """
    command = stage.command(disk / name_of("jsonl"))
    more = {"DISK": str(disk), "COPY": str(folder), "SIZE": str(kilobytes)}
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *command],
        cwd=stage.folder,
        env={**stage.environment, **more},
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("bioclin: ")]
    statuses = [int(status) for status in done.stdout.split()]
    runs = list(zip(statuses, [" | ".join(said), "", ""], strict=False))
    return stage.judge(folder, runs)


def limit_files(stage: Stage, name: str, *, blocks: int = 64) -> Outcome:
    """Run where no file may be larger than some blocks of 512 bytes, and go on where it may."""
    out = make_empty(stage, name) / name_of("jsonl")
    command = stage.command(out)
    limited = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *command]
    return stage.judge(out.parent, finish(stage, command, [stage.run(limited)]))


def run_twice(stage: Stage, name: str) -> Outcome:
    """Start a second run with the output of one that is not done."""
    out = make_empty(stage, name) / name_of("jsonl")
    command = stage.command(out)
    first = stage.start(command)
    wait_for(lambda: list_parts(out), first)
    first.send_signal(signal.SIGSTOP)
    second = stage.run([*command, "--resume"])
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=WAIT)
    return stage.judge(out.parent, [second, (first.returncode, "")])


def turn_clock_back(stage: Stage, name: str) -> Outcome:
    """Kill a run, and go on with a clock that is behind and jumps back by an hour each second."""
    out = make_empty(stage, name) / name_of("jsonl")
    command = stage.command(out)
    process = stage.start(command)
    wait_for(lambda: list_parts(out), process)
    stage.end()
    process.communicate()
    tomorrow = time.time() + 86_400
    for path in out.parent.rglob("*"):
        os.utime(path, (tomorrow, tomorrow))
    runs = finish(stage, command, [(process.returncode, "")], **{CLOCK: "1"})
    return stage.judge(out.parent, runs)


def disturb_nothing(stage: Stage, name: str, *, engine: str) -> tuple[Outcome, float]:
    """Run with an engine, to see that its output is that of one process.

    RETURNS (tuple[Outcome, float]): What came of it, and the seconds that it took.
    """
    out = make_empty(stage, name) / name_of("jsonl")
    stage.undisturbed()
    began = time.monotonic()
    runs = [stage.run(stage.command(out, *engine_options(engine)))]
    seconds = time.monotonic() - began
    return stage.judge(out.parent, runs), seconds


def pick_moments(seconds: float, n: int, seed: str) -> list[float]:
    """Pick random moments, one in each of `n` equal pieces of the time of a whole run."""
    rng = random.Random(seed)
    return [seconds * (i + rng.random()) / n for i in range(n)]


CANARY = "Zubizarreta"
# Lines of a .jsonl file by what is wrong with them.
ODD_LINES: dict[str, bytes] = {
    "null": b"null",
    "no text": json.dumps({"id": 1}).encode(),
    "text is null": json.dumps({"id": 1, "text": None}).encode(),
    "text is a number": b'{"id": 1, "text": 7}',
    "text is a list": json.dumps({"id": 1, "text": [CANARY]}).encode(),
    "id is null": json.dumps({"id": None, "text": CANARY}).encode(),
    "bytes that are not UTF-8": b'{"id": 1, "text": "' + CANARY.encode() + b'\xff\xfe"}',
    "a NUL character": json.dumps({"id": 1, "text": f"{CANARY}\0"}).encode(),
    "half of a surrogate pair": f'{{"id": 1, "text": "{CANARY}\\ud800"}}'.encode(),
    "cut in the middle": f'{{"id": 1, "text": "{CANARY}'.encode(),
    "nested too deep": b'{"id": 1, "text": "' + CANARY.encode() + b'", "a": ' + b"[" * 5000,
}


def read_odd(stage: Stage, name: str, *, megabytes: int = 2) -> Outcome:
    """Read a file with every kind of bad line between good ones, and a very long note."""
    out = make_empty(stage, name) / name_of("jsonl")
    lines, good, bad = [], [], []
    long = "Paciente con tos. " * (megabytes * 2**20 // 18)
    for i, odd in enumerate([*ODD_LINES.values(), b""]):
        text = f"Paciente {i} con tos." if odd else long
        good.append(len(lines))
        lines.append(json.dumps({"id": len(lines), "text": text}).encode())
        if odd:
            bad.append(len(lines))
            lines.append(odd)
    source = stage.folder / f"{name}.jsonl"
    source.write_bytes(b"".join(line + b"\n" for line in lines))
    runs = [stage.run(stage.command(out, source=source), BIOCLIN_TEST_DELAY="0")]
    return judge_rows(out, runs, good, bad)


def read_odd_table(stage: Stage, name: str) -> Outcome:
    """Read a Parquet file whose column of text has nulls and bytes that are not UTF-8."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    out = make_empty(stage, name) / name_of("jsonl")
    texts = [b"tos", None, CANARY.encode() + b"\xff", "año con tos".encode()] * 50
    column = pa.array(texts, pa.binary()).view(pa.string())
    source = stage.folder / f"{name}.parquet"
    pq.write_table(pa.table({"id": pa.array(range(200)), "text": column}), source)
    runs = [stage.run(stage.command(out, source=source), BIOCLIN_TEST_DELAY="0")]
    good = [i for i in range(200) if i % 4 in (0, 3)]
    return judge_rows(out, runs, good, [i for i in range(200) if i % 4 in (1, 2)])


def read_drift(stage: Stage, name: str) -> Outcome:
    """Read a folder of .jsonl files, one of which has another name for the column of text."""
    out = make_empty(stage, name) / name_of("jsonl")
    folder = make_empty(stage, f"{name}-in")
    for number, column in enumerate(["text", "texto", "text"]):
        rows = [{"id": 100 * number + i, column: f"{CANARY} con tos"} for i in range(100)]
        (folder / f"{number}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    runs = [stage.run(stage.command(out, source=folder), BIOCLIN_TEST_DELAY="0")]
    good = [*range(100), *range(200, 300)]
    return judge_rows(out, runs, good, list(range(100, 200)))


def read_other_schema(stage: Stage, name: str) -> Outcome:
    """Read a folder of .parquet files, one of which has no column of text, then without it."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    out = make_empty(stage, name) / name_of("jsonl")
    folder = make_empty(stage, f"{name}-in")
    for number, column in enumerate(["text", "texto"]):
        ids = [100 * number + i for i in range(100)]
        table = pa.table({"id": ids, column: [f"{CANARY} con tos"] * 100})
        pq.write_table(table, folder / f"{number}.parquet")
    command = stage.command(out, source=folder)
    runs = [stage.run(command, BIOCLIN_TEST_DELAY="0")]
    (folder / "1.parquet").unlink()
    return judge_rows(out, finish(stage, command, runs), list(range(100)), [])


def judge_rows(out: Path, runs: list[tuple[int, str]], good: list[int], bad: list[int]) -> Outcome:
    """Compare the notes of an output with those that should be there.

    `equal` is whether they are in order, and no word of a bad note is in any file.
    """
    found = read_all(out.parent)
    rows = [json.loads(line) for line in found.get(out.name, b"").splitlines()]
    quarantine = found.get(f"{out.name}.quarantine.jsonl", b"").splitlines()
    written = [int(row["id"]) for row in rows]
    left_out = [json.loads(line)["record"] - 1 for line in quarantine]
    every = Counter([*written, *left_out])
    quiet = not any(CANARY.encode() in data for data in found.values())
    with_cough = all(len(row["entities"]) > 0 for row in rows)
    return Outcome(
        statuses=[status for status, _ in runs],
        message=next((message for status, message in runs if status > 0), ""),
        lost=len({*good, *bad} - set(every)),
        twice=sum(n - 1 for n in every.values()),
        equal=(written, left_out) == (good, bad) and quiet and with_cough,
        quarantined=len(left_out),
        left=sorted(
            set(found) - {out.name, f"{out.name}.run.json", f"{out.name}.quarantine.jsonl"}
        ),
    )
