"""Faults of `bioclin run`: killed, no room, odd rows, two runs; what is lost and what is twice.

    python -m benchmarks.runner.faults [--engines local ray spark] [--moments 10]

Each fault happens to real commands with a tiny pipeline whose component waits at every note. Rows
that are done are kept, and not made again. Writes benchmarks/results/run_faults.json and .html.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, WORK, describe_machine, keep, make_parser, write_result
from spacy_bioclin.outputs import write_atomic
from spacy_bioclin.pages import render_template
from tests.hostile.run.scenes import (
    can_mount,
    disturb_nothing,
    fill_disk,
    kill_run,
    kill_worker,
    limit_files,
    pick_moments,
    read_drift,
    read_odd,
    read_odd_table,
    read_other_schema,
    run_twice,
    turn_clock_back,
)
from tests.hostile.run.stage import Outcome, Stage, is_bad

Row = dict[str, Any]
ENGINES = ("local", "ray", "spark")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--moments", type=int, default=10, help="of which each kills a run")
    parser.add_argument("--notes", type=int, default=2_000)
    measure(parser.parse_args())


def measure(options: argparse.Namespace) -> None:
    """Make all rows of the table."""
    kept = WORK / "run_faults"
    folder = kept / "stage"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stage = Stage(folder, n=options.notes)
    rows = []
    try:
        for name, engine, make in list_faults(stage, options.engines, options.moments):
            print(name, engine, file=sys.stderr, flush=True)
            file = re.sub(r"\W+", "-", f"{name} {engine} {options.notes} {options.moments}")
            found = keep(kept / f"{file}.json", lambda make=make: summarize(make()))
            rows.append({"fault": name, "engine": engine, **found})
    finally:
        stage.end()
    result = {
        "notes": options.notes,
        "quarantined": sum(map(is_bad, range(options.notes))),
        "lost": sum(row["lost"] for row in rows),
        "twice": sum(row["twice"] for row in rows),
        "different": sum(not row["equal"] for row in rows),
        "rows": rows,
    }
    print(write_result("run_faults", result))
    template = Path(__file__).with_name("faults.html.jinja")
    page = render_template(template, machine=describe_machine(), **result)
    write_atomic(RESULTS / "run_faults.html", page)


def list_faults(
    stage: Stage, engines: list[str], n_moments: int
) -> list[tuple[str, str, Callable[[], list[Outcome]]]]:
    """List the faults: name, engine, and the function that makes it happen."""
    faults: list[tuple[str, str, Callable[[], list[Outcome]]]] = []
    for engine in engines:
        needs = {"ray": "ray", "spark": "pyspark"}.get(engine)
        if needs and find_spec(needs) is None:
            print(f"{engine}: {needs} is not installed", file=sys.stderr)
            continue
        faults += [
            ("nothing", engine, lambda engine=engine: [nothing(stage, engine)[0]]),
            (
                f"kill -9 at {n_moments} random moments",
                engine,
                lambda engine=engine: kill_at_moments(stage, engine, n_moments),
            ),
            (
                "kill -9 of a worker",
                engine,
                lambda engine=engine: [kill_worker(stage, "worker", engine=engine)],
            ),
        ]
    if can_mount():
        faults += [
            (
                "disk read-only, then full",
                "local",
                lambda: [fill_disk(stage, "full", kilobytes=stage.size() * 2 // 3)],
            ),
            (
                "disk read-only, then full when the parts are joined",
                "local",
                lambda: [fill_disk(stage, "late", kilobytes=stage.size() * 3 // 2)],
            ),
        ]
    else:
        print("no disk can be mounted here", file=sys.stderr)
    return [
        *faults,
        ("limit of the size of files", "local", lambda: [limit_files(stage, "limit")]),
        ("two runs on one output", "local", lambda: [run_twice(stage, "twice")]),
        ("clock going back", "local", lambda: [turn_clock_back(stage, "clock")]),
        (
            "null, bytes, not UTF-8, 10 MB: JSON lines",
            "local",
            lambda: [read_odd(stage, "odd", megabytes=10)],
        ),
        (
            "null, not UTF-8: Parquet",
            "local",
            lambda: [read_odd_table(stage, "table")],
        ),
        ("schema drift: JSON lines", "local", lambda: [read_drift(stage, "drift")]),
        ("schema drift: Parquet", "local", lambda: [read_other_schema(stage, "schema")]),
    ]


def nothing(stage: Stage, engine: str) -> tuple[Outcome, float]:
    """Run with an engine and disturb nothing."""
    return disturb_nothing(stage, f"nothing-{engine}", engine=engine)


def kill_at_moments(stage: Stage, engine: str, n_moments: int) -> list[Outcome]:
    """Kill runs at random moments, every second one without its workers."""
    _, seconds = nothing(stage, engine)
    return [
        kill_run(stage, "kill", seconds=moment, engine=engine, everything=i % 2 == 0)
        for i, moment in enumerate(pick_moments(seconds, n_moments, engine))
    ]


def summarize(outcomes: list[Outcome]) -> Row:
    """Sum up what came of a fault that happened several times."""
    return {
        "times": len(outcomes),
        "statuses": sorted({", ".join(map(str, one.statuses)) for one in outcomes}),
        "lost": sum(one.lost for one in outcomes),
        "twice": sum(one.twice for one in outcomes),
        "equal": all(one.equal and not one.left for one in outcomes),
        "quarantined": max(one.quarantined for one in outcomes),
        "message": re.sub(r"/\S*/", "", outcomes[0].message),
    }


if __name__ == "__main__":
    main()
