"""Time of the small sweeps of the papers' tables, which docs/papers.md states.

    python -m benchmarks.papers.small mulyar-2020 blue lewis-2020

Each is `bioclin sweep configs/sweeps/NAME.yml --table … --small` from the beginning, on one thread.
Processor time is the figure, because this machine may do other work meanwhile. The result of the
others stays in benchmarks/results/papers_small.json.
"""

import os
import shutil

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


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("sweeps", nargs="+", choices=sorted(TABLES))
    arguments = parser.parse_args()
    os.environ["BIOCLIN_DATA"] = str(data_dir().resolve())  # or the reason why there is none
    committed = RESULTS / f"{RESULT}.json"
    sweeps = read_json(committed)["sweeps"] if committed.exists() else {}
    for name in arguments.sweeps:
        out = WORK / "papers_small" / name
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        usage = run_python(
            *("-m", "spacy_bioclin", "sweep", f"configs/sweeps/{name}.yml", "-o", out),
            *("--table", TABLES[name], "--small", "--jobs", 1),
            log=out.with_suffix(".log"),
        )
        groups = read_json(out / "summary.json")["groups"]
        sweeps[name] = {
            "cpu_minutes": round(usage.cpu_seconds / 60, 1),
            "minutes": round(usage.seconds / 60, 1),
            "peak_memory_mb": round(usage.peak_memory_mb),
            "trials": sum(group["trials"] for group in groups),
        }
        print(write_result(RESULT, {"sweeps": sweeps}), flush=True)


if __name__ == "__main__":
    main()
