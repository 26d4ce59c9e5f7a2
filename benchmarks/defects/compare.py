"""What broke in users' hands, before and after: each case through the real commands of two trees.

    python -m benchmarks.defects.compare BEFORE [AFTER] [--only 11 16]

A tree is a checkout with an environment in .venv. A case does what a user does, in an empty folder,
and says whether the tree did what the user expects, and what was seen. Cases are in the other
modules of this folder, by subject. A case that itself fails counts as "does not hold". With --only
the cases of these items replace those in the result file; the others stay.
"""

import importlib
import shutil
import subprocess
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.defects.case import CASES, Case, Seen, Tree
from benchmarks.harness import RESULTS, ROOT, describe_machine, make_parser, read_json, write_result

SUBJECTS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "case", "compare")
)


def see(case: Case, path: Path) -> dict[str, Any]:
    """Do one case in one tree.

    RETURNS (dict): Whether it holds, what was seen, seconds.
    """
    folder = Path(tempfile.mkdtemp(prefix="defects-"))
    began = time.perf_counter()
    try:
        seen = case.see(Tree(path, folder))
    except Exception as error:
        traceback.print_exc()
        seen = Seen(False, f"the case failed: {type(error).__name__}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "holds": seen.holds,
        "seen": seen.value,
        "seconds": round(time.perf_counter() - began, 1),
    }


def describe_commit(path: Path) -> str:
    command = ["git", "-C", str(path), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--only", type=int, nargs="+", metavar="ITEM", default=[])
    parser.add_argument("--case", help="run the case of this name alone and write nothing")
    arguments = parser.parse_args()
    for subject in SUBJECTS:
        importlib.import_module(f"benchmarks.defects.{subject}")
    kept = RESULTS / "defects.json"
    rows = {row["case"]: row for row in read_json(kept)["cases"]} if kept.exists() else {}
    chosen = [one for one in CASES if not arguments.only or one.item in arguments.only]
    if arguments.case:
        chosen = [one for one in CASES if one.name == arguments.case]
    for one in chosen:
        row = {"item": one.item, "case": one.name, "says": one.says}
        row["before"] = see(one, arguments.before)
        row["after"] = see(one, arguments.after)
        rows[one.name] = row
        marks = ["holds" if row[side]["holds"] else "FAILS" for side in ("before", "after")]
        print(f"{one.item:3} {one.name:50} {marks[0]} → {marks[1]}", flush=True)
        if arguments.case:
            print(row)
    if arguments.case:
        return
    known = {one.name for one in CASES}
    cases = sorted(
        (row for name, row in rows.items() if name in known), key=lambda row: row["item"]
    )
    write_result(
        "defects",
        {
            "machine": describe_machine(),
            "before": describe_commit(arguments.before),
            "after": describe_commit(arguments.after),
            "items": sorted({row["item"] for row in cases}),
            "held_before": sum(row["before"]["holds"] for row in cases),
            "held_after": sum(row["after"]["holds"] for row in cases),
            "n_cases": len(cases),
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
