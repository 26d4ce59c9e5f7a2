"""`bioclin init-encoder`: make a small encoder with random weights."""

from pathlib import Path
from typing import Annotated

import typer


def main(
    corpora: Annotated[
        list[Path], typer.Argument(help="Training corpora (.spacy) to learn the vocabulary from")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the encoder")],
    vocab_size: Annotated[int, typer.Option(help="Largest number of pieces")] = 8000,
    layers: Annotated[int, typer.Option(help="Number of layers")] = 4,
    width: Annotated[int, typer.Option(help="Vector size, a multiple of 64")] = 256,
    seed: Annotated[int, typer.Option(help="Random seed for the weights")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Make a small encoder with random weights, and a vocabulary learnt from the training texts."""
    from spacy.vocab import Vocab

    from ...corpora.docbin import read_docs
    from ...outputs import Output
    from ...pretraining.compact import build_compact_encoder

    out = Output(output, inputs=corpora, overwrite=overwrite, marker="config.json")
    texts = (doc.text for corpus in corpora for doc in read_docs(corpus, Vocab()))
    with out.open_folder() as folder:
        n_weights = build_compact_encoder(
            texts, folder, vocab_size=vocab_size, layers=layers, width=width, seed=seed
        )
    typer.echo(f"{output}: {layers} layers of width {width}, {n_weights / 1e6:.1f} million weights")
