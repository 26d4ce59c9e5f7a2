"""The fine-tuning recipes of `recipes.yml`, and how they change a config."""

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from pydantic import Field
from thinc.api import Config

from ..errors import BioclinError
from ..settings import Settings, read_settings, read_yaml

RECIPES = Path(__file__).with_name("recipes.yml")
# Section of a fine-tuning strategy in a config; all its settings have defaults.
STRATEGY = "components.transformer.model.strategy"
RATES = ("initial_rate", "rate")  # names of the highest rate in schedules


class Recipe(Settings):
    """How a paper fine-tunes an encoder.

    paper (str): The paper.
    purpose (str): What the paper used it for.
    epochs (int): Passes over the training corpus.
    learn_rates (list[float]): The rates that the paper searched, or its one rate.
    settings (dict[str, Any]): Path in the config -> value; a section is replaced as a whole.
    """

    paper: str
    purpose: str = Field(alias="for")
    epochs: int
    learn_rates: list[float]
    settings: dict[str, Any]

    @property
    def learn_rate(self) -> float:
        """The middle one of the rates that the paper searched."""
        return self.learn_rates[len(self.learn_rates) // 2]


def load_recipes() -> dict[str, Recipe]:
    """Read the recipes of the catalogue by name."""
    return {
        name: read_settings(Recipe, fields, where=f"{RECIPES.name}, {name}")
        for name, fields in read_yaml(RECIPES).items()
    }


def find_recipe(name: str) -> Recipe:
    """Look up a recipe.

    RAISES (BioclinError): There is no recipe of this name.
    """
    recipes = load_recipes()
    if name not in recipes:
        raise BioclinError(f"recipe {name!r} is unknown, want one of {', '.join(recipes)}")
    return recipes[name]


def get_recipe_text(name: str) -> str:
    """Extract the text of a recipe from recipes.yml, with its comments.

    RAISES (BioclinError): There is no recipe of this name.
    """
    find_recipe(name)
    text = RECIPES.read_text(encoding="utf-8")
    _, _, after = f"\n{text}".partition(f"\n{name}:\n")
    lines = list(takewhile(lambda line: line[:1] in ("", " "), after.splitlines()))
    return "\n".join([f"{name}:", *lines]).rstrip()


def apply_recipe(config: Config, recipe: Recipe) -> None:
    """Apply the settings of a recipe to a config, in place.

    `training.max_steps` becomes 0, so that `bioclin train` counts the updates of the epochs; see
    `training.epochs`.
    """
    epochs = {"training.max_epochs": recipe.epochs, "training.max_steps": 0}
    apply_settings(config, {**recipe.settings, **epochs, "training.eval_frequency": 0})
    set_learn_rate(config, recipe.learn_rate)


def apply_settings(config: Config, settings: Mapping[str, Any]) -> None:
    """Set values by their path ("training.optimizer.L2"), in place. A section is replaced as a
    whole.

    config (Config): Not interpolated.
    RAISES (BioclinError): The config has no such section.
    """
    for path, value in settings.items():
        *sections, key = path.split(".")
        place: Any = config
        for depth, name in enumerate(sections, start=1):
            if name not in place and ".".join(sections[:depth]) == STRATEGY:
                place[name] = {}
            if not isinstance(place.get(name), dict):
                where = ".".join(sections[: depth - 1])
                raise BioclinError(
                    f"setting {path}: the config has no section [{'.'.join(sections[:depth])}]; "
                    f"{f'[{where}]' if where else 'it'} has {', '.join(sorted(place))}"
                )
            place = place[name]
        place[key] = value


def set_learn_rate(config: Config, rate: float) -> None:
    """Set the peak learning rate of the optimizer, in place, for any schedule.

    RAISES (BioclinError): None of the schedule's settings has a known name of a rate.
    """
    optimizer = config["training"]["optimizer"]
    schedule = optimizer["learn_rate"]
    if not isinstance(schedule, dict):
        optimizer["learn_rate"] = rate
        return
    key = next((key for key in RATES if key in schedule), None)
    if key is None:
        raise BioclinError(
            f"[training.optimizer.learn_rate] has {', '.join(sorted(schedule))}: cannot tell which "
            "is the rate; use warmup_linear.v1 (initial_rate) or constant.v1 (rate)"
        )
    schedule[key] = rate
