"""`bioclin train`: `spacy train` with the papers' recipes, that goes on after a kill."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def main(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config file, for instance configs/ner.cfg")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pipelines")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last evaluation of a stopped run")
    ] = False,
    recipe: Annotated[
        str, typer.Option(help="Fine-tune as a paper does; see `bioclin recipes list`")
    ] = "",
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="-1 for the CPU")] = -1,
) -> None:
    """Train the pipeline of CONFIG. Settings are overridden as in `spacy train`:
    --paths.train corpus/train.spacy --training.max_steps 2000. They win over those of the recipe.
    """
    from spacy.cli._util import parse_config_overrides, show_validation_error
    from spacy.training.initialize import init_nlp
    from spacy.util import load_config
    from thinc.api import Config

    from ...catalog.recipes import apply_recipe, find_recipe
    from ...training.epochs import set_updates
    from ...training.loop import LAST, train
    from ..loading import choose_device

    if not config.is_file():
        raise BioclinError(f"{config}: no such file; give a config like configs/ner.cfg")
    if not resume and (output / LAST).exists():
        typer.echo(
            f"{output} holds a pipeline of an earlier run, which this one replaces", err=True
        )
    chosen = find_recipe(recipe) if recipe else None
    choose_device(gpu_id)
    overrides = parse_config_overrides(context.args)
    with show_validation_error(config):
        settings = load_config(config, overrides={} if chosen else overrides, interpolate=False)
        if chosen:
            apply_recipe(settings, chosen)
            settings = Config().from_str(
                settings.to_str(interpolate=False), overrides=overrides, interpolate=False
            )
        nlp = init_nlp(settings, use_gpu=gpu_id)
    set_updates(nlp)
    train(nlp, output, resume=resume, use_gpu=gpu_id, stdout=sys.stdout, stderr=sys.stderr)
    typer.echo(f"The pipeline is in {output / LAST}")
