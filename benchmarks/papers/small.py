"""Time of the small sweeps of the papers' tables, which docs/papers.md states.

    python -m benchmarks.papers.small mulyar-2020 blue lewis-2020

Each is `bioclin sweep configs/sweeps/NAME.yml --table … --small` from the beginning, on one thread.
Processor time is the figure, because this machine may do other work meanwhile. The result of the
others stays in benchmarks/results/papers_small.json.
"""

import ctypes
import os
import resource
import shutil
import time

from benchmarks.harness import (
    RESULTS,
    WORK,
    data_dir,
    make_parser,
    read_json,
    run_python,
    write_result,
)

# Sweep -> its table. Each is a row of docs/papers.md.
TABLES = {"lewis-2020": "lewis", "mulyar-2020": "mulyar", "blue": "blue"}
RESULT = "papers_small"
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends: the process that starts the trials ends
    after the sweep, and its time would not be counted."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for_orphans() -> None:
    """Wait until every descendant has ended, so that its time is counted."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("sweeps", nargs="+", choices=sorted(TABLES))
    arguments = parser.parse_args()
    os.environ["BIOCLIN_DATA"] = str(data_dir().resolve())  # or the reason why there is none
    committed = RESULTS / f"{RESULT}.json"
    adopt_orphans()
    sweeps = read_json(committed)["sweeps"] if committed.exists() else {}
    for name in arguments.sweeps:
        out = WORK / "papers_small" / name
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter(), _processor_seconds()
        run_python(
            *("-m", "spacy_bioclin", "sweep", f"configs/sweeps/{name}.yml", "-o", out),
            *("--table", TABLES[name], "--small", "--jobs", 1),
            log=out.with_suffix(".log"),
        )
        wait_for_orphans()
        seconds, cpu_seconds = (
            time.perf_counter() - started[0],
            _processor_seconds() - started[1],
        )
        groups = read_json(out / "summary.json")["groups"]
        sweeps[name] = {
            "cpu_minutes": round(cpu_seconds / 60, 1),
            "minutes": round(seconds / 60, 1),
            "trials": sum(group["trials"] for group in groups),
        }
        print(write_result(RESULT, {"sweeps": sweeps}), flush=True)


if __name__ == "__main__":
    main()
