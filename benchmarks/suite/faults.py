"""Put small faults into the package, one at a time, and ask whether the tests notice.

The faults are in tests/faults/*.yml. With each, tests are run until one fails: those of the folder
that mirrors the changed file, those of its room, those of hostile input and of commands, then the
slow tests of the room. Tests of other rooms, which may notice it too, are not tried.

    python -m benchmarks.suite.faults -o benchmarks/results/suite_faults.json
"""

import importlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from benchmarks.harness import ROOT, data_dir, describe_machine, make_parser, write_json

DEFAULT, SLOW = "not slow and not full", "slow"
TIMEOUT = 1200
NOTHING_FAILED, NO_TESTS = 0, 5  # exit statuses of pytest


class Fault(NamedTuple):
    """A small fault: text of a file, what it becomes, and what a user would see."""

    name: str
    area: str
    file: str
    find: str
    replace: str
    wrong: str


def read_faults(folder: Path) -> list[Fault]:
    """Read all faults of a folder.

    RAISES (SystemExit): If a text is not in its file exactly once.
    """
    rows = [row for path in sorted(folder.glob("*.yml")) for row in _load(path)]
    faults = [Fault(**row) for row in rows]
    for fault in faults:
        times = (ROOT / fault.file).read_text("utf-8").count(fault.find)
        if times != 1:
            raise SystemExit(f"fault {fault.name}: its text is {times} times in {fault.file}")
    return faults


def _load(path: Path) -> list[dict[str, str]]:
    return yaml.safe_load(path.read_text("utf-8"))


def copy_tree(folder: Path) -> Path:
    """Copy the tracked files to a folder."""
    git = ["git", "ls-files", "-z"]
    names = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        source, target = ROOT / name, folder / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


def list_stages(tree: Path, file: str, near: bool) -> Iterator[tuple[str, list[str]]]:
    """List which tests to run after a change of a file.

    near (bool): Only the default tests of its room.
    YIELDS (tuple): Marker and paths.
    """
    mirror = Path("tests", *Path(file).parts[1:-1])
    while not (tree / mirror).is_dir():
        mirror = mirror.parent
    room = Path(*mirror.parts[:2])
    own = [str(path.relative_to(tree)) for path in sorted((tree / mirror).glob("test_*.py"))]
    yield DEFAULT, [path for path in own if Path(file).stem in path]
    yield DEFAULT, [str(mirror)]
    if room not in (mirror, Path("tests")):
        yield DEFAULT, [str(room)]
    if near:
        return
    yield DEFAULT, ["tests/hostile", "tests/cli"]
    if room != Path("tests"):
        yield SLOW, [str(room)]


def preload() -> None:
    """Import what takes long and has no fault: every run of tests is a fork of this process."""
    for name in ("torch", "transformers", "spacy_transformers", "spacy.cli", "faker", "hypothesis"):
        importlib.import_module(name)


def run_tests(tree: Path, marker: str, paths: list[str]) -> str | None:
    """Run tests in a tree until one fails. RETURNS (str | None): The one that failed."""
    shown = tree / "shown.txt"
    pid = os.fork()
    if pid == 0:
        _run_pytest(tree, shown, ["-x", "-n", "0", "-m", marker, *paths])
    ends = time.monotonic() + TIMEOUT
    while (done := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > ends:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "a test does not end"
        time.sleep(0.1)
    if os.waitstatus_to_exitcode(done[1]) in (NOTHING_FAILED, NO_TESTS):
        return None
    lines = shown.read_text("utf-8", errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else "\n".join(lines[-3:])


def _run_pytest(tree: Path, shown: Path, arguments: list[str]) -> NoReturn:
    status = 1
    try:
        out = os.open(shown, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(tree)
        os.environ |= {"PYTHONPATH": str(tree), "BIOCLIN_DATA": str(data_dir().resolve())}
        sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", str(ROOT)))]
        import pytest

        plugins = ["-p", "no:cacheprovider", "-p", "no:randomly"]
        status = int(pytest.main([*plugins, *arguments]))
    finally:
        sys.stdout.flush()
        os._exit(status)


def try_fault(fault: Fault, tree: Path, near: bool) -> dict[str, object]:
    """Run the tests with a fault. RETURNS (dict): Its name and the test that noticed it."""
    path = tree / fault.file
    text = path.read_text("utf-8")
    path.write_text(text.replace(fault.find, fault.replace), encoding="utf-8")
    row = {"name": fault.name, "area": fault.area, "file": fault.file, "wrong": fault.wrong}
    try:
        for marker, paths in list_stages(tree, fault.file, near):
            if paths and (noticed := run_tests(tree, marker, paths)):
                suite = "slow" if marker == SLOW else "default"
                return {**row, "suite": suite, "noticed_by": noticed}
    finally:
        path.write_text(text, encoding="utf-8")
    return {**row, "suite": None, "noticed_by": None}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON; known rows stay")
    parser.add_argument("--only", nargs="+", default=[], help="names of faults to try again")
    parser.add_argument("--near", action="store_true", help="default tests of the room alone")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    faults = read_faults(ROOT / "tests" / "faults")
    known = json.loads(args.output.read_text("utf-8"))["faults"] if args.output.exists() else []
    rows = {row["name"]: row for row in known}
    wanted = args.only or [one.name for one in faults if one.name not in rows]
    todo = [one for one in faults if one.name in wanted]
    with tempfile.TemporaryDirectory() as folder:
        copies = [copy_tree(Path(folder) / str(i) / "tree") for i in range(args.processes)]
        trees = multiprocessing.Manager().Queue()
        for tree in copies:
            trees.put(tree)
        fork = multiprocessing.get_context("fork")
        preload()
        with ProcessPoolExecutor(args.processes, mp_context=fork) as pool:
            jobs = [pool.submit(work, fault, trees, args.near) for fault in todo]
            for job in as_completed(jobs):
                row = job.result()
                if row["noticed_by"] or not args.near:
                    rows[str(row["name"])] = row
                print(f"{row['name']}: {row['noticed_by'] or 'NOT NOTICED'}", flush=True)
                ordered = [rows[one.name] for one in faults if one.name in rows]
                counts = {
                    "faults": len(ordered),
                    "noticed": sum(one["suite"] is not None for one in ordered),
                    "noticed_by_default_tests": sum(one["suite"] == "default" for one in ordered),
                }
                result = {"machine": describe_machine(), "counts": counts, "faults": ordered}
                write_json(args.output, result, indent=1)


def work(fault: Fault, trees: Any, near: bool) -> dict[str, object]:
    """Try a fault in the tree that is free."""
    tree = trees.get()
    try:
        return try_fault(fault, tree, near)
    finally:
        trees.put(tree)


if __name__ == "__main__":
    main()
