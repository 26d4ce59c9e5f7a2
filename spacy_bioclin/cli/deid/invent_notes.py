"""`bioclin invent-notes`: invent notes with gold PHI, to train a tagger on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..language import shorten_language

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spacy.tokens import Doc


def main(
    output: Annotated[Path, typer.Option("--output", "-o", help="Gold Docs (.spacy)")],
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Language of the notes: es or en")
    ],
    layouts: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[LAYOUTS...]", help="Files or folders; default: the included ones"),
    ] = None,
    number: Annotated[int, typer.Option(min=1, help="Number of notes")] = 2000,
    seed: Annotated[int, typer.Option(help="Random seed")] = 0,
    texts: Annotated[
        list[Path] | None,
        typer.Option(help="Clinical text for {text}, one document a line (.txt, .txt.xz)"),
    ] = None,
    names: Annotated[
        str, typer.Option(help="Names and places: training, or held-out for evaluation")
    ] = "training",
    scheme: Annotated[
        str, typer.Option(help="Label scheme: meddocan, i2b2 or hipaa; default: by language")
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Invent notes with gold PHI from layouts: texts with slots for names, dates and numbers."""
    from rich.console import Console

    from ...corpora.convert import make_nlp
    from ...corpora.docbin import make_docs_output, write_docs
    from ...deid.invented.fillers import read_texts
    from ...deid.invented.layouts import read_layouts
    from ...deid.invented.notes import invent_notes, make_gold_docs
    from ...deid.invented.values import load_values
    from ...deid.labels import check_scheme
    from ...parallel import show_progress

    out = make_docs_output(output, inputs=[*(layouts or []), *(texts or [])], overwrite=overwrite)
    scheme = scheme or ("meddocan" if lang == "es" else "i2b2")
    check_scheme(scheme)
    known = read_layouts(layouts or [], lang)
    values = load_values(lang, names)
    sentences = read_texts(texts or [], values, 10 * number)
    nlp = make_nlp(lang)
    console = Console(stderr=True, highlight=False)
    with show_progress(console, "notes") as show:
        notes = invent_notes(known, lang, number, seed=seed, names=names, texts=sentences)
        docs = make_gold_docs(notes, nlp, scheme=scheme, name=f"invented-{seed}")

        def counted() -> "Iterator[Doc]":
            for n, doc in enumerate(docs, start=1):
                show(n / number, n)
                yield doc

        n_docs = write_docs(counted(), out)
    console.print(f"{n_docs:,} notes of {len(known):,} layouts written to {output}", markup=False)
