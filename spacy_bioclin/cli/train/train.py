"""`bioclin train`: `spacy train` with the papers' recipes; resumes if interrupted."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError

AUTO = "auto"
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def main(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config file such as configs/ner.cfg")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pipelines")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted run from its last evaluation")
    ] = False,
    recipe: Annotated[
        str,
        typer.Option(
            help="Fine-tuning recipe of a paper, see `bioclin recipes list`; auto for the config's "
            'settings, where those that are "auto" suit the encoder'
        ),
    ] = AUTO,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the pipelines of OUTPUT")
    ] = False,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
) -> None:
    """Train the pipeline of CONFIG. Override settings as in `spacy train`:
    --paths.train corpus/train.spacy --training.max_steps 2000. They win over the recipe.
    """
    from spacy.cli._util import show_validation_error

    from ...catalog.recipes import find_recipe
    from ...machine import choose_device
    from ...training.auto import settle_settings
    from ...training.epochs import set_updates
    from ...training.initialize import init_pipeline
    from ...training.loop import BEST, LAST, check_new, train
    from .overrides import read_config

    if not config.is_file():
        raise BioclinError(f"{config}: no such file; give a config like configs/ner.cfg")
    if not resume:
        check_new(output, overwrite=overwrite)
    chosen = None if recipe in ("", AUTO) else find_recipe(recipe)
    settings, overrides = read_config(config, context.args, chosen)
    choose_device(gpu_id)
    with show_validation_error(config):
        nlp = init_pipeline(settings, use_gpu=gpu_id)
    sources = dict.fromkeys(chosen.settings if chosen else (), f"recipe {recipe}")
    sources |= dict.fromkeys(overrides, "command line")
    typer.echo("\n".join(settle_settings(nlp, sources)))
    set_updates(nlp)
    train(nlp, output, resume=resume, use_gpu=gpu_id, stdout=sys.stdout, stderr=sys.stderr)
    typer.echo(f"The pipeline is in {output / LAST}")
    if chosen:
        kept = {"best": f"the best on dev, {output / BEST}", "last": f"the last, {output / LAST}"}
        typer.echo(f"Weights that the paper of {recipe} reports: {kept[chosen.keep]}")
