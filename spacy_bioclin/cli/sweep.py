"""`bioclin sweep`: a grid of trainings, resumed where it was stopped."""

import sys
from collections.abc import Iterable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ..training.sweep import Plan, Trial
    from ..training.tables import Table


class Layout(str, Enum):
    """Tables of papers."""

    carrino = "carrino"
    lewis = "lewis"
    blue = "blue"


def main(
    plan: Annotated[
        Path, typer.Argument(help="YAML file, for instance configs/sweeps/carrino.yml")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for trials and tables")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Trials at a time")] = 1,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="-1 for the CPU")] = -1,
    table: Annotated[
        Layout, typer.Option("--table", "-t", help="Layout of the paper to print")
    ] = Layout.carrino,
    against: Annotated[
        str | None,
        typer.Option(help="Model to compare with, as the tables name it; else the first"),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing; tables of what there is")
    ] = False,
) -> None:
    """Run the trials of PLAN that have no result yet, and print tables over all of them. The output
    folder gets report.html, tables.md (with every layout) and summary.json."""
    from rich.console import Console

    from ..training.sweep import find_missing, read_plan, read_results
    from .sweep_report import write_report

    read = read_plan(plan)
    trials = read.trials()
    missing = [] if report_only else find_missing(read, output, trials)
    if missing:
        _check(read, output, missing)
        console = Console(stderr=True)
        _run(read, output, trials, missing, jobs=jobs, gpu_id=gpu_id, console=console)
    results = read_results(output, trials)
    tables = write_report(f"Sweep {plan.stem}", output, read, results, against=against)
    console = Console(width=None if sys.stdout.isatty() else 140)
    for name in (table.value, "comparison", "failures"):
        if name in tables:
            _print(console, tables[name])
    console.print(f"Everything is in {output / 'report.html'}", markup=False, highlight=False)


def _check(read: "Plan", output: Path, missing: "list[Trial]") -> None:
    """Find mistakes before hours of work."""
    from .trial import find_corpus, make_config, prepare_corpora

    for task in dict.fromkeys(trial.task for trial in missing):
        find_corpus(read, task)
        prepare_corpora(read, task, output)
    for trial in missing:
        make_config(read, trial, output / "corpora" / trial.task)


def _print(console: "Console", table: "Table") -> None:
    from rich.box import SIMPLE
    from rich.table import Table as RichTable
    from rich.text import Text

    from ..training.tables import OURS

    shown = RichTable(title=table.title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in table.head:
        shown.add_column(Text(name), overflow="fold")
    last = ""
    for row in table.rows:
        first = Text("" if row[0] == last else row[0])
        shown.add_row(first, *map(Text, row[1:]), style="bold" if OURS in row else None)
        last = row[0]
    console.print(shown)
    console.print(table.note, markup=False, highlight=False)


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
