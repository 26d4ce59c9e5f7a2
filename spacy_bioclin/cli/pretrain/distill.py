"""`bioclin distill`: a small encoder learns the language from a large one."""

import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ...pretraining.settings import DEFAULTS, Settings
from .shares import parse_shares


def main(
    teacher: Annotated[str, typer.Argument(help="Encoder with its masked-language-model head.")],
    corpus: Annotated[Path, typer.Argument(help="Folder made by `bioclin clean-text`.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for checkpoints and student.")],
    layers: Annotated[
        int | None, typer.Option(help="Make the student of that many of the lowest layers.")
    ] = None,
    width: Annotated[
        int | None, typer.Option(help="Make a narrower student, with random weights.")
    ] = None,
    start_from: Annotated[
        str | None, typer.Option(help="Student, with the teacher's vocabulary; else the teacher.")
    ] = None,
    weights: Annotated[
        tuple[float, float, float],
        typer.Option(help="Of the text, the teacher's scores and the teacher's vectors."),
    ] = (5.0, 2.0, 1.0),
    temperature: Annotated[float, typer.Option(help="Divides the scores of both.")] = 2.0,
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
    dropout: Annotated[
        float, typer.Option(help="Of the student's hidden layers.")
    ] = DEFAULTS.dropout,
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
    """Train a small encoder to predict masked pieces as TEACHER does.

    `bioclin distill encoders/large clean -o small --layers 3` makes one of three layers.
    `torchrun --nproc-per-node 4 -m spacy_bioclin distill …` uses four GPUs."""
    from ...pretraining.distillation import Objective, distill

    record = distill(
        teacher,
        corpus,
        out,
        start_from=start_from,
        layers=layers,
        width=width,
        objective=Objective(*weights, temperature),
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
    if not int(os.environ.get("RANK", "0")):  # torchrun: one process speaks for all
        _tell(record, out, max_seconds)


def _tell(record: dict[str, Any], out: Path, max_seconds: float) -> None:
    if not record["finished"]:
        typer.echo(f"stopped after {max_seconds:g} s: go on with --resume")
        return
    typer.echo(
        f"{out / 'encoder'}: {record['layers']} layers of width {record['width']}, "
        f"{record['weights'] / 1e6:.1f} million weights"
    )
    teachers = record["teacher_perplexity"]
    best = min(record["perplexity"], key=lambda row: math.prod(row[lang] for lang in teachers))
    for lang, perplexity in teachers.items():
        typer.echo(f"{lang}: perplexity {best[lang]:.2f}, the teacher's is {perplexity:.2f}")
