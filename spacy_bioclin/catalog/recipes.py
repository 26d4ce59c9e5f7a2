"""The fine-tuning recipes of `recipes.yml`, and how they change a config."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator
from thinc.api import Config

from ..errors import BioclinError
from ..settings import Settings, get_entry_text, read_settings, read_yaml
from .overrides import apply_settings as apply_settings  # its documented place
from .recipe_configs import (
    find_listeners,
    fit_batches,
    fit_parts,
    fit_relations,
    list_encoders,
    list_factories,
)

RECIPES = Path(__file__).with_name("recipes.yml")
HEAD = "bioclin_ner"
RELATIONS = "bioclin_relations"
ENCODER = "components.transformer.model."  # begins the paths of settings of all encoders
SCHEDULE = "training.optimizer.learn_rate"
BATCHER = "training.batcher"
PARTS = "corpora.train.max_tokens"
RATES = ("initial_rate", "rate")  # names of the highest rate in schedules


class Recipe(Settings):
    """How a paper fine-tunes an encoder.

    paper (str): The paper.
    purpose (str): What the paper used it for.
    epochs (int): Passes over the training corpus.
    learn_rates (list[float]): The rates that the paper searched, or its one rate.
    settings (dict[str, Any]): Path in the config -> value; a section is replaced as a whole. Those
        of [components.transformer.model] are for every encoder of the config.
    heads (dict[str, dict[str, Any]]): Factory -> the same for every head of this factory, with
        paths in the component. Other heads stay as they are.
    pooling (str | None): Layer that makes the vector of a token from its pieces, for every
        `bioclin_ner` and wherever in it the encoder is read.
    batch_sizes (dict[str, int]): Factory -> sequences in a batch of what its heads learn from, if
        not the size in `settings`.
    tasks (dict[str, Any]): Settings of `spacy-bioclin.batch_by_task.v1`, for a config of several
        tasks.
    keep (str): Which weights the paper reports: "best" on dev, or "last", where it has no dev.
    """

    paper: str
    purpose: str = Field(alias="for")
    epochs: int
    learn_rates: list[float]
    settings: dict[str, Any]
    heads: dict[str, dict[str, Any]] = Field(default_factory=dict)
    pooling: str | None = None
    batch_sizes: dict[str, int] = Field(default_factory=dict)
    tasks: dict[str, Any] = Field(default_factory=dict)
    keep: Literal["best", "last"] = "best"

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
    return get_entry_text(RECIPES, name)


def apply_recipe(config: Config, recipe: Recipe) -> None:
    """Apply the settings of a recipe to a config, in place: to its encoders, to training and to the
    heads of the kinds that the recipe has settings for.

    `training.max_steps` becomes 0, so that `bioclin train` counts the updates of the epochs; see
    `training.epochs`.

    config (Config): Not interpolated.
    RAISES (BioclinError): The recipe is for `bioclin_ner` only and the config has none, or the
        config has no place for a setting.
    """
    _check_heads(config, recipe)
    settings = dict(recipe.settings)
    for name, factory in list_factories(config).items():
        own = recipe.heads.get(factory, {})
        if factory == RELATIONS:
            own = fit_relations(config, name, own)
        settings |= {f"components.{name}.{path}": value for path, value in own.items()}
        if factory == HEAD and recipe.pooling:
            for listener in find_listeners(config["components"][name]):
                listener["pooling"] = {"@layers": recipe.pooling}
    if encoders := list_encoders(config):
        for path in [path for path in settings if path.startswith(ENCODER)]:
            value = settings.pop(path)
            key = path.removeprefix(ENCODER)
            settings |= {f"{encoder}.{key}": value for encoder in encoders}
    if PARTS in settings:
        settings |= fit_parts(config, settings.pop(PARTS))
    if BATCHER in settings:
        batcher = settings.pop(BATCHER)
        settings |= fit_batches(config, batcher, recipe.batch_sizes, recipe.tasks)
    settings |= {"training.max_epochs": recipe.epochs, "training.max_steps": 0}
    apply_settings(config, {**settings, "training.eval_frequency": 0})


def _check_heads(config: Config, recipe: Recipe) -> None:
    """Refuse a recipe for named entities where there is nothing that finds them."""
    factories = list_factories(config)
    if set(recipe.heads) == {HEAD} and HEAD not in factories.values():
        found = ", ".join(f"{name} ({factory})" for name, factory in factories.items())
        raise BioclinError(f"the recipe needs a {HEAD}; [components] has {found}")


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
