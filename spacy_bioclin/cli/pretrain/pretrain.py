"""`bioclin pretrain`: teach an encoder the language of a cleaned corpus."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ...pretraining.settings import DEFAULTS, Settings
from .shares import parse_shares


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder made by `bioclin clean-text`.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for checkpoints and encoder.")],
    start_from: Annotated[
        str, typer.Option(help="Encoder to start from: a pretrained one, or one of init-encoder.")
    ],
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Folder of `bioclin learn-vocabulary`; else the encoder's own."),
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Keep only that many of the lowest layers.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Updates.")] = DEFAULTS.steps,
    batch_pieces: Annotated[int, typer.Option(help="Pieces of an update.")] = DEFAULTS.batch_pieces,
    length: Annotated[int, typer.Option(help="Pieces read at once.")] = DEFAULTS.length,
    learn_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = DEFAULTS.learn_rate,
    mask_rate: Annotated[float, typer.Option(help="Share to predict.")] = DEFAULTS.mask_rate,
    whole_words: Annotated[
        bool, typer.Option(help="Mask words instead of pieces.")
    ] = DEFAULTS.whole_words,
    share: Annotated[
        list[str] | None,
        typer.Option(help="LANG=SHARE of the training text, once a language; else equal shares."),
    ] = None,
    dropout: Annotated[float, typer.Option(help="Of the hidden layers.")] = DEFAULTS.dropout,
    every: Annotated[
        int, typer.Option(help="Updates between evaluations and checkpoints.")
    ] = DEFAULTS.every,
    precision: Annotated[str, typer.Option(help="auto, bf16, fp16 or fp32.")] = DEFAULTS.precision,
    seed: Annotated[int, typer.Option(help="Of order, masks and new weights.")] = DEFAULTS.seed,
    max_seconds: Annotated[
        float, typer.Option(help="Stop with a checkpoint; 0: never.")
    ] = DEFAULTS.max_seconds,
    resume: Annotated[bool, typer.Option(help="Go on from the last checkpoint.")] = False,
) -> None:
    """Train an encoder to predict masked pieces, from scratch or continued.

    `torchrun --nproc-per-node 4 -m spacy_bioclin pretrain …` uses four GPUs."""
    from ...pretraining.masked_lm import pretrain

    record = pretrain(
        corpus,
        out,
        start_from=start_from,
        tokenizer=tokenizer,
        layers=layers,
        settings=Settings(
            steps=steps,
            batch_pieces=batch_pieces,
            length=length,
            learn_rate=learn_rate,
            mask_rate=mask_rate,
            whole_words=whole_words,
            shares=parse_shares(share or []),
            dropout=dropout,
            every=every,
            precision=precision,
            seed=seed,
            max_seconds=max_seconds,
        ),
        resume=resume,
    )
    if int(os.environ.get("RANK", "0")):  # torchrun: one process speaks for all
        return
    if record["finished"]:
        typer.echo(f"{out / 'encoder'}: {record['weights'] / 1e6:.1f} million weights")
    else:
        typer.echo(f"stopped after {max_seconds:g} s: go on with --resume")
