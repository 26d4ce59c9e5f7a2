"""`bioclin sweep`: Train a grid of settings and compare them."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..tables import print_table

if TYPE_CHECKING:
    from ...sweeps.tables import Table


class Layout(StrEnum):
    """Papers whose table layout can be printed."""

    carrino = "carrino"
    lewis = "lewis"
    blue = "blue"
    mulyar = "mulyar"


def main(
    plan: Annotated[Path, typer.Argument(help="YAML file such as configs/sweeps/carrino.yml")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for trials and tables")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Trials to run at the same time")] = 1,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    table: Annotated[
        Layout, typer.Option("--table", "-t", help="Paper whose table layout is printed")
    ] = Layout.carrino,
    against: Annotated[
        str | None,
        typer.Option(help="Model to compare the others with; default: the first in the tables"),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(help="Run on Ray: local, auto (this machine's cluster) or an address"),
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="Apply the section small of PLAN, for a laptop")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Only write the tables of existing results")
    ] = False,
) -> None:
    """Run the trials of PLAN that have no result yet, and print tables of all results. The output
    folder gets report.html, tables.md (with every layout) and summary.json."""
    from ...sweeps.plan import read_plan
    from ...sweeps.report import write_report
    from ...sweeps.run import Resources, run_sweep

    sweep = read_plan(plan, small=small)
    results = run_sweep(sweep, output, None if report_only else Resources(jobs, gpu_id, ray))
    title = f"Sweep {plan.stem}, small" if small else f"Sweep {plan.stem}"
    tables = write_report(title, output, sweep, results, against=against)
    means = ("means",) if table is Layout.lewis else ()
    for name in (table.value, *means, "search", "comparison", "failures"):
        if name in tables:
            _print(tables[name])
    typer.echo(f"The full report is in {output / 'report.html'}")


def _print(table: "Table") -> None:
    from rich.text import Text

    from ...sweeps.tables import OURS

    rows, last = [], ""
    for first, *rest in table.rows:
        cells = ["" if first == last else first, *rest]
        rows.append([Text(cell, style="bold" if OURS in rest else "") for cell in cells])
        last = first
    print_table(rows, table.head, title=table.title)
    if table.note:
        typer.echo(table.note)
