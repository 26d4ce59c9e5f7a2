"""`bioclin pretrain`: teach an encoder the language of a cleaned corpus."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...pretraining.settings import PretrainSettings
from .options import Output, Resume, Shares, add_options, has_result, parse_shares


@add_options(PretrainSettings)
def main(
    corpus: Annotated[Path, typer.Argument(help="Folder made by `bioclin clean-text`")],
    output: Output,
    start_from: Annotated[
        str,
        typer.Option(help="Encoder to start from, pretrained or made by `bioclin init-encoder`"),
    ],
    settings: PretrainSettings,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Folder of `bioclin learn-vocabulary`. Default: the encoder's own."),
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Keep only this many of the lowest layers")
    ] = None,
    share: Shares = None,
    resume: Resume = False,
) -> None:
    """Train an encoder to predict masked pieces, from scratch or continued.

    `torchrun --nproc-per-node 4 -m spacy_bioclin pretrain …` uses four GPUs."""
    from ...pretraining.masked_lm import pretrain

    record = pretrain(
        corpus,
        output,
        start_from=start_from,
        tokenizer=tokenizer,
        layers=layers,
        settings=replace(settings, shares=parse_shares(share)),
        resume=resume,
    )
    if has_result(record):
        typer.echo(f"{output / 'encoder'}: {record['weights'] / 1e6:.1f} million weights")
