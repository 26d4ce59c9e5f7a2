"""`bioclin sweep`: a grid of trainings, resumed where it was stopped."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ..training.sweep import Plan, Trial


def main(
    plan: Annotated[
        Path, typer.Argument(help="YAML file, for instance configs/sweeps/carrino.yml")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for trials and tables")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Trials at a time")] = 1,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="-1 for the CPU")] = -1,
) -> None:
    """Run the trials of PLAN that have no result yet, and print tables over all of them."""
    from rich.console import Console

    from ..training.sweep import find_missing, read_plan
    from .trial import find_corpus, make_config, prepare_corpora

    read = read_plan(plan)
    trials = read.trials()
    missing = find_missing(read, output, trials)
    for task in dict.fromkeys(trial.task for trial in missing):
        find_corpus(read, task)
        prepare_corpora(read, task, output)
    for trial in missing:
        make_config(read, trial, output / "corpora" / trial.task)  # mistakes before hours of work
    console = Console(stderr=True)
    _run(read, output, trials, missing, jobs=jobs, gpu_id=gpu_id, console=console)


def _run(
    plan: "Plan",
    output: Path,
    trials: "list[Trial]",
    missing: "Iterable[Trial]",
    *,
    jobs: int,
    gpu_id: int,
    console: "Console",
) -> None:
    """Run trials with a bar that counts them, and write down those whose process died."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    from ..training.sweep import (
        crashed,
        read_results,
        run_processes,
        threads_per_job,
        trial_folder,
        write_result,
    )
    from .trial import run_trial

    run = partial(run_trial, plan, output, gpu_id, threads_per_job(jobs))
    rate = TextColumn("trials, {task.fields[rate]} an hour, left:")
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeLeft()
    missing = list(missing)
    with Progress(*columns, console=console) as progress:
        n_done = len(trials) - len(missing)
        bar = progress.add_task("Sweep", total=len(trials), completed=n_done, rate="?")
        processes = run_processes(missing, run, jobs=jobs, preload=run_trial.__module__)
        for trial, exit_code in processes:
            results = read_results(output, [trial])
            if exit_code or not results:
                why = f"its process ended with status {exit_code}"
                if exit_code == -9:
                    why += " (killed; most often for want of memory)"
                results = [crashed(plan, trial, why)]
                write_result(output, results[0])
            [result] = results
            speed = progress.tasks[bar].speed
            progress.update(bar, advance=1, rate=f"{3600 * speed:,.0f}" if speed else "?")
            if result["dev"] is None:
                folder = trial_folder(output, trial)
                said = f"{trial.name}: {result['status']}: {result['error']} ({folder})"
            else:
                said = f"{trial.name}: F1 on dev {100 * result['dev']['f']:.2f}"
            console.print(said, markup=False, highlight=False)
