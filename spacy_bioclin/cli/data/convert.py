"""`bioclin convert`: a corpus into Docs for training, or annotations and Docs into brat."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from rich.console import Console
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...corpora.files import OnError
    from ...corpora.report import LossReport
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
) -> None:
    """Convert a corpus into Docs, and say what became of every span; or into brat files."""
    from rich.console import Console

    from ...catalog.tasks import load_tasks
    from ...corpora.docbin import SUFFIX, write_docs
    from ...corpora.docs import make_gold_doc
    from ...corpora.report import LossReport

    known = load_tasks().get(task)
    console = Console(stderr=True, highlight=False)
    losses = LossReport()
    labels = known.labels if known else {}
    documents = _read(format, paths, labels, console, _on_error(skip_bad, losses, console))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix != SUFFIX:
            n_docs = _write_brat(documents, out)
            console.print(f"{n_docs:,} documents written to {out}", markup=False)
            return
        layers = _parse_layers(layer) if layer else known.layers if known else {"*": "ents"}
        nlp = _make_nlp(lang or (known.lang if known else ""))

        def make_docs() -> Iterator["Doc"]:
            for document in documents:
                yield make_gold_doc(nlp, document, layers=layers, task=task, report=losses)
            losses.write(report or out.with_suffix(".report.json"))
            console.print(losses.to_table())
            losses.check(allow_loss=allow_loss)  # an error here leaves OUT as it was

        write_docs(make_docs(), out)
    except OSError as error:
        raise BioclinError(f"{error.filename or out}: {error.strerror}") from None


def _on_error(skip_bad: bool, losses: "LossReport", console: "Console") -> "OnError":
    def skip(name: str, error: BioclinError) -> None:
        if not skip_bad:
            raise BioclinError(f"{error}; --skip-bad leaves such documents out and counts them")
        losses.add("skipped", Path(name).name)
        console.print(f"skipped: {error}", markup=False)

    return skip


def _read(
    format: str,
    paths: list[Path],
    labels: Mapping[str, str],
    console: "Console",
    on_error: "OnError",
) -> Iterator["AnnotatedText"]:
    """YIELDS (AnnotatedText): The documents, while a progress bar shows rate and time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from ...corpora.formats import FORMATS, find_files, relabel

    if format not in FORMATS:
        raise BioclinError(f"format is {format!r}, want one of {', '.join(FORMATS)}")
    files = find_files(format, paths)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} docs/s, left"),
        TimeRemainingColumn(),
    )
    n_read = n_done = 0
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("documents", total=None, rate="?")
        for n_files, file in enumerate(files, start=1):
            documents = FORMATS[format].read(file, on_error)
            n_read += len(documents)
            # Exact for one document a file and for a single file, else an estimate.
            progress.update(bar, total=max(n_read, round(n_read / n_files * len(files))))
            for document in documents:
                yield relabel(document, labels)
                n_done += 1
                speed = progress.tasks[bar].speed
                progress.update(bar, completed=n_done, rate=f"{speed:,.0f}" if speed else "?")


def _parse_layers(options: Iterable[str]) -> dict[str, str]:
    """Read "phi" as {"*": "phi"} and "DATE=phi" as {"DATE": "phi"}."""
    pairs = (option.rpartition("=") for option in options)
    layers = {label or "*": layer.strip() for label, _, layer in pairs}
    if "" in layers.values():
        raise BioclinError("--layer wants the name of a layer (phi) or LABEL=LAYER (DATE=phi)")
    return layers


def _make_nlp(lang: str) -> "Language":
    """The tokenizer and the sentence splitter that the pipelines use too."""
    import spacy

    if not lang:
        raise BioclinError(
            "the language is not known: give --lang es or --lang en, or the --task of the catalogue"
        )
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    try:
        nlp = spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}})
    except ImportError:
        raise BioclinError(f"--lang is {lang!r}, which is no language of spaCy") from None
    nlp.add_pipe("bioclin_sentences")
    nlp.max_length = 2**31  # spaCy's limit is for its parser, which does not run here
    return nlp


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
