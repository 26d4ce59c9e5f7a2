"""Show how far a command has come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def show_progress(console: "Console", what: str) -> Iterator[Callable[..., None]]:
    """Show a bar with the share done, a rate and the time left.

    what (str): What is counted ("records").
    YIELDS (Callable): Sets the bar to a share done, from 0 to 1, the number done so far, and
        perhaps the number of words in these.
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
        TextColumn(f"{{task.fields[n]}} {what}, {{task.fields[rate]}}, left"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("", total=1.0, n=0, rate="?")

        def show(share: float, n: int, words: int | None = None) -> None:
            elapsed = progress.tasks[bar].elapsed
            rate = _format_rate(n / elapsed) if elapsed else "?"
            if elapsed and words is not None:
                rate += f", {words / elapsed:,.0f} words a second"
            progress.update(bar, completed=share, n=f"{n:,}", rate=rate)

        yield show


def _format_rate(per_second: float) -> str:
    """Write a rate in the smallest unit in which it is at least one."""
    units = {"a second": 1, "a minute": 60, "an hour": 3600}
    unit = next((unit for unit, n in units.items() if per_second * n >= 1), "an hour")
    return f"{per_second * units[unit]:,.1f} {unit}"
