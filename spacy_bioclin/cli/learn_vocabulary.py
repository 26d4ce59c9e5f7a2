"""`bioclin learn-vocabulary`: a vocabulary for pretraining, learnt from a cleaned corpus."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import BioclinError


def main(
    corpus: Annotated[
        Path, typer.Argument(help="Folder with LANGUAGE.train.txt, one sentence a line.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the tokenizer.")],
    kind: Annotated[str, typer.Option(help="bpe, wordpiece or unigram.")] = "bpe",
    size: Annotated[int, typer.Option(help="Largest number of pieces.")] = 16384,
    share: Annotated[
        list[str] | None,
        typer.Option(help="LANGUAGE=SHARE of the words learnt from; once each. Default: equal."),
    ] = None,
) -> None:
    """Learn a vocabulary, and print pieces per word of the held-out text where there is some."""
    from ..pretraining.vocabulary import (
        find_languages,
        learn_vocabulary,
        pieces_per_word,
        read_in_shares,
        read_sentences,
    )

    files = find_languages(corpus, "train")
    if not files:
        raise BioclinError(f"{corpus}: holds no LANGUAGE.train.txt, as bioclin clean writes them")
    texts = read_in_shares(files, dict(map(_read_share, share or [])))
    tokenizer = learn_vocabulary(texts, size=size, kind=kind)
    tokenizer.save_pretrained(out)
    typer.echo(f"{out}: {kind}, {len(tokenizer)} pieces, learnt from {', '.join(files)}")
    for lang, path in find_languages(corpus, "held-out").items():
        count = pieces_per_word(tokenizer, read_sentences(path))
        typer.echo(
            f"{lang}, held out: {count.per_word:.3f} pieces per word, {count.unknown:.3%} unknown"
        )


def _read_share(text: str) -> tuple[str, float]:
    """RETURNS (tuple[str, float]): ("es", 0.5) of "es=0.5"."""
    lang, _, number = text.partition("=")
    try:
        return lang, float(number)
    except ValueError:
        raise BioclinError(f"--share {text}: want LANGUAGE=NUMBER, such as es=0.5") from None
