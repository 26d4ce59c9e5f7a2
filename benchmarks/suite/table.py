"""Tabulate what each file of tests costs, and what only its tests run.

    BIOCLIN_RECORD=.work/default pytest -p benchmarks.suite.record
    BIOCLIN_RECORD=.work/slow pytest -p benchmarks.suite.record -m slow
    BIOCLIN_RECORD=.work/lines BIOCLIN_LINES=1 pytest -p benchmarks.suite.record -m "not full"
    python -m benchmarks.suite.table default=.work/default slow=.work/slow --lines .work/lines

Without a file, the lines that only its tests run would go unseen.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from benchmarks.harness import make_parser, write_result


def read_costs(folder: Path) -> tuple[list[float], dict[str, float]]:
    """Read a record. RETURNS (tuple): Seconds to collect in each process, and of each test."""
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    collection = [row["seconds"] for row in rows if not row["test"]]
    return collection, {row["test"]: row["seconds"] for row in rows if row["test"]}


def find_own_lines(folder: Path) -> dict[str, Counter[str]]:
    """Count, by file of tests and module, the lines that the tests of no other file run."""
    import coverage

    files: dict[tuple[str, int], set[str]] = defaultdict(set)
    for path in folder.glob("*.coverage"):
        data = coverage.CoverageData(str(path))
        data.read()
        for module in data.measured_files():
            name = "spacy_bioclin/" + module.rpartition("/spacy_bioclin/")[2]
            for line, tests in data.contexts_by_lineno(module).items():
                files[name, line].update(test.partition("::")[0] for test in tests)
    own: dict[str, Counter[str]] = defaultdict(Counter)
    for (module, _), found in files.items():
        if len(found) == 1:
            own[found.pop()][module] += 1
    return own


def tabulate(folder: Path, own: dict[str, Counter[str]]) -> dict[str, Any]:
    """Make the table of a suite, the dearest file first."""
    collection, costs = read_costs(folder)
    by_file: dict[str, list[float]] = defaultdict(list)
    for test, seconds in costs.items():
        by_file[test.partition("::")[0]].append(seconds)
    rows = []
    for file, seconds in sorted(by_file.items(), key=lambda item: -sum(item[1])):
        row = {"file": file, "tests": len(seconds), "seconds": round(sum(seconds), 2)}
        if own:
            row["lines_that_only_it_runs"] = dict(own[file].most_common(5))
        rows.append(row)
    dearest = sorted(costs.items(), key=lambda item: -item[1])[:20]
    return {
        "tests": len(costs),
        "processor_seconds": round(sum(costs.values()), 1),
        "collection_seconds_of_each_process": sorted(collection)[-2:],
        "dearest": dict(dearest),
        "files": rows,
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("suites", nargs="+", help="NAME=FOLDER of a record")
    parser.add_argument("--lines", type=Path, help="folder of a record with BIOCLIN_LINES=1")
    parser.add_argument("--name", default="suite_costs", help="name of the result")
    args = parser.parse_args()
    own = find_own_lines(args.lines) if args.lines else {}
    suites = dict(suite.split("=", 1) for suite in args.suites)
    result = {name: tabulate(Path(folder), own) for name, folder in suites.items()}
    print(write_result(args.name, result))


if __name__ == "__main__":
    main()
