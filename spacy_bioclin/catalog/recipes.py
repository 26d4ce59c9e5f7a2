"""The fine-tuning recipes of `recipes.yml`, and how they change a config."""

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import srsly
from thinc.api import Config

from ..errors import BioclinError

RECIPES = Path(__file__).with_name("recipes.yml")
# Where a fine-tuning strategy stands in a config; all its settings have defaults.
STRATEGY = "components.transformer.model.strategy"
# What schedules call their highest rate.
RATES = ("initial_rate", "rate")


class Recipe(NamedTuple):
    """How a paper fine-tunes an encoder.

    paper (str): Where it comes from.
    purpose (str): What it was used for.
    epochs (int): Passes over the training corpus.
    learn_rates (list[float]): What the paper searched, or its one rate.
    settings (dict[str, Any]): Path in the config -> value; a section is replaced as a whole.
    """

    paper: str
    purpose: str
    epochs: int
    learn_rates: list[float]
    settings: dict[str, Any]

    @property
    def learn_rate(self) -> float:
        """The middle one of those the paper searched."""
        return self.learn_rates[len(self.learn_rates) // 2]


def load_recipes() -> dict[str, Recipe]:
    """RETURNS (dict[str, Recipe]): The recipes of the catalogue by name."""
    return {
        name: Recipe(purpose=fields.pop("for"), **fields)
        for name, fields in srsly.read_yaml(RECIPES).items()
    }


def find_recipe(name: str) -> Recipe:
    """RETURNS (Recipe): The one of this name. RAISES (BioclinError): There is none."""
    recipes = load_recipes()
    if name not in recipes:
        raise BioclinError(f"recipe {name!r} is unknown, want one of {', '.join(recipes)}")
    return recipes[name]


def recipe_text(name: str) -> str:
    """RETURNS (str): What recipes.yml says of a recipe, with its comments.
    RAISES (BioclinError): There is none of this name."""
    find_recipe(name)
    text = RECIPES.read_text(encoding="utf-8")
    _, _, after = f"\n{text}".partition(f"\n{name}:\n")
    lines = list(takewhile(lambda line: line[:1] in ("", " "), after.splitlines()))
    return "\n".join([f"{name}:", *lines]).rstrip()


def apply_recipe(config: Config, recipe: Recipe) -> None:
    """Set what the recipe sets, in place. `training.max_steps` becomes 0: `bioclin train` counts
    the updates of the epochs then, see `training.epochs`."""
    epochs = {"training.max_epochs": recipe.epochs, "training.max_steps": 0}
    apply_settings(config, {**recipe.settings, **epochs, "training.eval_frequency": 0})
    set_learn_rate(config, recipe.learn_rate)


def apply_settings(config: Config, settings: Mapping[str, Any]) -> None:
    """Set values by their path ("training.optimizer.L2"), in place; a section is replaced as a
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
    """Set the peak learning rate of the optimizer, in place, whatever its schedule.

    RAISES (BioclinError): The schedule names its rate in a way that is not known here.
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
