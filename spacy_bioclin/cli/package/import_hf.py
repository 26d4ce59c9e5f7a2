"""`bioclin import-hf`: a Hugging Face token-classification checkpoint into a spaCy pipeline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError
from ..language import shorten_language

if TYPE_CHECKING:
    from spacy.language import Language

    from ...ner.hf.parity import Parity


def main(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="PATH", help="Folder with config.json, weights, tokenizer")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pipeline")],
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Language of the notes: es, en or fr")
    ] = "es",
    aggregation: Annotated[
        str, typer.Option(help="How pieces become entities: simple, first, average or max")
    ] = "simple",
    spans_key: Annotated[
        str | None, typer.Option(help='Write to doc.spans[KEY], e.g. "phi", not to doc.ents')
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels, one a line in the order of their ids")
    ] = None,
    precision: Annotated[
        str, typer.Option(help='Stored in the pipeline. "auto" is faster and rounds scores')
    ] = "fp32",
    check: Annotated[
        list[Path] | None,
        typer.Option(metavar="TEXTS", help="Compare with transformers on a .txt or a folder"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Make a spaCy pipeline that finds what a fine-tuned checkpoint finds."""
    from ...ner.hf.checkpoint import make_pipeline, open_checkpoint
    from ...ner.hf.parity import compare_with_transformers
    from ...outputs import Output
    from ...vocab import save_pipeline
    from ..run.annotate import find_texts

    files = find_texts(check or []).values()
    inputs = [checkpoint, *files]
    out = Output(output, inputs=inputs, overwrite=overwrite, marker="config.cfg")
    names = read_labels(labels) if labels else None
    found = open_checkpoint(checkpoint, names)
    nlp = make_pipeline(
        found, lang=lang, aggregation=aggregation, spans_key=spans_key, precision=precision
    )
    with out.open_folder() as folder:
        save_pipeline(nlp, folder)
    typer.echo(describe(nlp, output, found.scheme))
    if files:
        from ...corpora.files import read_text

        again = open_checkpoint(checkpoint, names)
        report(compare_with_transformers(nlp, again, map(read_text, files)))


def read_labels(path: Path) -> list[str]:
    """Read labels, one a line.

    RAISES (BioclinError): The file cannot be read, or has an empty line between others.
    """
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8").rstrip().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise BioclinError(
            f"--labels {path}: cannot be read as UTF-8 ({type(error).__name__})"
        ) from None
    if "" in names or not names:
        line = names.index("") + 1 if names else 1
        raise BioclinError(f"--labels {path}: line {line} is empty; want one label a line")
    return names


def describe(nlp: "Language", output: Path, scheme: str) -> str:
    """Say which labels the pipeline finds, and where it is."""
    labels = ", ".join(nlp.pipe_labels["ner"])
    note = {
        "BIO": "",
        "IO": "The labels have no B- and I-: adjacent words of one label are one entity.\n",
    }.get(
        scheme,
        f"The labels are in {scheme} and are read as B- and I-. transformers itself does not do "
        "that: it splits such an entity into several.\n",
    )
    return f"{note}The pipeline is in {output}: {labels}"


def report(parity: "Parity") -> None:
    """Print the comparison. RAISES (BioclinError): The pipelines differ."""
    if parity.texts:
        typer.echo(
            f"{parity.texts:,} texts that fit one window: transformers finds "
            f"{parity.entities:,} entities, {parity.different:,} of them or of ours differ; "
            f"scores differ by {parity.worst:.1g} at most. "
            f"{parity.widened:,} ended inside a token and were widened to it, which joined "
            f"{parity.joined:,} with others"
        )
    if parity.long_texts:
        typer.echo(
            f"{parity.long_texts:,} longer texts: transformers, in overlapping windows, finds "
            f"{parity.long_entities:,} entities, ours {parity.long_ours:,}, in windows that end "
            f"with sentences; {parity.long_same:,} are the same"
        )
    if parity.different:
        raise BioclinError(
            f"{parity.different:,} entities differ from those of transformers; with --precision "
            "other than fp32 scores are rounded, else please report it"
        )
