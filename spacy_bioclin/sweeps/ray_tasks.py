"""Run trials as tasks of Ray, on this machine or on a cluster."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import BioclinError
from ..notices import call_without_text, hide_texts
from .plan import Trial


def start_ray(address: str, jobs: int) -> int:
    """Connect to Ray.

    address (str): "local" to start Ray on this machine, "auto" for the cluster that this machine
        belongs to, or the address of a cluster.
    jobs (int): Number of trials that run at the same time in the whole cluster.
    RETURNS (int): Processors for each trial.
    RAISES (BioclinError): Ray is not installed, or does not answer at this address.
    """
    ray = _import_ray()
    try:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except Exception as error:  # Ray raises many types here, `Exception` itself among them
        raise BioclinError(
            f"Cannot work with Ray at {address!r} ({error}): start it with `ray start --head`, or "
            "give --ray local"
        ) from None
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // jobs)


def run_on_ray(
    trials: Iterable[Trial], run: Callable[[Trial], None], *, jobs: int, threads: int, gpus: int
) -> Iterator[tuple[Trial, int]]:
    """Run each trial as a task in a process of its own, after `start_ray`.

    All machines of the cluster must share the working folder under the same path.

    trials (Iterable[Trial]): The trials.
    run (Callable): Runs one trial. It must be importable on every machine.
    jobs (int): Number of trials that run at the same time.
    threads, gpus (int): Processors and GPUs that Ray reserves for each trial.
    YIELDS (tuple[Trial, int]): A trial that has ended, and 0, or 1 if it raised an error or its
        process died.
    """
    ray = _import_ray()
    folder = os.getcwd()

    def in_folder(trial: Trial) -> None:
        os.chdir(folder)
        hide_texts()
        call_without_text(run, trial)

    task = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=0, max_calls=1)(in_folder)
    waiting = iter(trials)
    running: dict[Any, Trial] = {}
    try:
        while True:
            while len(running) < jobs and (trial := next(waiting, None)) is not None:
                running[task.remote(trial)] = trial
            if not running:
                return
            [ended], _ = ray.wait(list(running))
            trial = running.pop(ended)
            try:
                ray.get(ended)
                yield trial, 0
            except ray.exceptions.RayError:
                yield trial, 1
    finally:
        for unfinished in running:
            ray.cancel(unfinished, force=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BioclinError(
            "--ray needs Ray: pip install 'spacy-bioclin[ray]', or leave --ray out to run trials "
            "in processes of this machine"
        ) from None
    return ray
