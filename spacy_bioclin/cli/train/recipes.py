"""`bioclin recipes`: List the papers' recipes; write a config that follows one."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError
from ..tables import AS_JSON, print_json, print_table

NAME = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a recipe; see `bioclin recipes list`")
]


def list_recipes(as_json: AS_JSON = False) -> None:
    """List the recipes with their learning rates, epochs and purpose."""
    from ...catalog.recipes import load_recipes

    recipes = load_recipes()
    if as_json:
        print_json({name: recipe.model_dump() for name, recipe in recipes.items()})
        return
    rows = [
        (name, " ".join(f"{rate:g}" for rate in one.learn_rates), str(one.epochs), one.purpose)
        for name, one in recipes.items()
    ]
    print_table(rows, ("name", "learning rates", "epochs", "for"))
    print_pretraining()
    typer.echo("`bioclin recipes show NAME` shows the source of each setting.")


def print_pretraining() -> None:
    """Print the recipes of `bioclin pretrain`."""
    from ...catalog.pretraining import load_pretraining

    rows = [
        (name, " + ".join(f"{phase['steps']:,}" for phase in one.phases), one.purpose)
        for name, one in load_pretraining().items()
    ]
    print_table(rows, ("name", "steps", "pretrains"))


list_recipes.__name__ = "list"


def show(name: NAME) -> None:
    """Print a recipe with the source of each setting and what contradicts it."""
    from ...catalog.pretraining import get_pretraining_text, load_pretraining
    from ...catalog.recipes import get_recipe_text, load_recipes

    # Fine-tuning and pretraining recipes of a paper may have the same name.
    texts = [get_recipe_text(name)] if name in load_recipes() else []
    if name in load_pretraining():
        texts.append(f"# For `bioclin pretrain`\n{get_pretraining_text(name)}")
    typer.echo("\n\n".join(texts) if texts else get_recipe_text(name))


def write(
    name: NAME,
    config: Annotated[Path, typer.Argument(help="Config file such as configs/ner.cfg")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Config file to write")],
    learn_rate: Annotated[
        float | None, typer.Option(help="Peak learning rate; default: the recipe's")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")] = False,
) -> None:
    """Write a copy of CONFIG with the settings of a recipe, for `bioclin train`, which counts the
    updates in the recipe's epochs."""
    from spacy.util import load_config

    from ...catalog.recipes import apply_recipe, find_recipe, set_learn_rate
    from ...outputs import Output

    out = Output(output, inputs=[config], overwrite=overwrite)
    recipe = find_recipe(name)
    if not config.is_file():
        raise BioclinError(f"{config}: no such file; give a config like configs/ner.cfg")
    settings = load_config(config, interpolate=False)
    apply_recipe(settings, recipe)
    if learn_rate is not None:
        set_learn_rate(settings, learn_rate)
    out.write(settings.to_str(interpolate=False))
    typer.echo(f"Train it with: bioclin train {output} -o training --paths.train …")


COMMANDS: tuple[Callable[..., None], ...] = (list_recipes, show, write)
