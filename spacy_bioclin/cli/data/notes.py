"""Read the notes of a command that takes them in any form."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

Notes = Annotated[
    Path,
    typer.Argument(metavar="IN", help=".txt, .jsonl, .csv, .tsv, .parquet, .spacy, or a folder"),
]
TextColumn = Annotated[str, typer.Option(help="Column with the note")]
IdColumn = Annotated[str | None, typer.Option(help="Column with the note's id")]
Encoding = Annotated[str, typer.Option(help="Encoding of IN, such as cp1252")]
Layers = Annotated[
    list[str] | None,
    typer.Option("--layer", help="Layer of spans: ents, or a key of doc.spans; may be repeated"),
]


def read_notes(
    path: Path, text_column: str, id_column: str | None, encoding: str
) -> list[tuple[str, str]]:
    """Read notes.

    RETURNS (list[tuple[str, str]]): Id and text of each.
    RAISES (BioclinError): A note cannot be read, two have the same id, or there is none.
    """
    from ...runner.columns import Columns
    from ...runner.records import Record
    from ...runner.sources.ids import find_id
    from ...runner.sources.opening import open_notes

    columns = Columns(text=text_column, id=id_column)
    form = open_notes(path, columns, encoding)
    notes: dict[str, str] = {}
    for record in form.read():
        if not isinstance(record, Record):
            raise record.error
        id = find_id(record, form.id_column, columns) or str(record.number)
        if id in notes:
            raise BioclinError(
                f"{path}, {record.place}: an earlier note has the same id; ids must differ, see "
                "--id-column"
            )
        notes[id] = record.row[columns.text]
    if not notes:
        raise BioclinError(f"{path}: no notes in it")
    return list(notes.items())


def check_layers(
    wanted: "Sequence[str] | None", found: "Sequence[str]", console: "Console"
) -> None:
    """Warn of a layer that no note has."""
    for layer in wanted or ():
        if layer not in found:
            there = ", ".join(sorted(found)) or "none"
            console.print(f"warning: no note has the layer {layer}; there are {there}")
