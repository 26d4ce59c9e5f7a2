"""`bioclin augment-phi`: add copies of training notes with other people, places and dates."""

from pathlib import Path
from typing import Annotated

import typer

from ..language import shorten_language


def main(
    corpus: Annotated[Path, typer.Argument(help="Gold Docs to train on (.spacy)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Gold Docs and their copies")],
    lang: Annotated[
        str, typer.Option(callback=shorten_language, help="Language of the notes: es or en")
    ],
    copies: Annotated[int, typer.Option(min=1, help="Copies of each note")] = 2,
    layer: Annotated[str, typer.Option(help="Layer of the PHI")] = "phi",
    scheme: Annotated[str, typer.Option(help="Label scheme: meddocan, i2b2 or hipaa")] = "meddocan",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Copy notes with surrogates instead of their PHI. Never augment dev or test."""
    import spacy
    from rich.console import Console

    from ...corpora.docbin import make_docs_output, read_docs, write_docs
    from ...corpora.formats import list_inputs
    from ...deid.augment import make_copies
    from ...deid.labels import check_scheme

    out = make_docs_output(output, inputs=list_inputs("spacy", [corpus]), overwrite=overwrite)
    check_scheme(scheme)
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}})
    docs = list(read_docs(corpus, nlp.vocab))
    more = make_copies(docs, nlp.make_doc, copies=copies, spans_key=layer, lang=lang, scheme=scheme)
    n_docs = write_docs([*docs, *more], out)
    Console(highlight=False).print(f"{n_docs:,} notes written to {output}", markup=False)
