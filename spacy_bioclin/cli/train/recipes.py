"""`bioclin recipes`: the fine-tuning recipes of the papers, and a config that follows one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ...errors import BioclinError

NAME = Annotated[str, typer.Argument(metavar="NAME", help="Of `bioclin recipes list`")]


def list_recipes(
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table")] = False,
) -> None:
    """List the recipes: at which learning rates, for how many epochs, what for."""
    from rich.console import Console
    from rich.table import Table

    from ...catalog.recipes import load_recipes

    recipes = load_recipes()
    if as_json:
        everything = {name: recipe._asdict() for name, recipe in recipes.items()}
        typer.echo(json.dumps(everything, indent=2, ensure_ascii=False))
        return
    table = Table("name", "learning rates", "epochs", "for", box=None)
    for name, recipe in recipes.items():
        rates = " ".join(f"{rate:g}" for rate in recipe.learn_rates)
        table.add_row(name, rates, str(recipe.epochs), recipe.purpose)
    Console().print(table)
    typer.echo("`bioclin recipes show NAME` says where each setting of a recipe is from.")


list_recipes.__name__ = "list"


def show(name: NAME) -> None:
    """Print a recipe: each setting, where it is from, and what contradicts it."""
    from ...catalog.recipes import recipe_text

    typer.echo(recipe_text(name))


def write(
    name: NAME,
    config: Annotated[Path, typer.Argument(help="Config file, for instance configs/ner.cfg")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Config file to write")],
    learn_rate: Annotated[
        float | None, typer.Option(help="One rate of the recipe, or another; else its middle one")
    ] = None,
) -> None:
    """Write CONFIG with the settings of a recipe in it, for `bioclin train`, which counts the
    updates of the recipe's epochs."""
    from spacy.util import load_config

    from ...catalog.recipes import apply_recipe, find_recipe, set_learn_rate

    recipe = find_recipe(name)
    if not config.is_file():
        raise BioclinError(f"{config}: no such file; give a config like configs/ner.cfg")
    settings = load_config(config, interpolate=False)
    apply_recipe(settings, recipe)
    if learn_rate is not None:
        set_learn_rate(settings, learn_rate)
    output.parent.mkdir(parents=True, exist_ok=True)
    settings.to_disk(output, interpolate=False)
    typer.echo(f"Train it with: bioclin train {output} -o training --paths.train …")


COMMANDS: tuple[Callable[..., None], ...] = (list_recipes, show, write)
