"""The entries of a sweep's YAML file: corpora, encoders, published rows and searches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from ..catalog.tasks.task import Kind
from ..settings import Settings

# Keys of a published row that may hold a figure for each task instead of one.
BY_TASK = ("f", "p", "r", "best", "median", "mean", "joint", "single", "score")
# Keys of the plan that are mappings of values: `small` changes some of their entries.
MERGED = ("config", "settings", "epochs", "folds", "train_notes")


class Encoder(Settings):
    """An encoder of the grid.

    path (str): Folder or hub name.
    learn_rate_scale (float): Factor on the grid's learning rates: small encoders need larger ones.
    """

    path: str
    learn_rate_scale: float = 1.0


class Corpus(Settings):
    """The corpus of a task. What is left out comes from the catalogue, if it has the task.

    path (str | None): Folder with train.spacy, dev.spacy and test.spacy; None for a task of the
        catalogue, which is converted.
    lang (str): Language of the notes; "" for that of the catalogue's task.
    layer (str): Layer to learn, where a corpus has several: "ents", "phi" …; "" for the only one.
    kind (str | None): What is learned: "entities", "relations", "pairs" or "texts"; without a
        catalogue, entities.
    score (str | None): Published metric that trials are compared by, one of
        `evaluation.published.METRICS`; without a catalogue, the usual one of the kind.
    classes (list[str] | None): Classes of pairs or texts.
    positive (str): The class that is scored by itself; "" to tell by its name.
    exclusive (bool | None): Each text has exactly one class, which without a catalogue is so.
    graded (bool | None): Pairs have a number instead of a class; without a catalogue, false.
    settings (dict[str, Any]): Path in the config -> value, for this task.
    joint (list[str]): Tasks that one pipeline learns together, with a head for each; the other
        keys but `lang` and `settings` are then left out.
    """

    path: str | None = None
    lang: str = ""
    layer: str = ""
    kind: Kind | None = None
    score: str | None = None
    classes: list[str] | None = None
    positive: str = ""
    exclusive: bool | None = None
    graded: bool | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    joint: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_joint(self) -> "Corpus":
        if self.joint:
            if wrong := sorted(self.model_fields_set - {"joint", "lang", "settings"}):
                raise ValueError(f"{wrong[0]} belongs to the entries of the tasks in joint")
            if len(set(self.joint)) < max(2, len(self.joint)):
                raise ValueError("joint: want two or more different tasks")
        return self


class Published(Settings):
    """A row of a paper's table. Scores are between 0 and 1, pairs are mean and deviation.

    In the file, a row without `task` has a mapping of task -> figure for each of its figures, and
    stands for a row of each task.

    task, model, source (str): Task and model as the tables name them, and the paper.
    f, p, r, best (list[float] | None): Average scores, and F1 of the best configuration.
    learn_rate, epoch (float | None): Those of the best configuration.
    median (float | None), mean (list[float] | None): Score over the seeds.
    joint, single (float | None): Score of one pipeline for all tasks, and of one for this task.
    score (float | None): A score whose protocol is another one, or not known.
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
    joint: float | None = None
    single: float | None = None
    score: float | None = None


class PublishedMeans(Settings):
    """Means over groups of tasks, as a paper prints them, between 0 and 1.

    model, source (str): Model as the tables name it, and the paper.
    means (dict[str, float]): Group of the plan, or "all" -> mean over all its tasks.
    """

    model: str
    source: str
    means: dict[str, float]


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


def spread_rows(rows: Sequence[Any]) -> Iterator[Any]:
    """Replace each published row without a task by a row for each task of its figures.

    rows (Sequence[Any]): What the file holds, which need not be rows.
    YIELDS (Any): A row, or what is none.
    """
    for row in rows:
        if not isinstance(row, Mapping) or "task" in row:
            yield row
            continue
        by_task = {k: v for k, v in row.items() if k in BY_TASK and isinstance(v, Mapping)}
        rest = {k: v for k, v in row.items() if k not in by_task}
        if not by_task:
            yield row
        for task in dict.fromkeys(task for figures in by_task.values() for task in figures):
            own = {key: figures[task] for key, figures in by_task.items() if task in figures}
            yield {**rest, "task": task, **own}


def make_small(values: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the section `small` of a plan to its other keys.

    A key of `small` replaces the plan's. Of a mapping of values (`settings`, `epochs` …) only the
    entries in `small` are replaced. A list of tasks or encoders keeps the plan's entries of them.

    values (Mapping[str, Any]): What the file holds.
    RETURNS (dict[str, Any]): The same without `small`.
    """
    small = values.get("small") or {}
    merged = {key: value for key, value in values.items() if key != "small"}
    if not isinstance(small, Mapping):
        return {**merged, "small": small}  # which the plan refuses
    for key, value in small.items():
        old = merged.get(key)
        if key in MERGED and isinstance(value, Mapping) and isinstance(old, Mapping):
            value = {**old, **value}
        if key in ("tasks", "encoders") and isinstance(value, list) and isinstance(old, Mapping):
            value = {name: old.get(name) for name in value}
        merged[key] = value
    return merged
