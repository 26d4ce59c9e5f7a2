"""`bioclin clean-text`: make a corpus for language-model pretraining from raw text."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError
from ...outputs import Output
from ...parallel import show_progress
from ..tables import print_table

UNITS = ("documents", "sentences", "words")


def split_source(argument: str) -> tuple[str, Path]:
    """Split SOURCE=IN; the source is "" where a path is given alone."""
    source, equals, path = argument.partition("=")
    if not equals or Path(argument).exists() or "/" in source:
        return "", Path(argument)
    return source, Path(path)


def main(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="IN...",
            help="Files with a document per line (.txt, .txt.xz, .gz, .bz2), or folders; "
            "SOURCE=IN for all writes the text of each source to files of its own",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the corpus")],
    lang: Annotated[list[str], typer.Option(help="Language to keep: es, en, fr. May be repeated.")],
    against: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder of a test split to keep out. May be repeated."),
    ] = None,
    held_out: Annotated[float, typer.Option(help="Share of the documents to hold out")] = 0.01,
    workers: Annotated[int, typer.Option(help="Number of processes")] = os.cpu_count() or 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Split raw text into sentences, drop noise, repeats, other languages and test splits."""
    from rich.console import Console

    try:
        from ...pretraining.text.cleaning import clean_texts
    except ModuleNotFoundError as error:
        raise BioclinError(
            f"clean-text needs {error.name}: pip install 'spacy-bioclin[pretrain]'"
        ) from None

    named = [split_source(path) for path in paths]
    read = [path for _, path in named]
    inputs = [*read, *(against or ())]
    out = Output(output, inputs=inputs, overwrite=overwrite, marker="report.json", private=True)
    console = Console(stderr=True, highlight=False)
    with out.open_folder() as folder, show_progress(console, "documents") as show:
        report = clean_texts(
            read,
            folder,
            langs=tuple(dict.fromkeys(lang)),
            held_out=held_out,
            sources={path: source for source, path in named if source},
            against=against or (),
            workers=workers,
            on_progress=show,
        )
    rows = {
        "read": report["read"],
        **{f"kept: {name}.txt": counts for name, counts in report["kept"].items()},
        **{f"dropped: {reason}": counts for reason, counts in report["dropped"].items()},
    }
    cells = [(name, *(f"{counts[unit]:,}" for unit in UNITS)) for name, counts in rows.items()]
    print_table(cells, ("", *UNITS), right=UNITS, console=console)
