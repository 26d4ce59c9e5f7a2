"""What every result file says about where it was measured."""

import datetime
import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
LIBRARIES = ("spacy", "spacy-transformers", "thinc", "torch", "transformers", "numpy")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    wide = [flag for flag in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if flag in flags]
    return f"{models[0] if models else platform.processor()} ({wide[0] if wide else 'scalar'})"


def _commit() -> str:
    command = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def describe_machine() -> dict[str, Any]:
    """RETURNS (dict): date, processor, cores, Python and library versions, git commit."""
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
        "commit": _commit(),
    }


def data_dir() -> Path:
    """RETURNS (Path): $BIOCLIN_DATA, else ../shared/data beside the checkout."""
    default = ROOT.parent / "shared" / "data"
    return Path(os.environ.get("BIOCLIN_DATA", default))


def write_result(name: str, result: dict[str, Any]) -> Path:
    """Write benchmarks/results/NAME.json atomically, with the machine it was measured on."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    partial = path.with_suffix(".partial")
    text = json.dumps({"machine": describe_machine(), **result}, indent=2, ensure_ascii=False)
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def status_mb(field: str) -> float:
    """RETURNS (float): A size in /proc/self/status, in MB: "VmRSS" (resident memory now) or
    "VmHWM" (its largest value)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024
