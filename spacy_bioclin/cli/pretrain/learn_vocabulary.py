"""`bioclin learn-vocabulary`: learn a vocabulary for pretraining from a cleaned corpus."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Shares, parse_shares


def main(
    corpus: Annotated[
        Path, typer.Argument(help="Folder with LANG.train.txt, one sentence per line")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tokenizer")],
    kind: Annotated[str, typer.Option(help="bpe, wordpiece or unigram")] = "bpe",
    size: Annotated[int, typer.Option(help="Largest number of pieces")] = 16384,
    share: Shares = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Learn a vocabulary, and print pieces per word of the held-out text where there is some."""
    from ...outputs import Output
    from ...pretraining.text.corpus import find_files, read_in_shares, read_sentences
    from ...pretraining.vocabulary import learn_vocabulary, pieces_per_word

    out = Output(output, inputs=[corpus], overwrite=overwrite, marker="tokenizer.json")
    files = find_files(corpus, "train")
    texts = read_in_shares(files, parse_shares(share))
    tokenizer = learn_vocabulary(texts, size=size, kind=kind)
    with out.open_folder() as folder:
        tokenizer.save_pretrained(folder)
    typer.echo(f"{output}: {kind}, {len(tokenizer)} pieces, learnt from {', '.join(files)}")
    for lang, path in find_files(corpus, "held-out").items():
        count = pieces_per_word(tokenizer, read_sentences(path))
        typer.echo(
            f"{lang}, held out: {count.per_word:.3f} pieces per word, {count.unknown:.3%} unknown"
        )
