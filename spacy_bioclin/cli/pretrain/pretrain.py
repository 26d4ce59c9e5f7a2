"""`bioclin pretrain`: teach an encoder the language of a cleaned corpus."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import BioclinError
from ...pretraining.settings import PretrainSettings
from ...runs import is_first_process
from .options import Output, Recipe, Resume, Shares, add_options, has_result, parse_shares


def read_recipe(values: dict[str, Any]) -> Mapping[str, Any]:
    """Read the settings of the recipe that is named.

    values (dict[str, Any]): Values of the options `recipe` and `phase`, among others.
    RETURNS (Mapping[str, Any]): Name of a setting -> value; empty without a recipe.
    RAISES (BioclinError): There is no such recipe, or it has no such phase.
    """
    from ...catalog.pretraining import find_pretraining

    name, phase = values["recipe"], values["phase"]
    if name is None:
        if phase != 1:
            raise BioclinError(f"--phase {phase}: only a --recipe has phases")
        return {}
    return find_pretraining(name, phase).phases[phase - 1]


@add_options(PretrainSettings, base=read_recipe)
def main(
    corpus: Annotated[Path, typer.Argument(help="Folder made by `bioclin clean-text`")],
    output: Output,
    settings: PretrainSettings,
    start_from: Annotated[
        str | None,
        typer.Option(help="Encoder to start from, pretrained or made by `bioclin init-encoder`"),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Folder of `bioclin learn-vocabulary`. Default: the encoder's own."),
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Keep only this many of the lowest layers")
    ] = None,
    share: Shares = None,
    resume: Resume = False,
    recipe: Recipe = None,
    phase: Annotated[int, typer.Option(help="Phase of the recipe, from 1")] = 1,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the schedule beside the recipe's; write nothing"),
    ] = False,
    pieces_per_second: Annotated[
        float | None,
        typer.Option(help="Speed for the hours of --dry-run. Default: an upper bound."),
    ] = None,
) -> None:
    """Train an encoder to predict masked pieces, from scratch or continued.

    `torchrun --nproc-per-node 4 -m spacy_bioclin pretrain …` uses four GPUs."""
    settings = replace(settings, shares=parse_shares(share))
    if dry_run:
        from .plans import print_plan

        if is_first_process():
            print_plan(
                corpus,
                settings,
                recipe=recipe,
                phase=phase,
                start_from=start_from,
                pieces_per_second=pieces_per_second,
            )
        return
    if start_from is None:
        named = f" --recipe {recipe}" if recipe else ""
        raise BioclinError(
            "--start-from is missing: name an encoder, or make one from scratch with `bioclin "
            f"init-encoder{named}`"
        )
    from ...pretraining.masked_lm import pretrain

    record = pretrain(
        corpus,
        output,
        start_from=start_from,
        tokenizer=tokenizer,
        layers=layers,
        settings=settings,
        resume=resume,
    )
    if has_result(record):
        typer.echo(f"{output / 'encoder'}: {record['weights'] / 1e6:.1f} million weights")
