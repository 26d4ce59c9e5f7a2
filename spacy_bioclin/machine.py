"""Describe this machine and its software, and choose the device to compute on."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BioclinError

if TYPE_CHECKING:
    import torch

CPUINFO = Path("/proc/cpuinfo")  # Linux only; elsewhere just the processor's name is known
FEATURES = {  # name -> function of torch.cpu
    "AVX2": "_is_avx2_supported",
    "AVX512": "_is_avx512_supported",
    "AVX512-VNNI": "_is_vnni_supported",
    "AVX512-BF16": "_is_avx512_bf16_supported",
    "AMX": "_is_amx_tile_supported",
}
LIBRARIES = ("spacy", "spacy-transformers", "thinc", "torch", "transformers", "tokenizers", "numpy")
CUPY = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")


def describe_cpu() -> dict[str, Any]:
    """Describe the processor.

    RETURNS (dict): "name"; "features" that torch detects; "bf16", whether the system reports it;
        "cores"; "usable_cores", the physical ones that this process may use; "threads" of torch;
        and "omp_num_threads", None if not set.
    """
    import torch

    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []
    pairs = (line.partition(":") for line in lines)
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    n_cores = os.cpu_count() or 1
    # Two threads on one core multiply no faster than one, so torch starts one per core.
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


def find_gpus() -> list[dict[str, Any]]:
    """Find the GPUs that torch can use or, if there are none, those that the NVIDIA driver lists.

    RETURNS (list[dict]): "name"; for GPUs that torch can use "memory_gib" and "compute_capability".
    """
    import torch

    if torch.cuda.is_available():
        gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        return [
            {
                "name": gpu.name,
                "memory_gib": round(gpu.total_memory / 2**30, 1),
                "compute_capability": f"{gpu.major}.{gpu.minor}",
            }
            for gpu in gpus
        ]
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode else [{"name": name} for name in done.stdout.splitlines()]


def find_versions() -> dict[str, str]:
    """Find the versions of Python, this package and the libraries that scores depend on.

    RETURNS (dict[str, str]): Name -> version. Libraries that are not installed are left out.
    """
    found = {"python": platform.python_version()}
    for name in ("spacy-bioclin", *LIBRARIES, *CUPY):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def find_commit() -> str | None:
    """Find the git commit of the working directory.

    RETURNS (str | None): Its short hash, with "-dirty" after uncommitted changes; None without git
        or outside of a repository.
    """
    if shutil.which("git") is None:
        return None
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def choose_device(gpu_id: int) -> "torch.device":
    """Choose the device that pipelines loaded from now on compute on.

    gpu_id (int): The GPU; -1 for the CPU.
    RETURNS (torch.device): The device.
    RAISES (BioclinError): There is no such GPU, or torch or cupy cannot use it.
    """
    import spacy
    from thinc.api import get_torch_default_device

    try:
        if gpu_id >= 0:
            spacy.require_gpu(gpu_id)
        return get_torch_default_device()
    # ValueError without cupy, CUDARuntimeError for a wrong id, AssertionError for a CPU build
    except Exception as error:
        raise BioclinError(
            f"--gpu-id {gpu_id}: this GPU cannot be used ({type(error).__name__}); install "
            "spacy-bioclin[cuda12x] and a CUDA build of torch and check the id with nvidia-smi, or "
            "leave --gpu-id out"
        ) from None
