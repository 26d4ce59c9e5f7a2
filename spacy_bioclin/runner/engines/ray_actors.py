"""Annotate in actors of Ray, on this machine or on a cluster."""

import os
from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import Any

from ...errors import BioclinError
from ...notices import hide_texts
from ...parallel import WorkerDied, answer
from ..parts import Part
from ..work import Done
from .local import map_with_workers

Start = Callable[[], Callable[[Part], Done]]
OBJECT_STORE_BYTES = 2**29  # of Ray on this machine; only the parts in flight are in it


class RayEngine:
    """Annotate in actors of Ray: those of the cluster in RAY_ADDRESS, or of this machine.

    workers (int): Largest number of actors. Work begins when one is there, so that a cluster may
        grow up to it.
    gpu (bool): Give each actor a GPU, or a share of one if there are fewer GPUs than actors.
    RAISES (BioclinError): Ray is not installed or does not answer, or has no GPU.
    """

    name = "ray"
    remedy = (
        "use fewer workers with --processes, and check that each node has spacy-bioclin and the "
        "pipeline"
    )

    def __init__(self, workers: int, *, gpu: bool = False) -> None:
        self.workers, self.gpu = workers, gpu
        self._ray = import_ray()

    def describe(self) -> dict[str, Any]:
        """Describe the engine for the record of a run."""
        return {"name": self.name, "workers": self.workers, "version": self._ray.__version__}

    def map(self, start: Start, parts: Iterable[Part]) -> Iterator[tuple[Part, Done]]:
        """Make parts. See `LocalEngine.map`."""
        ray = self._ray
        was_there = ray.is_initialized()
        if not was_there:
            self._connect()
        try:
            actor = ray.remote(
                num_cpus=1, num_gpus=self._find_share(), max_restarts=0, max_task_retries=0
            )(_Actor)

            def make() -> "_RayWorker":
                return _RayWorker(ray, actor.remote(start))

            yield from map_with_workers(make, self.workers, parts, self.remedy)
        finally:
            if not was_there:
                ray.shutdown()

    def _connect(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = os.environ.get("RAY_ADDRESS")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if not address:
            options |= {
                "num_cpus": self.workers,
                "include_dashboard": False,
                "object_store_memory": OBJECT_STORE_BYTES,
            }
        try:
            self._ray.init(address=address or "local", **options)
        except Exception as error:  # Ray raises many types here, `Exception` itself among them
            where = f"at RAY_ADDRESS={address}" if address else "on this machine"
            raise BioclinError(
                f"--engine ray: Ray does not start or answer {where} ({type(error).__name__}); "
                "start it with `ray start --head`, or use --engine local"
            ) from None

    def _find_share(self) -> float:
        """Find the number of GPUs of an actor.

        RAISES (BioclinError): The cluster has no GPU.
        """
        if not self.gpu:
            return 0.0
        n_gpus = int(self._ray.cluster_resources().get("GPU", 0))
        if not n_gpus:
            raise BioclinError(
                "--gpu-id with --engine ray: no node of Ray has a GPU; add one, or leave --gpu-id "
                "out"
            )
        return 1.0 / ceil(self.workers / n_gpus)


class _Actor:
    """A process of Ray that makes parts."""

    def __init__(self, start: Start) -> None:
        hide_texts()
        self._start = start
        self._make_part: Callable[[Part], Done] | None = None

    def begin(self) -> Exception | None:
        """Load the pipeline.

        RETURNS (Exception | None): Why it failed; Ray would log an exception.
        """
        self._make_part, error = answer(self._start)
        return error

    def make(self, part: Part) -> tuple[Done | None, Exception | None]:
        """Make a part."""
        assert self._make_part is not None
        return answer(self._make_part, part)


class _RayWorker:
    """An actor, as seen from the command."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        if (error := self._get(actor.begin.remote(), starting=True)) is not None:
            self.close()
            raise error

    def work(self, part: Part) -> Done:
        """Make a part.

        RAISES (WorkerDied): The actor died, or its node.
        """
        done, error = self._get(self._actor.make.remote(part), starting=False)
        if error is not None:
            raise error
        made: Done = done
        return made

    def _get(self, reference: Any, *, starting: bool) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            kind = type(error.cause or error).__name__
            raise BioclinError(f"--engine ray: a worker failed with {kind}") from None
        except self._ray.exceptions.RayError:
            raise WorkerDied(starting=starting) from None

    def close(self) -> None:
        """End the actor."""
        self._ray.kill(self._actor)


def import_ray() -> Any:
    """Import Ray.

    RAISES (BioclinError): It is not installed.
    """
    try:
        import ray
    except ImportError:
        raise BioclinError(
            '--engine ray needs Ray: pip install "spacy-bioclin[ray]", or use --engine local'
        ) from None
    return ray
