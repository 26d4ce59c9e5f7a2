"""Run the default tests in a fresh environment of each Python version.

    python -m benchmarks.suite.pythons --python python3.12 python3.13 --wheels 3.14

Tests run with the start method of multiprocessing that Python 3.14 has, "forkserver". `--wheels`
asks the package index, for a version that is not here, whether every pin of constraints.txt has a
wheel. benchmarks/results/suite_pythons.json has what was found.
"""

import multiprocessing
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.harness import RESULTS, ROOT, make_parser, read_json, write_result

START_METHOD = "forkserver"
DESCRIBE = "import platform, torch; print(platform.python_version(), torch.__version__)"


def pytest_configure() -> None:
    """Set the start method: this module is also a plugin of pytest."""
    multiprocessing.set_start_method(START_METHOD, force=True)


def make_environment(python: str, folder: Path) -> Path:
    """Install the package and what its tests need. RETURNS (Path): The environment's Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    own = folder / "bin" / "python"
    pip = [own, "-m", "pip", "install", "--quiet", "-c", "constraints.txt", "-e", ".[dev]"]
    subprocess.run(pip, cwd=ROOT, check=True)
    return own


def run_tests(python: Path) -> dict[str, object]:
    """Run the default tests with an interpreter."""
    version, torch = subprocess.check_output([python, "-c", DESCRIBE], text=True).split()
    command = [python, "-m", "pytest", "-p", "benchmarks.suite.pythons"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    failed = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED", "ERROR"))]
    result = {"torch": torch, "start_method": START_METHOD, "tests": lines[-1], "failed": failed}
    return {version: result}


def list_without_wheel(version: str) -> list[str]:
    """List the pins of constraints.txt that have no wheel for a Python version."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line.partition(" ;")[0] for line in lines if line and not line.startswith("#")]

    def is_missing(pin: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet"]
            command += ["--only-binary=:all:", "--python-version", version, "--target", folder, pin]
            return subprocess.run(command, capture_output=True, check=False).returncode != 0

    with ThreadPoolExecutor(4) as pool:
        return [
            pin for pin, missing in zip(pins, pool.map(is_missing, pins), strict=True) if missing
        ]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--python", nargs="*", default=[], help="interpreters to make environments of"
    )
    parser.add_argument("--environment", nargs="*", type=Path, default=[], help="those made before")
    parser.add_argument("--wheels", nargs="*", default=[], help="versions such as 3.14")
    args = parser.parse_args()
    path = RESULTS / "suite_pythons.json"
    known = read_json(path) if path.exists() else {}
    runs, missing = known.get("runs", {}), known.get("pins_without_wheel", {})
    for version in args.wheels:
        missing[version] = list_without_wheel(version)
        write_result("suite_pythons", {"runs": runs, "pins_without_wheel": missing})
    with tempfile.TemporaryDirectory() as folder:
        pythons = [folder / "bin" / "python" for folder in args.environment]
        made = (make_environment(one, Path(folder) / Path(one).name) for one in args.python)
        for python in (*pythons, *made):
            runs |= run_tests(python.absolute())
            print(runs, flush=True)
            write_result("suite_pythons", {"runs": runs, "pins_without_wheel": missing})


if __name__ == "__main__":
    main()
