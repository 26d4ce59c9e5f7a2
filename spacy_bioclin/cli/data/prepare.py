"""`bioclin prepare`: all splits of a task of the catalogue into Docs for training."""

from pathlib import Path
from typing import Annotated

import typer

from ..language import shorten_language

# Names of the files in a prepared folder, see `Output`.
FILES = r"(train|dev|test)(\.spacy|\.report\.json)|\d{5}\.spacy"


def main(
    task: Annotated[str, typer.Argument(help="Task of the catalogue, see `bioclin tasks`")],
    out: Annotated[
        Path, typer.Argument(help="Folder for train.spacy, dev.spacy, test.spacy and loss reports")
    ],
    fold: Annotated[
        str, typer.Option(help="Fold of a cross-validation; default: the split of the task")
    ] = "",
    lang: Annotated[
        str | None,
        typer.Option(
            callback=shorten_language, help="Language of the notes, for a task that has several"
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT")] = False,
) -> None:
    """Convert the splits of TASK into Docs. Its files are read from BIOCLIN_DATA, a folder of
    corpora, or from assets/downloads."""
    from ...catalog.tasks import check_fold, find_data, find_task
    from ...outputs import Output
    from ...training.corpora import convert_task

    found = find_task(task, lang)
    check_fold(task, found, fold)
    data = find_data(task)
    inputs = [data / path for paths in found.splits.values() for path in paths]
    output = Output(out, inputs=inputs, overwrite=overwrite, only=FILES, private=True)
    with output.open_folder() as folder:
        convert_task(task, found, folder, fold)
    typer.echo(f"{task} is in {out}: train.spacy, dev.spacy, test.spacy")
