"""How `bioclin sweep` runs its trials: a grid or a search, in processes or on Ray."""

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .ray_tasks import run_on_ray, start_ray
from .search import Sample, read_samples, read_space, search
from .sweep import (
    Plan,
    Trial,
    crashed,
    find_missing,
    read_results,
    run_processes,
    threads_per_job,
    trial_folder,
    write_result,
)
from .trial import find_corpus, make_config, prepare_corpora, run_trial

# The row of the tables that the samples of a search are under.
SEARCH = "search"


class Means(NamedTuple):
    """What trials run on.

    jobs (int): Trials at a time.
    gpu_id (int): -1 for the CPU.
    ray (str | None): Address of Ray; None for processes of this machine.
    """

    jobs: int
    gpu_id: int
    ray: str | None


def run_grid(plan: Plan, output: Path, means: Means | None) -> list[dict[str, Any]]:
    """
    means (Means | None): None to run nothing.
    RETURNS (list[dict]): Results of the trials that have ended.
    """
    trials = plan.trials()
    if means is not None:
        _run_missing(plan, output, trials, means, "Sweep")
    return read_results(output, trials)


def run_search(plan: Plan, output: Path, means: Means | None) -> list[dict[str, Any]]:
    """One study for each task and encoder. A sample is judged by the mean of its seeds on dev;
    a run without a score counts as 0.

    means (Means | None): None to run nothing.
    RETURNS (list[dict]): Results of the trials that have ended; their strategy is "search", and
        what Optuna chose is part of the trial.
    """
    space = read_space(plan.search, plan.learn_rates, list(plan.strategies))
    found = []
    for task in plan.tasks:
        for encoder in plan.encoders:
            study = f"{task}-{encoder}"
            if means is not None:
                judge = partial(_judge, plan, output, means, task, encoder)
                at_once = max(1, means.jobs // len(plan.seeds))
                search(space, output, study, judge, at_once=at_once)
            for sample in read_samples(output, study):
                chosen = {"sample": sample.number, "from": sample.strategy, **sample.settings}
                trials = _trials_of(plan, task, encoder, [sample])
                found += [
                    {**result, "trial": {**result["trial"], "strategy": SEARCH, **chosen}}
                    for result in read_results(output, trials)
                ]
    return found


def _judge(
    plan: Plan, output: Path, means: Means, task: str, encoder: str, samples: list[Sample]
) -> list[float]:
    """RETURNS (list[float]): Mean F1 on dev of each sample, which are run if they were not."""
    settings = {one.name: {**plan.strategies[one.strategy], **one.settings} for one in samples}
    extended = plan._replace(strategies=settings)
    trials = _trials_of(plan, task, encoder, samples)
    said = f"{task}, {encoder}, sample {samples[-1].number + 1} of {plan.search['n_trials']}"
    _run_missing(extended, output, trials, means, said)
    scores: dict[str, list[float]] = {}
    for result in read_results(output, trials):
        dev = 0.0 if result["dev"] is None else result["dev"]["f"]
        scores.setdefault(result["trial"]["strategy"], []).append(dev)
    return [statistics.fmean(scores[sample.name]) for sample in samples]


def _trials_of(plan: Plan, task: str, encoder: str, samples: Sequence[Sample]) -> list[Trial]:
    return [
        Trial(task, encoder, sample.name, sample.learn_rate, seed)
        for sample in samples
        for seed in plan.seeds
    ]


def _run_missing(plan: Plan, output: Path, trials: list[Trial], means: Means, said: str) -> None:
    """Run trials with a bar that counts them, and write down those whose process died."""
    missing = find_missing(plan, output, trials)
    if not missing:
        return
    for task in dict.fromkeys(trial.task for trial in missing):  # mistakes before hours of work
        find_corpus(plan, task)
        prepare_corpora(plan, task, output)
    for trial in missing:
        make_config(plan, trial, output / "corpora" / trial.task)
    console = Console(stderr=True)
    rate = TextColumn("trials, {task.fields[rate]} an hour, left:")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        n_done = len(trials) - len(missing)
        bar = progress.add_task(said, total=len(trials), completed=n_done, rate="?")
        for trial, exit_code in _start(plan, output, missing, means):
            results = read_results(output, [trial])
            if exit_code or not results:
                why = f"its process ended with status {exit_code}"
                if exit_code == -9:
                    why += " (killed; most often for want of memory)"
                results = [crashed(plan, trial, why)]
                write_result(output, results[0])
            speed = progress.tasks[bar].speed
            progress.update(bar, advance=1, rate=f"{3600 * speed:,.0f}" if speed else "?")
            ended = _describe(output, trial, results[0])
            console.print(ended, markup=False, highlight=False)


def _start(plan: Plan, output: Path, missing: list[Trial], means: Means) -> Any:
    """RETURNS (Iterator[tuple[Trial, int]]): See `run_processes` and `run_on_ray`."""
    if means.ray is None:
        threads = threads_per_job(means.jobs)
        run = partial(run_trial, plan, output, means.gpu_id, threads)
        return run_processes(missing, run, jobs=means.jobs, preload=run_trial.__module__)
    threads = start_ray(means.ray, means.jobs)
    gpus = int(means.gpu_id >= 0)  # Ray shows each task its own one, as number 0
    run = partial(run_trial, plan, output, gpus - 1, threads)
    return run_on_ray(missing, run, jobs=means.jobs, threads=threads, gpus=gpus)


def _describe(output: Path, trial: Trial, result: dict[str, Any]) -> str:
    if result["dev"] is None:
        folder = trial_folder(output, trial)
        return f"{trial.name}: {result['status']}: {result['error']} ({folder})"
    return f"{trial.name}: F1 on dev {100 * result['dev']['f']:.2f}"
