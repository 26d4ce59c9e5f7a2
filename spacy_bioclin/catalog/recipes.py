"""The fine-tuning recipes of `recipes.yml`, and how they change a config."""

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator
from thinc.api import Config

from ..errors import BioclinError
from ..settings import Settings, read_settings, read_yaml
from .overrides import apply_settings as apply_settings  # its documented place

RECIPES = Path(__file__).with_name("recipes.yml")
HEAD = "bioclin_ner"
LISTENER = "spacy-transformers.TransformerListener.v1"
SCHEDULE = "training.optimizer.learn_rate"
BATCHER = "training.batcher"
RATES = ("initial_rate", "rate")  # names of the highest rate in schedules


class Recipe(Settings):
    """How a paper fine-tunes an encoder.

    paper (str): The paper.
    purpose (str): What the paper used it for.
    epochs (int): Passes over the training corpus.
    learn_rates (list[float]): The rates that the paper searched, or its one rate.
    settings (dict[str, Any]): Path in the config -> value; a section is replaced as a whole.
    heads (dict[str, Any]): The same for every `bioclin_ner` of the config, with paths in the
        component; empty to leave them unchanged.
    pooling (str | None): Layer that makes the vector of a token from its pieces, for every head
        and wherever in it the encoder is read.
    """

    paper: str
    purpose: str = Field(alias="for")
    epochs: int
    learn_rates: list[float]
    settings: dict[str, Any]
    heads: dict[str, Any] = Field(default_factory=dict)
    pooling: str | None = None

    @model_validator(mode="after")
    def _check_rate(self) -> "Recipe":
        if self.learn_rate not in self.learn_rates:
            raise ValueError(f"its rate {self.learn_rate} is not one of learn_rates")
        return self

    @property
    def learn_rate(self) -> float:
        """The peak of the learning rate that the recipe sets."""
        schedule = self.settings[SCHEDULE]
        rate: float = next(schedule[key] for key in RATES if key in schedule)
        return rate


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
    """Apply the settings of a recipe to a config, in place: to the encoder, to training and to
    every head.

    `training.max_steps` becomes 0, so that `bioclin train` counts the updates of the epochs; see
    `training.epochs`.

    config (Config): Not interpolated.
    RAISES (BioclinError): The config has no head, or no place for a setting.
    """
    components = config["components"]
    heads = [name for name, one in components.items() if one.get("factory") == HEAD]
    if recipe.heads and not heads:
        found = ", ".join(f"{name} ({one.get('factory')})" for name, one in components.items())
        raise BioclinError(f"the recipe needs a {HEAD}; [components] has {found}")
    settings = dict(recipe.settings)
    if "batcher" in config["training"]["batcher"] and BATCHER in settings:
        # The batcher inside cuts the batches of a task.
        settings[f"{BATCHER}.batcher"] = settings.pop(BATCHER)
    for name in heads:
        settings |= {f"components.{name}.{path}": value for path, value in recipe.heads.items()}
        if recipe.pooling:
            for listener in _find_listeners(components[name]):
                listener["pooling"] = {"@layers": recipe.pooling}
    settings |= {"training.max_epochs": recipe.epochs, "training.max_steps": 0}
    apply_settings(config, {**settings, "training.eval_frequency": 0})


def _find_listeners(section: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Find where a component reads the encoder, at any depth of its config."""
    if section.get("@architectures") == LISTENER:
        yield section
    for value in section.values():
        if isinstance(value, dict):
            yield from _find_listeners(value)


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
