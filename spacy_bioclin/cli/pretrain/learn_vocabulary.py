"""`bioclin learn-vocabulary`: learn a vocabulary for pretraining from a cleaned corpus."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Recipe, Shares, given_options, parse_shares


def main(
    context: typer.Context,
    corpus: Annotated[
        Path, typer.Argument(help="Folder with LANG.train.txt, one sentence per line")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tokenizer")],
    kind: Annotated[str, typer.Option(help="bpe, wordpiece or unigram")] = "bpe",
    size: Annotated[int, typer.Option(help="Largest number of pieces")] = 16384,
    uncased: Annotated[
        bool, typer.Option(help="Ignore case and accents, as BERT's uncased WordPiece")
    ] = False,
    share: Shares = None,
    balance: Annotated[
        bool, typer.Option(help="Repeat small sources until all have the size of the largest")
    ] = False,
    recipe: Recipe = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Learn a vocabulary, and print pieces per word of the held-out text where there is some."""
    from ...catalog.pretraining import find_pretraining
    from ...outputs import Output
    from ...pretraining.text.corpus import find_files, read_in_shares, read_sentences
    from ...pretraining.vocabulary import learn_vocabulary, pieces_per_word

    if recipe is not None:
        known, given = find_pretraining(recipe).vocabulary, given_options(context)
        kind = kind if "kind" in given else known.kind
        size = size if "size" in given else known.size
        uncased = uncased if {"uncased", "kind"} & given else known.uncased
        balance = balance if {"balance", "share"} & given else known.balance
    out = Output(output, inputs=[corpus], overwrite=overwrite, marker="tokenizer.json")
    files = find_files(corpus, "train")
    texts = read_in_shares(files, parse_shares(share), balance=balance)
    tokenizer = learn_vocabulary(texts, size=size, kind=kind, uncased=uncased)
    with out.open_folder() as folder:
        tokenizer.save_pretrained(folder)
    cased = ", uncased" if uncased else ""
    typer.echo(f"{output}: {kind}{cased}, {len(tokenizer)} pieces, learnt from {', '.join(files)}")
    for part, path in find_files(corpus, "held-out").items():
        count = pieces_per_word(tokenizer, read_sentences(path))
        typer.echo(
            f"{part}, held out: {count.per_word:.3f} pieces per word, {count.unknown:.3%} unknown"
        )
