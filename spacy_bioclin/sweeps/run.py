"""Run the trials of a sweep: a grid or a search, in processes or on Ray."""

import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from ..errors import BioclinError
from ..interrupts import tell
from ..outputs import grow_folder
from ..parallel import show_progress
from ..text import show_controls
from .corpora import get_corpora
from .plan import Plan, Search, Trial
from .processes import count_threads, run_processes
from .ray_tasks import run_on_ray, start_ray
from .results import (
    CRASHED,
    REPORT,
    TRIALS,
    Result,
    find_missing,
    get_folder,
    get_value,
    make_result,
    read_results,
    write_result,
)
from .search import Sample, read_samples, run_study
from .trial import make_config, prepare_corpora, run_trial

# Strategy of a search's samples in the tables.
SEARCH = "search"


class Resources(NamedTuple):
    """What trials run on.

    jobs (int): Number of trials that run at the same time.
    gpu_id (int): GPU; -1 for the CPU.
    ray (str | None): Address of Ray; None for processes of this machine.
    """

    jobs: int
    gpu_id: int
    ray: str | None


def run_sweep(plan: Plan, out: Path, resources: Resources | None) -> list[Result]:
    """Run the trials of a plan that have no result yet.

    plan (Plan): A grid or a search. The trials of a search have the strategy "search", and what
        Optuna chose is part of the trial.
    out (Path): Folder of the sweep.
    resources (Resources | None): None to run nothing.
    RETURNS (list[Result]): Results of all trials that have ended.
    RAISES (BioclinError): Another process runs this sweep, the folder holds an input or other
        files, or its results belong to another plan.
    """
    if resources is None:
        return _run(plan, out, None)
    there = [name for name in REPORT if (out / name).exists()]
    if there and not (out / TRIALS).is_dir():
        raise BioclinError(f"{out / there[0]}: is not of a sweep; give another folder with -o")
    inputs = [corpus.path for corpus in plan.tasks.values()]
    inputs += [encoder.path for encoder in plan.encoders.values()]
    inputs += [plan.find_config(plan.find_setup(task).kind) for task in plan.tasks]
    paths = (Path(path) for path in inputs if path)
    tell(lambda: f"trials that have ended are kept in {out}; run the same command again")
    with grow_folder(out, inputs=[path for path in paths if path.exists()]):
        return _run(plan, out, resources)


def _run(plan: Plan, out: Path, resources: Resources | None) -> list[Result]:
    """Run a sweep that no other process runs; see `run_sweep`."""
    if plan.search is not None:
        return [
            result
            for task in plan.tasks
            for encoder in plan.encoders
            for result in _run_search(plan, plan.search, out, resources, task, encoder)
        ]
    trials = plan.list_trials()
    if resources is not None:
        _run_missing(plan, out, trials, resources, "trials")
    return read_results(out, trials)


def _run_search(
    plan: Plan, settings: Search, out: Path, resources: Resources | None, task: str, encoder: str
) -> Iterator[Result]:
    """Search for one task and encoder, and yield the results of all samples."""
    study = f"{task}-{encoder}"
    if resources is not None:
        evaluate = partial(_evaluate_samples, plan, out, resources, task, encoder)
        n_runs = len(plan.seeds) * len(plan.list_folds(task))
        at_once = max(1, resources.jobs // n_runs)
        run_study(plan, settings, out, study, evaluate, at_once=at_once)
    for sample in read_samples(out, study):
        chosen = {"sample": sample.number, "from": sample.strategy, **sample.settings}
        for result in read_results(out, _list_trials(plan, task, encoder, [sample])):
            yield {**result, "trial": {**result["trial"], "strategy": SEARCH, **chosen}}


def _evaluate_samples(
    plan: Plan, out: Path, resources: Resources, task: str, encoder: str, samples: list[Sample]
) -> list[float]:
    """Compute the mean score on dev over the seeds and folds of each sample; runs without a score
    count as 0."""
    strategies = {one.name: {**plan.strategies[one.strategy], **one.settings} for one in samples}
    extended = plan.model_copy(update={"strategies": strategies})
    trials = _list_trials(plan, task, encoder, samples)
    what = f"trials of {task}, {encoder}, up to sample {samples[-1].number + 1}"
    _run_missing(extended, out, trials, resources, what)
    scores: dict[str, list[float]] = {}
    for result in read_results(out, trials):
        score = 0.0 if result["dev"] is None else get_value(result["dev"])
        scores.setdefault(result["trial"]["strategy"], []).append(score)
    return [statistics.fmean(scores[sample.name]) for sample in samples]


def _list_trials(plan: Plan, task: str, encoder: str, samples: Sequence[Sample]) -> list[Trial]:
    return [
        Trial(task, encoder, sample.name, sample.learn_rate, seed, fold)
        for sample in samples
        for seed in plan.seeds
        for fold in plan.list_folds(task)
    ]


def _run_missing(
    plan: Plan, out: Path, trials: list[Trial], resources: Resources, what: str
) -> None:
    """Run trials with a progress bar, and record those whose process died."""
    missing = find_missing(plan, out, trials)
    if not missing:
        return
    for task, fold in dict.fromkeys((trial.task, trial.fold) for trial in missing):
        prepare_corpora(plan, task, out, fold)  # mistakes before hours of work
    for trial in missing:
        make_config(plan, trial, get_corpora(out, trial.task, trial.fold))
    console = Console(stderr=True, highlight=False)
    with show_progress(console, f"of {len(missing)} {what}") as show:
        for n_ended, (trial, exit_code) in enumerate(_start(plan, out, missing, resources), 1):
            results = read_results(out, [trial])
            if exit_code or not results:
                error = f"its process ended with status {exit_code}"
                if exit_code == -9:
                    error += " (killed, most often because memory ran out)"
                results = [make_result(plan, trial, CRASHED, error)]
                write_result(out, results[0])
            show(n_ended / len(missing), n_ended)
            console.print(_describe(out, trial, results[0]), markup=False)


def _start(
    plan: Plan, out: Path, trials: list[Trial], resources: Resources
) -> Iterator[tuple[Trial, int]]:
    """Start trials; see `run_processes` and `run_on_ray`."""
    jobs = resources.jobs
    if resources.ray is None:
        run = partial(run_trial, plan, out, resources.gpu_id, count_threads(jobs))
        return run_processes(trials, run, jobs=jobs, preload=run_trial.__module__)
    threads = start_ray(resources.ray, jobs)
    gpus = int(resources.gpu_id >= 0)  # Ray shows each task its own GPU, as number 0
    run = partial(run_trial, plan, out, gpus - 1, threads)
    return run_on_ray(trials, run, jobs=jobs, threads=threads, gpus=gpus)


def _describe(out: Path, trial: Trial, result: Result) -> str:
    if result["dev"] is None:
        error = show_controls(str(result["error"]))
        return f"{trial.name}: {result['status']}: {error} ({get_folder(out, trial)})"
    return f"{trial.name}: score on dev {100 * get_value(result['dev']):.2f}"
