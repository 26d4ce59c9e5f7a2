"""`bioclin overlap`: find the documents of training corpora that hold text of test splits."""

from pathlib import Path
from typing import Annotated

import typer

HEAD = ("training corpus", "documents", "test split", "overlap")


def main(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="TRAIN...", help="Training corpora: .spacy files or folders"),
    ],
    held_out: Annotated[
        list[Path],
        typer.Option(help="Test split: a .spacy file or folder. May be repeated."),
    ],
    list_path: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the ids of the documents to this file, for leave_out"
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Count the documents of each training corpus that overlap with each test split: that share 30
    word 12-grams with it, or 15 % of their own."""
    from ...corpora.overlap.docs import find_overlaps
    from ...corpora.overlap.lists import format_id_list
    from ...outputs import Output
    from ..tables import print_table

    inputs = [*paths, *held_out]
    output = Output(list_path, inputs=inputs, overwrite=overwrite) if list_path else None
    found = find_overlaps(paths, held_out)
    rows = [
        (str(path), f"{overlap.n_docs:,}", str(test), f"{len(ids):,}")
        for path, overlap in found.items()
        for test, ids in overlap.ids.items()
    ]
    print_table(rows, HEAD, right=("documents", "overlap"))
    listed = {id for overlap in found.values() for ids in overlap.ids.values() for id in ids}
    typer.echo(f"{len(listed):,} ids of documents that overlap with a test split")
    if output:
        output.write(format_id_list(listed, f"overlap with {', '.join(map(str, held_out))}"))
        typer.echo(f"They are in {output.path}")
