"""`bioclin convert`: a corpus into Docs for training, or annotations and Docs into brat."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from ...types import AnnotatedText


def main(
    format: Annotated[
        str, typer.Argument(help="Of IN: brat, columns, pubtator, i2b2, bioc, or spacy (Docs)")
    ],
    paths: Annotated[list[Path], typer.Argument(metavar="IN...", help="Files or folders")],
    out: Annotated[Path, typer.Argument(help="NAME.spacy for Docs, or a folder for brat files")],
    lang: Annotated[str, typer.Option(help="Language of the notes: es, en")] = "",
    task: Annotated[
        str, typer.Option(help="Name of the task; one of the catalogue sets language and layers")
    ] = "",
    layer: Annotated[
        list[str] | None,
        typer.Option(help="Layer for all labels (phi), or for one (DATE=phi); else doc.ents"),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip and count documents that cannot be read")
    ] = False,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Accept more lost spans than 0.1 %")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Loss report as JSON; else NAME.report.json beside OUT")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT and REPORT")] = False,
) -> None:
    """Convert a corpus into Docs, and report what became of every span; or into brat files."""
    from rich.console import Console

    from ...catalog.tasks import load_tasks
    from ...corpora.convert import convert_to_docs, read_corpus
    from ...corpora.docbin import SUFFIX
    from ...parallel import show_progress

    known = load_tasks().get(task)
    labels = known.labels if known else {}
    console = Console(stderr=True, highlight=False)

    def on_skip(error: BioclinError) -> None:
        console.print(f"skipped: {error}", markup=False)

    with show_progress(console, "documents") as on_progress:
        if out.suffix == SUFFIX:
            convert_to_docs(
                format,
                paths,
                out,
                lang=lang or (known.lang if known else ""),
                layers=_parse_layers(layer) if layer else known.layers if known else {"*": "ents"},
                labels=labels,
                task=task,
                skip_bad=skip_bad,
                allow_loss=allow_loss,
                report_path=report,
                on_progress=on_progress,
                on_skip=on_skip,
                on_report=lambda losses: console.print(losses.to_table()),
            )
            return
        on_error = (lambda name, error: on_skip(error)) if skip_bad else _refuse
        documents = read_corpus(
            format, paths, labels=labels, on_error=on_error, on_progress=on_progress
        )
        try:
            n_docs = _write_brat(documents, out)
        except OSError as error:
            raise BioclinError(f"{error.filename or out}: {error.strerror}") from None
    console.print(f"{n_docs:,} documents written to {out}", markup=False)


def _refuse(name: str, error: BioclinError) -> None:
    raise BioclinError(f"{error}; --skip-bad leaves such documents out and counts them")


def _parse_layers(options: Iterable[str]) -> dict[str, str]:
    """Read "phi" as {"*": "phi"} and "DATE=phi" as {"DATE": "phi"}."""
    pairs = (option.rpartition("=") for option in options)
    layers = {label or "*": layer.strip() for label, _, layer in pairs}
    if "" in layers.values():
        raise BioclinError("--layer wants the name of a layer (phi) or LABEL=LAYER (DATE=phi)")
    return layers


def _write_brat(documents: Iterable["AnnotatedText"], folder: Path) -> int:
    """Write ID.txt and ID.ann of each document; an id that comes again gets a number."""
    from ...corpora.brat import write_brat

    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise BioclinError(f"{folder}: not empty; give the name of a new folder for the brat files")
    times: Counter[str] = Counter()
    for document in documents:
        times[document.id] += 1
        if times[document.id] > 1:
            document = document._replace(id=f"{document.id}-{times[document.id]}")
        write_brat(document, folder)
    return times.total()
