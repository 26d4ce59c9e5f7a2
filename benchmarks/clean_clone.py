"""From a clean clone in a clean environment: the README's commands, timed.

    python -m benchmarks.clean_clone        → benchmarks/results/clean_clone.json
    python -m benchmarks.clean_clone --until note

Clones HEAD of this repository to a temporary folder. Packages come from wherever pip finds them;
their download is in the time of "install". "note" is the README's first block of Python: it loads
the pipeline that ships, and prints a note that is safe to share. Steps that are not run keep the
seconds of the run before.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import (
    RESULTS,
    ROOT,
    data_dir,
    describe_machine,
    make_parser,
    read_json,
    write_result,
)

STEPS = ("clone", "environment", "install", "note", "demo", "test")
TO_FIRST_NOTE = ("clone", "environment", "install", "note")
DEMO, TEST = "python -m spacy project run demo", "pytest"


def main() -> int:
    """Run the steps, and write how long each took."""
    parser = make_parser(__doc__)
    parser.add_argument("--until", choices=STEPS, default=STEPS[-1], help="last step to run")
    until = parser.parse_args().until
    steps = read_steps()
    commit = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "HEAD"], text=True)
    old = RESULTS / "clean_clone.json"
    found = read_json(old) if old.exists() else {}
    result = {key: found[key] for key in ("steps", "tests", "real_corpora") if key in found}
    runs = result.setdefault("steps", {})
    with tempfile.TemporaryDirectory(prefix="clean-clone-") as folder:
        env = environment(Path(folder))
        for name in STEPS[: STEPS.index(until) + 1]:
            print(f"== {name}: {' '.join(steps[name][:4])}", flush=True)
            start = time.perf_counter()
            status, last_line = run(steps[name], Path(folder), env)
            runs[name] = {
                "seconds": round(time.perf_counter() - start, 1),
                "cloned": commit.strip(),
                "cpu": describe_machine()["cpu"],
                "failed": bool(status),
            }
            if name == "test":
                result["tests"], result["real_corpora"] = last_line, "BIOCLIN_DATA" in env
            if status:
                break
    seconds = {name: runs[name]["seconds"] for name in STEPS if name in runs}
    result["seconds_to_first_note"] = round(sum(seconds.get(name, 0) for name in TO_FIRST_NOTE), 1)
    print(f"Written: {write_result('clean_clone', result)}")
    return int(any(one["failed"] for one in runs.values()))


def read_steps() -> dict[str, list[str]]:
    """Read the commands of the steps from README.md, and that of the tests from CONTRIBUTING.md.

    RAISES (SystemExit): One of them is not given.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    commands = [line.partition("#")[0].strip() for line in (*readme, *contributing)]
    for wanted in (DEMO, TEST):
        if wanted not in commands:
            raise SystemExit(f"README.md and CONTRIBUTING.md do not give the command: {wanted}")
    install = next((line for line in commands if line.startswith("pip install")), "")
    if ".whl" not in install:
        raise SystemExit("README.md does not begin with installing a pipeline that ships")
    begin = readme.index("```python") + 1
    note = readme[begin : readme.index("```", begin)]
    return {
        "clone": ["git", "clone", "--quiet", str(ROOT), "."],
        "environment": [sys.executable, "-m", "venv", ".venv"],
        "install": ["python", "-m", *shlex.split(install)],
        "note": ["python", "-c", "\n".join(note)],
        "demo": DEMO.split(),
        "test": TEST.split(),
    }


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
