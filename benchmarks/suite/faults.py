"""Put small faults into the package, one at a time, and ask whether the tests notice.

The faults are in tests/faults/*.yml. Of each, only the tests that run its lines are tried, the
quickest first, until one fails; `benchmarks.suite.record` with BIOCLIN_LINES=1 says which these are:

    BIOCLIN_RECORD=.work/lines BIOCLIN_LINES=1 pytest -p benchmarks.suite.record
    python -m benchmarks.suite.faults .work/lines -o faults.json

A fault that no default test notices is tried on the slow tests of the folder that mirrors its file.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import coverage
import yaml

from benchmarks.harness import ROOT, describe_machine, make_parser, write_json

MAX_SECONDS = 90.0  # of recorded time, of the tests that a fault is tried on
TIMEOUT = 900


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
    faults = [Fault(**row) for path in sorted(folder.glob("*.yml")) for row in _load(path)]
    for fault in faults:
        times = (ROOT / fault.file).read_text("utf-8").count(fault.find)
        if times != 1:
            raise SystemExit(f"fault {fault.name}: its text is {times} times in {fault.file}")
    return faults


def _load(path: Path) -> list[dict[str, str]]:
    return yaml.safe_load(path.read_text("utf-8"))


class Records:
    """What `benchmarks.suite.record` kept: the cost of each test and the lines that it runs."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        for path in folder.glob("*.jsonl"):
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                if row["test"]:
                    self.seconds[row["test"]] = row["seconds"]
        self._data = []
        for path in folder.glob("*.coverage"):
            data = coverage.CoverageData(str(path))
            data.read()
            self._data.append(data)

    def find_tests(self, file: str, lines: range) -> list[str]:
        """List the tests that run one of these lines; of code that runs once, at its import, all
        that run a line of the file. The quickest come first, those of the file's own folder before
        the others."""
        by_line: dict[int, set[str]] = defaultdict(set)
        for data in self._data:
            for path in data.measured_files():
                if path.endswith(file):
                    for line, tests in data.contexts_by_lineno(path).items():
                        by_line[line].update(test for test in tests if test in self.seconds)
        chosen = set().union(*(by_line[line] for line in lines))
        if len(chosen) <= 1:
            chosen = set().union(*by_line.values())
        room = f"tests/{file.split('/')[1]}/"
        return sorted(chosen, key=lambda test: (not test.startswith(room), self.seconds[test]))


def find_lines(text: str, fault: Fault) -> range:
    """Find the lines of the innermost statements that a fault changes."""
    start = text.count("\n", 0, text.index(fault.find)) + 1
    stop = start + fault.find.count("\n") + 1
    if not fault.file.endswith(".py"):
        return range(start, stop)
    first, last = start, stop
    for node in ast.walk(ast.parse(text)):
        simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
        if simple and node.lineno < stop and (node.end_lineno or node.lineno) >= start:
            first, last = min(first, node.lineno), max(last, (node.end_lineno or 0) + 1)
    return range(first, last)


def copy_tree(folder: Path) -> Path:
    """Copy the tracked files; the large ones that no fault changes are links."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, names.split("\0")):
        source, target = ROOT / name, folder / name
        if not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith("assets/") and source.stat().st_size > 1_000_000:
            target.symlink_to(source)
        else:
            shutil.copy2(source, target)
    return folder


def run_tests(tree: Path, tests: Iterable[str], *options: str) -> str | None:
    """Run tests in a tree until one fails. RETURNS (str | None): The one that failed."""
    listed = tree / "tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    data = os.environ.get("BIOCLIN_DATA", str(ROOT.parent / "shared" / "data"))
    environment = {**os.environ, "PYTHONPATH": str(tree), "BIOCLIN_DATA": data}
    for name in ("BIOCLIN_RECORD", "BIOCLIN_LINES"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "-p", "no:randomly", *options, f"@{listed}"],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "a test does not end"
    if done.returncode in (0, 5):
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else done.stdout[-300:]


def cheapest(tests: list[str], seconds: dict[str, float]) -> Iterator[str]:
    """Yield tests as long as there is time for them; at least ten."""
    total = 0.0
    for number, test in enumerate(tests):
        total += seconds[test]
        if total > MAX_SECONDS and number >= 10:
            return
        yield test


def try_fault(fault: Fault, tree: Path, records: Records, slow: bool) -> dict[str, object]:
    """Run the tests with a fault. RETURNS (dict): Its name and the test that noticed it."""
    path = tree / fault.file
    text = path.read_text("utf-8")
    tests = records.find_tests(fault.file, find_lines(text, fault))
    path.write_text(text.replace(fault.find, fault.replace), encoding="utf-8")
    noticed, suite = None, ""
    try:
        if tests:
            noticed = run_tests(tree, cheapest(tests, records.seconds), "-m", "not slow")
            suite = "default"
        mirror = Path("tests", *Path(fault.file).parts[1:-1])
        while not (tree / mirror).is_dir():
            mirror = mirror.parent
        if noticed is None and slow and mirror != Path("tests"):
            noticed, suite = run_tests(tree, [str(mirror)], "-m", "slow"), "slow"
    finally:
        path.write_text(text, encoding="utf-8")
    row = {"name": fault.name, "area": fault.area, "file": fault.file, "wrong": fault.wrong}
    return {**row, "tests": len(tests), "suite": suite if noticed else None, "noticed_by": noticed}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("records", type=Path, help="folder of benchmarks.suite.record")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file")
    parser.add_argument("--only", nargs="+", default=[], help="names of faults")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-slow", action="store_true", help="default tests alone")
    args = parser.parse_args()
    records = Records(args.records)
    faults = read_faults(ROOT / "tests" / "faults")
    known = json.loads(args.output.read_text("utf-8"))["faults"] if args.output.exists() else []
    rows = {row["name"]: row for row in known}
    todo = [one for one in faults if one.name in args.only or (not args.only and one.name not in rows)]
    with tempfile.TemporaryDirectory() as folder:
        trees = [copy_tree(Path(folder) / str(i) / "tree") for i in range(args.processes)]

        def work(fault: Fault) -> dict[str, object]:
            tree = trees.pop()
            try:
                return try_fault(fault, tree, records, not args.no_slow)
            finally:
                trees.append(tree)

        with ThreadPoolExecutor(args.processes) as pool:
            for row in pool.map(work, todo):
                rows[str(row["name"])] = row
                print(f"{row['name']}: {row['noticed_by'] or 'NOT NOTICED'}", flush=True)
                found = sum(one["noticed_by"] is not None for one in rows.values())
                result = {"machine": describe_machine(), "faults_tried": len(rows)}
                ordered = [rows[one.name] for one in faults if one.name in rows]
                write_json(args.output, {**result, "noticed": found, "faults": ordered}, indent=1)
    print(f"{sum(row['noticed_by'] is not None for row in rows.values())} of {len(rows)} noticed")


if __name__ == "__main__":
    main()
