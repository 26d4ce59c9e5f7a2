"""The YAML file of a sweep: which trials to run, and with which settings."""

import itertools
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..catalog.overrides import STRATEGY
from ..errors import BioclinError
from ..settings import Settings, load_settings

WHOLE = "whole"
SAFE = " +,()=@"  # in the name of a file, beside letters, digits and "_.-~"
LETTERS = re.compile(r"[^\w]|[\x00-\x7f]")  # all but letters of other alphabets
MAX_NAME = 100  # characters of a name in the plan
LARGEST_SEED = 2**32 - 1


class Trial(NamedTuple):
    """One training. Task, encoder and strategy are names in the plan."""

    task: str
    encoder: str
    strategy: str
    learn_rate: float
    seed: int

    @property
    def name(self) -> str:
        """Name of the trial's folder. Names of the plan cannot lead it elsewhere."""
        return as_name(
            f"{self.task}-{self.encoder}-{self.strategy}-{self.learn_rate:g}-{self.seed}"
        )


def as_name(text: str) -> str:
    """Write a name of the plan as the name of a file: what is unsafe there as %XX."""
    quoted = quote(text, safe=SAFE + LETTERS.sub("", text))
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


def _read_short(value: Any) -> Any:
    """Read "FOLDER" as {"path": "FOLDER"}, and nothing as {}."""
    return {"path": value} if isinstance(value, str) else value or {}


class Encoder(Settings):
    """An encoder of the grid.

    path (str): Folder or hub name.
    learn_rate_scale (float): Factor on the grid's learning rates: small encoders need larger ones.
    """

    path: str
    learn_rate_scale: float = 1.0


class Corpus(Settings):
    """The corpus of a task.

    path (str | None): Folder with train.spacy, dev.spacy and test.spacy; None for a task of the
        catalogue, which is converted.
    lang (str): Language of the notes; "" for that of the catalogue's task.
    layer (str): Layer to learn, where a corpus has several: "ents", "phi" …; "" for the only one.
    """

    path: str | None = None
    lang: str = ""
    layer: str = ""


class Published(Settings):
    """A row of a paper's table. Scores are between 0 and 1, pairs are mean and deviation.

    task, model, source (str): Task and model as the tables name them, and the paper.
    f, p, r, best (list[float] | None): Average scores, and F1 of the best configuration.
    learn_rate, epoch (float | None): Those of the best configuration.
    median (float | None), mean (list[float] | None): F1 over the seeds.
    """

    task: str
    model: str
    source: str
    f: list[float] | None = None
    p: list[float] | None = None
    r: list[float] | None = None
    best: list[float] | None = None
    learn_rate: float | None = None
    epoch: int | float | None = None
    median: float | None = None
    mean: list[float] | None = None


class Range(Settings):
    """The values that a search tries for one setting: an interval or a list.

    low, high (int | float): Ends of the interval. Only whole numbers are tried if both are whole.
    log (bool): Search on a logarithmic scale.
    choices (list): The values; empty for an interval.
    """

    low: int | float = 0
    high: int | float = 0
    log: bool = False
    choices: list[Any] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_ends(self) -> "Range":
        given = self.model_fields_set
        is_interval = {"low", "high"} <= given <= {"low", "high", "log"}
        if not (self.low <= self.high if is_interval else given == {"choices"} and self.choices):
            raise ValueError(
                "want {low: 0.7, high: 1.0}, with log: true for a logarithmic scale, or "
                "{choices: [0.1, 0.3]}"
            )
        return self


class Search(Settings):
    """A search by Optuna instead of the grid.

    n_trials (int): Number of configurations to try for each task and encoder.
    seed (int): Random seed of the sampler.
    settings (dict[str, Range]): Key of the strategy section, or path in the config -> values. The
        rate is between the smallest and the largest of the grid, the strategy one of the plan's.
    """

    n_trials: int = Field(ge=1)
    seed: int = 0
    settings: dict[str, Range] = Field(default_factory=dict)


Strategy = Annotated[dict[str, Any], BeforeValidator(lambda keys: keys or {})]


class Plan(Settings):
    """A sweep.

    tasks (dict[str, Corpus]): Name -> corpus.
    encoders (dict[str, Encoder]): Name -> encoder.
    learn_rates (list[float]), seeds (list[int]): Axes of the grid.
    config (str): Path of the config that every trial starts from.
    recipe (str | None): Recipe of the catalogue that is applied to the config.
    settings (dict[str, Any]): Path in the config -> value, for all trials.
    strategies (dict[str, dict[str, Any]]): Name -> keys of the strategy section, or paths in the
        config.
    epochs (int | None): Epochs instead of the recipe's.
    train_notes (int | dict[str, int] | None): Number of training notes, which are drawn once, for
        every task or by task; None for all.
    dev_notes, test_notes (int | None): Number of notes of the other splits.
    failed_below (float): A trial has failed if its F1 on dev is lower.
    published (list[Published]): Rows of papers' tables, shown beside ours.
    search (Search | None): A search instead of the grid.
    """

    tasks: dict[str, Annotated[Corpus, BeforeValidator(_read_short)]]
    encoders: dict[str, Annotated[Encoder, BeforeValidator(_read_short)]]
    learn_rates: list[Annotated[float, Field(strict=False)]]  # YAML reads 3e-5 as text
    seeds: list[int]
    config: str = "configs/ner.cfg"
    recipe: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    strategies: dict[str, Strategy] = Field({"plain": {}})
    epochs: int | None = None
    train_notes: int | dict[str, int] | None = None
    dev_notes: int | None = None
    test_notes: int | None = None
    failed_below: float = 0.05
    published: list[Published] = Field(default_factory=list)
    search: Search | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_short_forms(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read a list of tasks as a mapping, and leave out keys without a value."""
        tasks = values.get("tasks")
        values = {**values, "tasks": dict.fromkeys(tasks) if isinstance(tasks, list) else tasks}
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
    def _check_rates(cls, rates: list[float]) -> list[float]:
        if wrong := [rate for rate in rates if not (math.isfinite(rate) and rate > 0)]:
            raise ValueError(f"{wrong[0]}: want numbers above 0")
        return rates

    @field_validator("seeds")
    @classmethod
    def _check_seeds(cls, seeds: list[int]) -> list[int]:
        if wrong := [seed for seed in seeds if not 0 <= seed <= LARGEST_SEED]:
            raise ValueError(f"{wrong[0]}: want numbers from 0 to {LARGEST_SEED}")
        return seeds

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
        return [
            Trial(task, encoder, strategy, rate, seed)
            for seed, task, encoder, strategy, rate in itertools.product(
                self.seeds, self.tasks, self.encoders, self.strategies, self.learn_rates
            )
        ]

    def get_settings(self, trial: Trial) -> dict[str, Any]:
        """Collect everything that a trial's result depends on, apart from the data."""
        encoder = self.encoders[trial.encoder]
        strategy = {
            path if "." in path else f"{STRATEGY}.{path}": value
            for path, value in self.strategies[trial.strategy].items()
        }
        return {
            "config": self.config,
            "recipe": self.recipe,
            "encoder": encoder.path,
            "learn_rate": trial.learn_rate * encoder.learn_rate_scale,
            "settings": {**self.settings, **strategy},
            "epochs": self.epochs,
            "train_notes": self.count_notes(trial.task, "train"),
            "dev_notes": self.dev_notes,
            "test_notes": self.test_notes,
        }

    def count_notes(self, task: str, split: str) -> int | None:
        """Look up how many notes of a split to take.

        RETURNS (int | None): None for all.
        """
        notes = {"train": self.train_notes, "dev": self.dev_notes, "test": self.test_notes}[split]
        return notes.get(task) if isinstance(notes, dict) else notes


def _find_double(names: Iterable[str]) -> str:
    """Find a name that occurs twice, in any case; "" if there is none."""
    seen = set()
    for name in names:
        if name.casefold() in seen:
            return name
        seen.add(name.casefold())
    return ""


def read_plan(path: Path) -> Plan:
    """Read the YAML file of a sweep.

    RAISES (BioclinError): The file is missing, is not YAML, or has a mistake in it.
    """
    if not path.is_file():
        raise BioclinError(f"{path}: no such file; see configs/sweeps")
    return load_settings(Plan, path)
