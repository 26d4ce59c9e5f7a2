"""`bioclin init-encoder`: make an encoder with random weights."""

from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError
from .options import Recipe, given_options


def main(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the encoder")],
    corpora: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[CORPUS]...",
            help="Training corpora (.spacy) to learn the vocabulary from, without --tokenizer",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder of `bioclin learn-vocabulary`")
    ] = None,
    kind: Annotated[
        str, typer.Option(help="roberta-prelayernorm, roberta or bert")
    ] = "roberta-prelayernorm",
    vocab_size: Annotated[
        int, typer.Option(help="Largest number of pieces, without --tokenizer")
    ] = 8000,
    layers: Annotated[int, typer.Option(help="Number of layers")] = 4,
    width: Annotated[int, typer.Option(help="Vector size, a multiple of 64")] = 256,
    recipe: Recipe = None,
    seed: Annotated[int, typer.Option(help="Random seed for the weights")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Make an encoder with random weights, with a vocabulary learnt from the training texts, or
    with that of `bioclin learn-vocabulary`."""
    from spacy.vocab import Vocab

    from ...catalog.pretraining import find_pretraining
    from ...corpora.docbin import read_docs
    from ...outputs import Output
    from ...pretraining.architecture import Shape, check_shape, write_encoder
    from ...pretraining.trainer import open_tokenizer
    from ...pretraining.vocabulary import learn_vocabulary

    if bool(corpora) == bool(tokenizer):
        raise BioclinError(
            "init-encoder needs a vocabulary: give either training corpora (.spacy) to learn it "
            "from, or --tokenizer with the folder of `bioclin learn-vocabulary`"
        )
    shape = Shape(kind, layers, width)
    if recipe is not None:
        given = {"kind", "layers", "width"} & given_options(context)
        # Heads and inner width belong to the recipe's width.
        sizes = find_pretraining(recipe).encoder.model_dump()
        if "width" in given:
            sizes |= {"heads": None, "inner": None}
        shape = Shape(**sizes)._replace(**{name: getattr(shape, name) for name in given})
    check_shape(shape)
    inputs = [*(corpora or ()), *([Path(tokenizer)] if tokenizer else ())]
    out = Output(output, inputs=inputs, overwrite=overwrite, marker="config.json")
    if tokenizer:
        pieces = open_tokenizer(tokenizer)
    else:
        texts = (doc.text for corpus in corpora or () for doc in read_docs(corpus, Vocab()))
        pieces = learn_vocabulary(texts, size=vocab_size, kind="bpe")
    with out.open_folder() as folder:
        n_weights = write_encoder(pieces, shape, folder, seed=seed)
    typer.echo(
        f"{output}: {shape.layers} layers of width {shape.width}, "
        f"{n_weights / 1e6:.1f} million weights"
    )
