"""`bioclin distill`: train a small encoder to imitate a large one."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...pretraining.settings import PretrainSettings
from .options import Output, Resume, Shares, add_options, has_result, parse_shares


@add_options(PretrainSettings)
def main(
    teacher: Annotated[str, typer.Argument(help="Encoder with its masked-language-model head")],
    corpus: Annotated[Path, typer.Argument(help="Folder made by `bioclin clean-text`")],
    output: Output,
    settings: PretrainSettings,
    layers: Annotated[
        int | None, typer.Option(help="Make the student from this many of the lowest layers")
    ] = None,
    width: Annotated[
        int | None, typer.Option(help="Make a narrower student, with random weights")
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(help="Student, with the teacher's vocabulary. Default: the teacher's layers."),
    ] = None,
    weights: Annotated[
        tuple[float, float, float],
        typer.Option(help="Weights of three losses: text, teacher's scores, teacher's vectors"),
    ] = (5.0, 2.0, 1.0),
    temperature: Annotated[
        float, typer.Option(help="Divisor of the scores of student and teacher")
    ] = 2.0,
    share: Shares = None,
    resume: Resume = False,
) -> None:
    """Train a small encoder to predict masked pieces as TEACHER does.

    `bioclin distill encoders/large clean -o small --layers 3` makes one with three layers.
    `torchrun --nproc-per-node 4 -m spacy_bioclin distill …` uses four GPUs."""
    from ...pretraining.distillation import Objective, distill

    record = distill(
        teacher,
        corpus,
        output,
        start_from=start_from,
        layers=layers,
        width=width,
        objective=Objective(*weights, temperature),
        settings=replace(settings, shares=parse_shares(share)),
        resume=resume,
    )
    if not has_result(record):
        return
    typer.echo(
        f"{output / 'encoder'}: {record['layers']} layers of width {record['width']}, "
        f"{record['weights'] / 1e6:.1f} million weights"
    )
    teachers = record["teacher_perplexity"]
    best = min(record["perplexity"], key=lambda row: math.prod(row[lang] for lang in teachers))
    for lang, perplexity in teachers.items():
        typer.echo(f"{lang}: perplexity {best[lang]:.2f}, the teacher's is {perplexity:.2f}")
