"""`bioclin merge`: corpora that annotate the same notes for different labels, as one corpus."""

from pathlib import Path
from typing import Annotated

import typer


def main(
    paths: Annotated[
        list[Path], typer.Argument(metavar="CORPUS...", help="Corpora: .spacy files or folders")
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="The merged corpus, NAME.spacy")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Merge the annotations of notes that are in several corpora, so that training learns all
    labels of a note at once. Notes of one corpus stay as they are."""
    from spacy.vocab import Vocab

    from ...corpora.docbin import make_docs_output, read_docs, write_docs
    from ...corpora.overlap.merge import merge_docs

    output = make_docs_output(out, inputs=paths, overwrite=overwrite)
    vocab = Vocab()
    docs, n_merged = merge_docs({str(path): read_docs(path, vocab) for path in paths})
    write_docs(docs, output)
    typer.echo(f"{len(docs):,} documents in {out}; {n_merged:,} of them were in several corpora")
