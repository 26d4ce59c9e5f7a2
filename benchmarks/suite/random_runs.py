"""Run the suite again and again in random order while other processes keep the machine busy.

    python -m benchmarks.suite.random_runs --rounds 5 --busy 4

Each round has a seed of its own; what fails is in benchmarks/results/suite_random.json.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.harness import RESULTS, ROOT, make_parser, read_json, write_result

SUITES = {"default": "not slow and not full", "slow": "slow"}


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep so many processes busy."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_suite(suite: str, seed: int) -> dict[str, object]:
    """Run a suite once. RETURNS (dict): What passed and failed, and the seconds it took."""
    command = [sys.executable, "-m", "pytest", "-p", "benchmarks.suite.shuffle"]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "-p", "no:randomly", "-m", SUITES[suite]],
        cwd=ROOT,
        env={**os.environ, "BIOCLIN_SEED": str(seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {
        word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout)
    }
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    row = {"suite": suite, "seed": seed, "exit_status": done.returncode, "counts": counts}
    return {**row, "failed": failed, "seconds": round(time.monotonic() - started)}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", type=int, default=4, help="processes that keep the machine busy")
    parser.add_argument("--first-seed", type=int, default=0)
    args = parser.parse_args()
    path = RESULTS / "suite_random.json"
    rows = read_json(path)["runs"] if path.exists() else []
    for suite in args.suites:
        for seed in range(args.first_seed, args.first_seed + args.rounds):
            with busy(args.busy):
                row = {**run_suite(suite, seed), "busy": args.busy}
            rows = [one for one in rows if (one["suite"], one["seed"]) != (suite, seed)] + [row]
            print(row, flush=True)
            write_result("suite_random", {"runs": rows})


if __name__ == "__main__":
    main()
