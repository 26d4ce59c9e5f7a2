"""What broke, before and after: each case through the real commands of two trees.

    python -m benchmarks.defects.compare BEFORE [AFTER] --list users [--only 11 16]

A list is a folder here, with a module per subject: what broke in users' hands (`users`), and what
an attack found (`attack`). A tree is a checkout with an environment in .venv. A case does what a
user does, in an empty folder, and says whether the tree did what the user expects, and what was
seen. A case that itself fails counts as "does not hold". With --only or --open some cases replace
those in the result file; the others stay.
"""

import importlib
import shutil
import subprocess
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.defects.case import CASES, Case, Seen, Tree
from benchmarks.harness import RESULTS, ROOT, describe_machine, make_parser, read_json, write_result

LISTS = {"users": "defects", "attack": "attack"}  # folder: name of the result file


def import_cases(pattern: str) -> None:
    """Import the modules of cases, which register themselves.

    pattern (str): Glob pattern of the folders.
    """
    here = Path(__file__).parent
    for path in sorted(here.glob(f"{pattern}/*.py")):
        importlib.import_module(f"benchmarks.defects.{path.parent.name}.{path.stem}")


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


def see_both(before: Path, after: Path, case: Case) -> dict[str, Any]:
    """Do one case in two trees.

    RETURNS (dict): The case, and what was seen in each tree.
    """
    row = {"item": case.item, "case": case.name, "says": case.says}
    return {**row, "before": see(case, before), "after": see(case, after)}


def describe_commit(path: Path) -> str:
    command = ["git", "-C", str(path), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--list", choices=sorted(LISTS), default="users", dest="folder")
    parser.add_argument("--only", type=int, nargs="+", metavar="ITEM", default=[])
    parser.add_argument("--case", help="run the case of this name alone and write nothing")
    parser.add_argument("--open", action="store_true", help="cases that are new or did not hold")
    parser.add_argument("--jobs", type=int, default=1, help="cases at the same time")
    arguments = parser.parse_args()
    import_cases(arguments.folder if not arguments.case else "*")
    kept = RESULTS / f"{LISTS[arguments.folder]}.json"
    rows = {row["case"]: row for row in read_json(kept)["cases"]} if kept.exists() else {}
    chosen = [one for one in CASES if not arguments.only or one.item in arguments.only]
    if arguments.open:
        held = {name for name, row in rows.items() if row["after"]["holds"]}
        chosen = [one for one in chosen if one.name not in held]
    if arguments.case:
        chosen = [one for one in CASES if one.name == arguments.case]
    compare = partial(see_both, arguments.before, arguments.after)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for one, row in zip(chosen, pool.map(compare, chosen), strict=True):
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
        LISTS[arguments.folder],
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
