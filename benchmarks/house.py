"""Size, shape and start-up time of source trees, measured alike: a table before and after.

    python -m benchmarks.house BEFORE AFTER -o benchmarks/results/house.json

A tree is a checkout with an environment in .venv. house_source.py says what is counted. Times are
medians of processor and wall seconds over --runs fresh processes; the trees take turns. They
include the start of Python itself, which is measured too.
"""

import resource
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, describe_machine, make_parser, write_json
from benchmarks.house_source import PACKAGE, ROOTS, Result, measure_tree

COMMANDS = {
    "python": ["python", "-c", "pass"],
    "import spacy_bioclin": ["python", "-c", "import spacy_bioclin"],
    "bioclin --help": ["python", "-m", "spacy_bioclin", "--help"],
}


def time_command(tree: Path, command: list[str]) -> tuple[float, float]:
    """Measure processor and wall seconds of a fresh process."""
    python = tree / ".venv" / "bin" / command[0]
    began, wall = children_seconds(), time.perf_counter()
    subprocess.run([str(python), *command[1:]], cwd=tree, check=True, capture_output=True)
    return children_seconds() - began, time.perf_counter() - wall


def children_seconds() -> float:
    """Add up the processor time of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_times(trees: dict[str, Path], runs: int) -> Result:
    """Time each command in turns; the first run of each tree is not counted.

    RETURNS (dict): Command -> tree -> median, and the ratio of the medians.
    """
    result: Result = {}
    for name, command in COMMANDS.items():
        found: dict[str, list[tuple[float, float]]] = {tree: [] for tree in trees}
        for n in range(runs + 1):
            for tree in list(trees)[:: -1 if n % 2 else 1]:
                found[tree].append(time_command(trees[tree], command))
        result[name] = {}
        for kind, unit in enumerate(("processor_seconds", "wall_seconds")):
            medians = {
                tree: round(statistics.median(one[kind] for one in times[1:]), 3)
                for tree, times in found.items()
            }
            if len(medians) == 2:
                medians["ratio"] = round(medians["after"] / medians["before"], 3)
            result[name][unit] = medians
    return result


def make_rows(result: Result) -> Iterator[tuple[str, list[Any]]]:
    """List the rows of the table: a name, and a value for each tree."""
    trees = [result[name] for name in ("before", "after") if name in result]

    def row(name: str, *keys: str) -> tuple[str, list[Any]]:
        values = []
        for value in trees:
            for key in keys:
                value = value[key]
            values.append(value)
        return name, values

    for root in ROOTS:
        yield row(f"{root}: files", "lines", root, "files")
        yield row(f"{root}: lines", "lines", root, "lines")
        yield row(f"{root}: code lines", "lines", root, "code_lines")
        yield row(f"{root}: files in the largest folder", "largest_folder", root, "files")
    yield row("imports between rooms: edges", "imports", "edges")
    yield row("imports between rooms: statements", "imports", "statements")
    yield row("repeated blocks of six or more lines", "repeats", "blocks")
    yield row("lines in them", "repeats", "lines")
    for kind in ("sentence", "keyword", "argument", "none"):
        yield row(f"public docstrings: {kind}", "docstrings", "public", kind)
    yield row("private docstrings: keyword", "docstrings", "private", "keyword")
    yield row("help texts that begin with Of", "help", "begin_with_of")
    yield row("lines of the largest file", "largest", PACKAGE, "file", "lines")
    yield row("lines of the largest function", "largest", PACKAGE, "function", "lines")
    yield row("README lines", "readme_lines")
    yield row("pages of docs", "docs_pages")
    for command, times in result["times"].items():
        medians = times["processor_seconds"]
        yield f"{command}, processor s", [medians[n] for n in ("before", "after") if n in medians]
    yield "test suite, s", result.get("test_suite_seconds") or ["", ""]


def main() -> None:
    """Measure the trees, print a table, and write the result."""
    parser = make_parser(__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "house.json")
    parser.add_argument("--runs", type=int, default=7, help="processes for each median")
    parser.add_argument(
        "--suite-seconds",
        type=float,
        nargs="+",
        default=[],
        metavar="SECONDS",
        help="time of the test suite, before and after, measured elsewhere",
    )
    arguments = parser.parse_args()
    trees = {"before": arguments.before.resolve()}
    if arguments.after:
        trees["after"] = arguments.after.resolve()
    result: Result = {name: measure_tree(tree) for name, tree in trees.items()}
    result["times"] = measure_times(trees, arguments.runs)
    result["test_suite_seconds"] = arguments.suite_seconds
    for name, values in make_rows(result):
        print("|", " | ".join([name, *map(str, values)]), "|")
    write_json(arguments.output, {"machine": describe_machine(), **result}, indent=2)


if __name__ == "__main__":
    main()
