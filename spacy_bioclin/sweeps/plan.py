"""The YAML file of a sweep: which trials to run, and with which settings."""

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..catalog.overrides import STRATEGY
from ..catalog.tasks.task import Kind
from ..errors import BioclinError
from ..settings import Settings, load_settings, read_settings, read_yaml
from .entries import (
    Corpus,
    Encoder,
    Published,
    PublishedMeans,
    Search,
    make_small,
    spread_rows,
)
from .tasks import CONFIGS, TaskSetup, find_setup

WHOLE = "whole"
SAFE = " +,()=@"  # in the name of a file, beside letters, digits and "_.-~"
LETTERS = re.compile(r"[^\w]|[\x00-\x7f]")  # all but letters of other alphabets
MAX_NAME = 100  # characters of a name in the plan
LARGEST_SEED = 2**32 - 1
T = TypeVar("T")


class Trial(NamedTuple):
    """One training. Task, encoder and strategy are names in the plan; the fold is "" for a task
    with one split."""

    task: str
    encoder: str
    strategy: str
    learn_rate: float
    seed: int
    fold: str = ""

    @property
    def name(self) -> str:
        """Name of the trial's folder. Names of the plan cannot lead it elsewhere."""
        fold = f"-fold-{self.fold}" if self.fold else ""
        return as_name(
            f"{self.task}-{self.encoder}-{self.strategy}-{self.learn_rate:g}-{self.seed}{fold}"
        )

    @property
    def corpora(self) -> str:
        """Name of the folder of its corpora."""
        return as_name(f"{self.task}-fold-{self.fold}" if self.fold else self.task)

    def to_dict(self) -> dict[str, Any]:
        """Write the trial as results do: without the fold, if there is only one split."""
        return {key: value for key, value in self._asdict().items() if key != "fold" or value}


def as_name(text: str) -> str:
    """Write a name of the plan as the name of a file: what is unsafe there as %XX."""
    quoted = quote(text, safe=SAFE + LETTERS.sub("", text))
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


def _read_short(value: Any) -> Any:
    """Read "FOLDER" as {"path": "FOLDER"}, and nothing as {}."""
    return {"path": value} if isinstance(value, str) else value or {}


Rates = list[Annotated[float, Field(strict=False)]]  # YAML reads 3e-5 as text
Strategy = Annotated[dict[str, Any], BeforeValidator(lambda keys: keys or {})]


class Plan(Settings):
    """A sweep.

    tasks (dict[str, Corpus]): Name -> corpus.
    encoders (dict[str, Encoder]): Name -> encoder.
    learn_rates (list[float] | dict[Kind, list[float]]): Axis of the grid, for every task or by its
        kind.
    seeds (list[int]): Axis of the grid.
    config (str | dict[Kind, str]): Path of the config that trials start from, for every task or by
        the kind of a task; where it is left out, the config in `tasks.CONFIGS`.
    recipe (str | dict[Kind, str] | None): Recipe of the catalogue that is applied to the config,
        for every task or by its kind.
    settings (dict[str, Any]): Path in the config -> value, for all trials.
    strategies (dict[str, dict[str, Any]]): Name -> keys of the strategy section, or paths in the
        config.
    epochs (int | dict[str, int] | None): Epochs instead of the recipe's, for every task or by task.
    folds (int | dict[str, int] | None): How many folds to run of tasks that have some: the first
        ones; None for all.
    train_notes (int | dict[str, int] | None): Number of training notes, which are drawn once, for
        every task or by task; None for all.
    dev_notes, test_notes (int | None): Number of notes of the other splits.
    failed_below (float): A trial has failed if its F1 on dev is lower.
    published (list[Published]): Rows of papers' tables, shown beside ours.
    groups (dict[str, list[str]]): Name -> tasks over which the mean is shown, in the order of the
        rows.
    published_means (list[PublishedMeans]): Means over all tasks of the groups, as papers print
        them.
    search (Search | None): A search instead of the grid.
    small (dict[str, Any]): Keys of the plan that `--small` replaces, see `entries.make_small`.
    """

    tasks: dict[str, Annotated[Corpus, BeforeValidator(_read_short)]]
    encoders: dict[str, Annotated[Encoder, BeforeValidator(_read_short)]]
    learn_rates: Rates | dict[Kind, Rates]
    seeds: list[int]
    config: str | dict[Kind, str] = Field(default_factory=dict)
    recipe: str | dict[Kind, str] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    strategies: dict[str, Strategy] = Field({"plain": {}})
    epochs: int | dict[str, int] | None = None
    folds: int | dict[str, int] | None = None
    train_notes: int | dict[str, int] | None = None
    dev_notes: int | None = None
    test_notes: int | None = None
    failed_below: float = 0.05
    published: list[Published] = Field(default_factory=list)
    groups: dict[str, list[str]] = Field(default_factory=dict)
    published_means: list[PublishedMeans] = Field(default_factory=list)
    search: Search | None = None
    small: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _read_short_forms(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read a list of tasks as a mapping, spread published rows over their tasks, and leave out
        keys without a value."""
        tasks, published = values.get("tasks"), values.get("published")
        values = {**values, "tasks": dict.fromkeys(tasks) if isinstance(tasks, list) else tasks}
        if isinstance(published, list):
            values["published"] = list(spread_rows(published))
        return {key: value for key, value in values.items() if value is not None}

    @field_validator("tasks", "encoders", "strategies", "learn_rates", "seeds")
    @classmethod
    def _check_length(cls, axis: Any) -> Any:
        if not axis:
            raise ValueError("want at least one, else there is no trial to run")
        return axis

    @field_validator("tasks", "encoders", "strategies")
    @classmethod
    def _check_names(cls, axis: Any) -> Any:
        for name in axis:
            if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
                raise ValueError(
                    f"a name of {len(name)} characters: want 1 to {MAX_NAME}, without line ends "
                    "and control characters"
                )
            if name == WHOLE:
                raise ValueError(f"{WHOLE!r} is the folder of corpora before they are cut to size")
        return axis

    @field_validator("learn_rates")
    @classmethod
    def _check_rates(cls, rates: Rates | dict[Kind, Rates]) -> Rates | dict[Kind, Rates]:
        for of_kind in rates.values() if isinstance(rates, dict) else [rates]:
            if wrong := [rate for rate in of_kind if not (math.isfinite(rate) and rate > 0)]:
                raise ValueError(f"{wrong[0]}: want numbers above 0")
        return rates

    @field_validator("seeds")
    @classmethod
    def _check_seeds(cls, seeds: list[int]) -> list[int]:
        if wrong := [seed for seed in seeds if not 0 <= seed <= LARGEST_SEED]:
            raise ValueError(f"{wrong[0]}: want numbers from 0 to {LARGEST_SEED}")
        return seeds

    @model_validator(mode="after")
    def _check_search(self) -> "Plan":
        if self.search and isinstance(self.learn_rates, dict):
            raise ValueError("a search needs one list of learn_rates, not one for each kind")
        return self

    @model_validator(mode="after")
    def _check_folders(self) -> "Plan":
        """Let no two trials or tasks share a folder, also on a disk that ignores case."""
        for what, names in (
            ("trials", (trial.name for trial in self.list_trials())),
            ("tasks", map(as_name, self.tasks)),
        ):
            if double := _find_double(names):
                raise ValueError(
                    f"two {what} would have the folder {double}: give each seed and rate once, and "
                    "names that stay different when they are joined"
                )
        return self

    def list_trials(self) -> list[Trial]:
        """List the trials of the grid, seed by seed, so that an interrupted sweep has a few seeds
        of everything."""
        folds = {task: self.list_folds(task) for task in self.tasks}
        rates = {task: self.list_rates(task) for task in self.tasks}
        return [
            Trial(task, encoder, strategy, rate, seed, fold)
            for seed, task, encoder, strategy in itertools.product(
                self.seeds, self.tasks, self.encoders, self.strategies
            )
            for rate in rates[task]
            for fold in folds[task]
        ]

    def list_rates(self, task: str) -> list[float]:
        """List the learning rates of the grid for a task.

        RAISES (BioclinError): The plan has rates by kind, and none for that of the task.
        """
        kind = self.find_setup(task).kind if isinstance(self.learn_rates, dict) else None
        rates = _choose(self.learn_rates, kind)
        if not rates:
            raise BioclinError(f"learn_rates has none for {kind}, which tasks.{task} learns")
        return rates

    def list_folds(self, task: str) -> list[str]:
        """List the folds of a task that are run; [""] for a task with one split."""
        corpus = self.tasks.get(task)
        if corpus is not None and (corpus.path or corpus.joint):
            return [""]
        return list(self.find_setup(task).folds)[: _choose(self.folds, task)]

    def find_setup(self, task: str) -> TaskSetup:
        """Find what a task learns, see `tasks.find_setup`."""
        return find_setup(task, self.tasks)

    def find_config(self, kind: Kind) -> str:
        """Find the path of the config for a kind of task."""
        return self.config if isinstance(self.config, str) else self.config.get(kind, CONFIGS[kind])

    def find_recipe(self, kind: Kind) -> str | None:
        """Find the name of the recipe for a kind of task; None for no recipe."""
        return _choose(self.recipe, kind)

    def get_settings(self, trial: Trial) -> dict[str, Any]:
        """Collect everything that a trial's result depends on, apart from the data."""
        encoder, setup = self.encoders[trial.encoder], self.find_setup(trial.task)
        strategy = {
            path if "." in path else f"{STRATEGY}.{path}": value
            for path, value in self.strategies[trial.strategy].items()
        }
        return {
            "config": self.find_config(setup.kind),
            "recipe": self.find_recipe(setup.kind),
            "encoder": encoder.path,
            "learn_rate": trial.learn_rate * encoder.learn_rate_scale,
            "settings": {**self.settings, **strategy},
            "epochs": _choose(self.epochs, trial.task),
            "train_notes": self.count_notes(trial.task, "train"),
            "dev_notes": self.dev_notes,
            "test_notes": self.test_notes,
            "score": setup.score,
            "task_settings": dict(setup.settings),
            "joint": list(setup.joint),
        }

    def count_notes(self, task: str, split: str) -> int | None:
        """Look up how many notes of a split to take.

        RETURNS (int | None): None for all.
        """
        notes = {"train": self.train_notes, "dev": self.dev_notes, "test": self.test_notes}[split]
        return _choose(notes, task)


def _choose(values: T | Mapping[Any, T] | None, name: str | None) -> T | None:
    """Choose the value for a name, where a mapping has one for each, and else one holds for all."""
    return values.get(name) if isinstance(values, Mapping) else values


def _find_double(names: Iterable[str]) -> str:
    """Find a name that occurs twice, in any case; "" if there is none."""
    seen = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return ""


def read_plan(path: Path, *, small: bool = False) -> Plan:
    """Read the YAML file of a sweep.

    small (bool): Apply its section `small`.
    RAISES (BioclinError): The file is missing, is not YAML, has a mistake in it, or has no section
        `small`, though it is wanted.
    """
    if not path.is_file():
        raise BioclinError(f"{path}: no such file; see configs/sweeps")
    plan = load_settings(Plan, path)
    if not small:
        return plan
    if not plan.small:
        raise BioclinError(f"{path} has no section small: add one, or leave out --small")
    return read_settings(Plan, make_small(read_yaml(path)), where=f"{path}, with its small")
