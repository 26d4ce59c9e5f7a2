"""From a clean clone in a clean environment: the README's two commands, timed.

    python -m benchmarks.clean_clone        → benchmarks/results/clean_clone.json

Clones HEAD of this repository to a temporary folder. Packages come from wherever pip finds them;
their download is timed apart. The demo's own time is what counts against its five minutes.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import ROOT, data_dir, make_parser, write_result

STEPS = {
    "clone": ["git", "clone", "--quiet", str(ROOT), "."],
    "environment": [sys.executable, "-m", "venv", ".venv"],
    "install": ["python", "-m", "pip", "install", "-q", "-c", "constraints.txt", ".[dev]"],
    "demo": ["python", "-m", "spacy", "project", "run", "demo"],
    "test": ["pytest"],
}
IN_README = ("demo", "test")


def main() -> int:
    """Run the steps, and write how long each took."""
    make_parser(__doc__).parse_args()
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    for name in IN_README:
        if " ".join(STEPS[name]) not in readme:
            raise SystemExit(f"README.md does not give the command of step {name!r}")
    commit = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "HEAD"], text=True)
    with tempfile.TemporaryDirectory(prefix="clean-clone-") as folder:
        env = environment(Path(folder))
        seconds, last_lines, failed = {}, {}, ""
        for name, command in STEPS.items():
            print(f"== {name}: {' '.join(command)}", flush=True)
            start = time.perf_counter()
            status, last_lines[name] = run(command, Path(folder), env)
            seconds[name] = round(time.perf_counter() - start, 1)
            if status:
                failed = name
                break
    result = {
        "cloned": commit.strip(),
        "seconds": seconds,
        "demo_from_clone": round(sum(seconds.get(k, 0) for k in ("clone", "demo")), 1),
        "failed": failed,
        "tests": last_lines.get("test", ""),
        "real_corpora": "BIOCLIN_DATA" in env,
    }
    print(f"Written: {write_result('clean_clone', result)}")
    return 1 if failed else 0


def environment(folder: Path) -> dict[str, str]:
    """Make the environment of an activated .venv, with the real corpora if they are here."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    bin_path = folder / ".venv" / ("Scripts" if os.name == "nt" else "bin")
    kept |= {
        "PATH": f"{bin_path}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(bin_path.parent),
    }
    return {**kept, "BIOCLIN_DATA": str(data_dir().resolve())} if data_dir().is_dir() else kept


def run(command: list[str], folder: Path, env: dict[str, str]) -> tuple[int, str]:
    """Run a step and show its output; return its exit status and last line."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line.strip() or last
    return process.wait(), last


if __name__ == "__main__":
    sys.exit(main())
