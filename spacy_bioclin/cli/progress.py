"""The bar of long work whose size is known as a share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def show_progress(console: "Console", what: str) -> Iterator[Callable[[float, int], None]]:
    """Show a bar with rate and time left.

    what (str): What is counted ("records").
    YIELDS (Callable): Takes the share that is done, from 0 to 1, and how many were made.
    """
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(f"{{task.fields[n]}} {what}, {{task.fields[rate]}} a second, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=1.0, n=0, rate="?")

        def show(share: float, n: int) -> None:
            elapsed = progress.tasks[bar].elapsed
            rate = f"{n / elapsed:,.1f}" if elapsed else "?"
            progress.update(bar, completed=share, n=f"{n:,}", rate=rate)

        yield show
