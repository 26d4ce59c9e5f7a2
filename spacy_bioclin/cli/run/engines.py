"""Choose the engine of `bioclin run`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BioclinError

if TYPE_CHECKING:
    from ...runner.notes.job import AnnotateJob
    from ...runner.parts import Engine, Part
    from ...runner.work import Done

ENGINES = ("local", "ray", "spark")


def choose_engine(name: str, workers: int, gpu_id: int, *, skip_bad: bool) -> "Engine":
    """Make the engine of a run.

    name (str): "local", "ray" or "spark".
    workers (int): Number of processes.
    gpu_id (int): GPU; -1 for the CPU.
    skip_bad (bool): A note that ends its process must not end the command.
    RAISES (BioclinError): There is no such engine, or it cannot use this GPU.
    """
    from ...runner.engines.local import LocalEngine
    from ...runner.engines.ray_actors import RayEngine
    from ...runner.engines.spark_jobs import SparkEngine

    if name not in ENGINES:
        raise BioclinError(f"--engine {name}: want one of {', '.join(ENGINES)}")
    if name == "local":
        return LocalEngine(workers, apart=skip_bad)
    if gpu_id > 0:
        raise BioclinError(
            f"--gpu-id {gpu_id} with --engine {name}: give --gpu-id 0, for {name} assigns GPUs to "
            "workers"
        )
    make = RayEngine if name == "ray" else SparkEngine
    return make(workers, gpu=gpu_id == 0)


def name_for_workers(pipeline: str) -> str:
    """Name a pipeline so that a worker finds it whose working folder is another."""
    folder = Path(pipeline)
    return str(folder.absolute()) if folder.is_dir() else pipeline


def make_start(
    engine: "Engine", job: "AnnotateJob", pipeline: str, about: dict[str, Any]
) -> "Callable[[], Callable[[Part], Done]]":
    """Make what each worker begins with.

    pipeline (str): Folder or package name of the pipeline.
    about (dict[str, Any]): What the output depends on.
    """
    from ...runner.engines.remote import CheckedStart

    if engine.name == "local":
        return job.start
    return CheckedStart(job.start, pipeline, about["pipeline"]["sha256"], about["versions"])
