"""What this machine has: processor, GPUs, versions."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

CPUINFO = Path("/proc/cpuinfo")  # Linux; elsewhere the processor has no more than its name
FEATURES = {  # what torch can be asked about the processor
    "AVX2": "_is_avx2_supported",
    "AVX512": "_is_avx512_supported",
    "AVX512-VNNI": "_is_vnni_supported",
    "AVX512-BF16": "_is_avx512_bf16_supported",
    "AMX": "_is_amx_tile_supported",
}
LIBRARIES = ("spacy", "spacy-transformers", "thinc", "torch", "transformers", "tokenizers", "numpy")
CUPY = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")


def describe_cpu() -> dict[str, Any]:
    """RETURNS (dict): Name, what torch knows that it can do, whether the system says it has bf16,
    cores, those of them that this process may use, and torch's threads."""
    import torch

    fields = dict(line.split(":", 1) for line in _read_cpuinfo() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    n_cores = os.cpu_count() or 1
    # Two threads of one core multiply no faster than one, so torch starts one a core.
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    physical = known.get("num_physical_cores", n_cores)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_cores
    return {
        "name": fields.get("model name") or platform.processor() or platform.machine(),
        "features": [name for name, probe in FEATURES.items() if getattr(torch.cpu, probe, bool)()],
        "bf16": bool({"amx_bf16", "avx512_bf16"} & set(fields.get("flags", "").split())),
        "cores": n_cores,
        "usable_cores": min(physical, allowed),
        "threads": torch.get_num_threads(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
    }


def _read_cpuinfo() -> list[str]:
    return CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []


def find_gpus() -> list[dict[str, Any]]:
    """RETURNS (list[dict]): The GPUs that torch can use, with memory and compute capability; if
    none, the names of those that the NVIDIA driver lists."""
    import torch

    if torch.cuda.is_available():
        every = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        return [
            {
                "name": gpu.name,
                "memory_gib": round(gpu.total_memory / 2**30, 1),
                "compute_capability": f"{gpu.major}.{gpu.minor}",
            }
            for gpu in every
        ]
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode else [{"name": name} for name in done.stdout.splitlines()]


def find_versions() -> dict[str, str | None]:
    """RETURNS (dict): Of Python, the libraries and torch's CUDA; cupy only if it is installed."""
    import torch

    found = {"python": platform.python_version(), "torch's CUDA": torch.version.cuda}
    for name in ("spacy-bioclin", *LIBRARIES, *CUPY):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
