"""Print tables and JSON the same way in every command."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

AS_JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")]
PIPE_WIDTH = 140  # characters of a line where the output is not a terminal


def print_table(
    rows: "Iterable[Sequence[str | Text]]",
    head: Sequence[str] = (),
    *,
    title: str = "",
    right: Collection[str] = (),
    footer: Sequence[str] = (),
    console: "Console | None" = None,
) -> None:
    """Print a table.

    rows (Iterable[Sequence[str | Text]]): The cells. A string is printed as it is, without markup.
    head (Sequence[str]): Names of the columns; none for a table of names and values.
    title (str): A line above the table.
    right (Collection[str]): Columns of numbers, which are aligned to the right.
    footer (Sequence[str]): The last row, below a line.
    console (Console | None): Where to print; None for stdout.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PIPE_WIDTH)
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_header=bool(head),
        show_footer=bool(footer),
    )
    for i, name in enumerate(head or ("", "")):
        table.add_column(
            Text(name),
            Text(footer[i] if footer else ""),
            justify="right" if name in right else "left",
            no_wrap=i == 0 or name in right,
            overflow="fold",
        )
    for row in rows:
        # Names come from files, and a terminal obeys control characters.
        texts = (Text(cell) if isinstance(cell, str) else cell for cell in row)
        table.add_row(*(_show(text) for text in texts))
    console.print(table)


def _show(text: "Text") -> "Text":
    from ..text import show_controls

    if show_controls(text.plain) != text.plain:
        text.plain = show_controls(text.plain)
    return text


def print_json(content: Any) -> None:
    """Print a value as JSON on stdout."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
