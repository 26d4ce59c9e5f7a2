"""`bioclin sweep`: a grid of trainings, resumed where it was stopped."""

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ...sweeps.tables import Table


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
    ray: Annotated[
        str | None,
        typer.Option(help="Run on Ray: local, auto (this machine's cluster) or an address"),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing; tables of what there is")
    ] = False,
) -> None:
    """Run the trials of PLAN that have no result yet, and print tables over all of them. The output
    folder gets report.html, tables.md (with every layout) and summary.json."""
    from rich.console import Console

    from ...sweeps.report import write_report
    from ...sweeps.run import Means, run_grid, run_search
    from ...sweeps.sweep import read_plan

    read = read_plan(plan)
    means = None if report_only else Means(jobs, gpu_id, ray)
    results = (run_search if read.search else run_grid)(read, output, means)
    tables = write_report(f"Sweep {plan.stem}", output, read, results, against=against)
    console = Console(width=None if sys.stdout.isatty() else 140)
    for name in (table.value, "search", "comparison", "failures"):
        if name in tables:
            _print(console, tables[name])
    console.print(f"Everything is in {output / 'report.html'}", markup=False, highlight=False)


def _print(console: "Console", table: "Table") -> None:
    from rich.box import SIMPLE
    from rich.table import Table as RichTable
    from rich.text import Text

    from ...sweeps.tables import OURS

    shown = RichTable(title=table.title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in table.head:
        shown.add_column(Text(name), overflow="fold")
    last = ""
    for row in table.rows:
        first = Text("" if row[0] == last else row[0])
        shown.add_row(first, *map(Text, row[1:]), style="bold" if OURS in row else None)
        last = row[0]
    console.print(shown)
    if table.note:
        console.print(table.note, markup=False, highlight=False)
