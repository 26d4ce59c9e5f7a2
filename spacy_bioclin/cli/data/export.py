"""`bioclin export`: notes with what a pipeline finds in them, for an annotation tool."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError
from . import notes as given

if TYPE_CHECKING:
    from rich.console import Console
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...types import AnnotatedText

TOOLS = ("label-studio", "doccano", "prodigy", "inception", "brat")


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    source: given.Notes,
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="NAME.jsonl for doccano, prodigy; else a folder"),
    ],
    to: Annotated[str, typer.Option(help=f"Annotation tool: {', '.join(TOOLS)}")],
    layer: given.Layers = None,
    only: Annotated[
        Path | None, typer.Option(help="Only the notes in this list of `bioclin suggest`")
    ] = None,
    text_column: given.TextColumn = "text",
    id_column: given.IdColumn = None,
    encoding: given.Encoding = "utf-8",
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT")] = False,
) -> None:
    """Annotate notes, and write them for an annotation tool, where annotators correct them.

    `bioclin convert` reads what comes back.
    """
    from rich.console import Console

    from ...corpora.export import make_corpus_output, write_corpus
    from ..loading import list_pipeline, load_pipeline

    if to not in TOOLS:
        raise BioclinError(f"--to is {to!r}, want one of {', '.join(TOOLS)}")
    inputs = [*list_pipeline(pipeline), source, *([only] if only else [])]
    output = make_corpus_output(out, to, inputs=inputs, overwrite=overwrite)
    texts = given.read_notes(source, text_column, id_column, encoding)
    if only is not None:
        wanted = read_ids(only)
        by_id = dict(texts)
        if missing := [id for id in wanted if id not in by_id]:
            raise BioclinError(
                f"{only}: {len(missing):,} of its {len(wanted):,} notes are not in {source}; give "
                "the notes that the list was made of"
            )
        texts = [(id, by_id[id]) for id in wanted]
    console = Console(stderr=True, highlight=False)
    nlp = load_pipeline(pipeline, gpu_id=gpu_id, precision=precision)
    documents = _annotate(nlp, texts, layer or [], console)
    n_docs, lost = write_corpus(documents, output, to, allow_loss=True)
    console.print(f"{n_docs:,} notes written to {out}", markup=False)
    for kind, n in sorted(lost.items()):
        console.print(f"left out, for {to} cannot hold them: {n:,} {kind}", markup=False)


def read_ids(path: Path) -> list[str]:
    """Read the ids of a list of `bioclin suggest`, in its order.

    RAISES (BioclinError): It is not such a list.
    """
    from ...corpora.files import read_text

    try:
        rows = [json.loads(line) for line in read_text(path).split("\n") if line.strip()]
        return list(dict.fromkeys(str(row["id"]) for row in rows))
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, BioclinError):
            raise
        raise BioclinError(f"{path}: is not a list of `bioclin suggest`") from None


def _annotate(
    nlp: "Language", texts: list[tuple[str, str]], layers: list[str], console: "Console"
) -> "Iterator[AnnotatedText]":
    """Annotate notes in order, while a bar shows how far it is."""
    from ...parallel import show_progress
    from ...runner.memory import map_docs
    from ...runner.notes.preannotate import preannotate

    n_done, found = 0, set[str]()
    with show_progress(console, "notes") as show:

        def read(doc: "Doc", id: str) -> "AnnotatedText":
            found.update(("ents", *doc.spans))
            return preannotate(doc, id, layers)

        for document in map_docs(nlp, ((text, id) for id, text in texts), read):
            yield document
            n_done += 1
            show(n_done / len(texts), n_done)
    given.check_layers(layers, sorted(found), console)
