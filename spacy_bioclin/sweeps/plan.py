"""A grid of trials: what a sweep's YAML says, and running its trials side by side."""

import itertools
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from ..catalog.recipes import STRATEGY
from ..errors import BioclinError

RESULT = "result.json"
DONE, DIVERGED, CRASHED = "done", "diverged", "crashed"
Results = list[dict[str, Any]]


class Trial(NamedTuple):
    """One training: a place in the grid, by the names that the plan gives to its axes."""

    task: str
    encoder: str
    strategy: str
    learn_rate: float
    seed: int

    @property
    def name(self) -> str:
        return f"{self.task}-{self.encoder}-{self.strategy}-{self.learn_rate:g}-{self.seed}"


class Encoder(NamedTuple):
    """An encoder of the grid.

    path (str): Folder or hub name.
    learn_rate_scale (float): Factor on the grid's learning rates: small encoders want larger ones.
    """

    path: str
    learn_rate_scale: float = 1.0


class Corpus(NamedTuple):
    """What a task is trained on.

    path (str | None): Folder with train.spacy, dev.spacy and test.spacy; None for a task of the
        catalogue, which is converted.
    lang (str): Language of the notes; the catalogue knows that of its tasks.
    layer (str): Layer that is learnt, where a corpus has several: "ents", "phi" …
    """

    path: str | None = None
    lang: str = ""
    layer: str = ""


class Plan(NamedTuple):
    """What the YAML of a sweep says.

    tasks (dict[str, Corpus]): By name.
    encoders (dict[str, Encoder]): By name.
    learn_rates, seeds: Axes of the grid.
    config (str): What every trial starts from.
    recipe (str | None): Of the catalogue; applied to the config.
    settings (dict[str, Any]): Path in the config -> value, for all trials.
    strategies (dict[str, dict[str, Any]]): Name -> keys of the strategy section, or paths in the
        config.
    epochs (int | None): Instead of the recipe's.
    train_notes (int | dict[str, int] | None): So many notes of the training split, drawn once, for
        every task or by task; None for all.
    dev_notes, test_notes (int | None): As many of the other splits.
    failed_below (float): A trial has failed if its F1 on dev is less.
    published (list[dict]): Rows of the paper's table, shown beside ours.
    search (dict): For Optuna, in the place of the grid.
    """

    tasks: dict[str, Corpus]
    encoders: dict[str, Encoder]
    learn_rates: list[float]
    seeds: list[int]
    config: str
    recipe: str | None
    settings: dict[str, Any]
    strategies: dict[str, dict[str, Any]]
    epochs: int | None
    train_notes: int | dict[str, int] | None
    dev_notes: int | None
    test_notes: int | None
    failed_below: float
    published: list[dict[str, Any]]
    search: dict[str, Any]

    def trials(self) -> list[Trial]:
        """RETURNS (list[Trial]): The whole grid; seed by seed, so that a sweep that is cut short
        has few seeds of everything."""
        axes = itertools.product(
            self.seeds, self.tasks, self.encoders, self.strategies, self.learn_rates
        )
        return [
            Trial(task, encoder, strategy, rate, seed)
            for seed, task, encoder, strategy, rate in axes
        ]

    def settings_of(self, trial: Trial) -> dict[str, Any]:
        """RETURNS (dict): All that a trial's result depends on, beside the data."""
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
            "train_notes": self.notes_of(trial.task, "train"),
            "dev_notes": self.dev_notes,
            "test_notes": self.test_notes,
        }

    def notes_of(self, task: str, split: str) -> int | None:
        """RETURNS (int | None): How many notes of a split to take; None for all."""
        if split != "train":
            return {"dev": self.dev_notes, "test": self.test_notes}[split]
        return (
            self.train_notes.get(task) if isinstance(self.train_notes, dict) else self.train_notes
        )


DEFAULTS: dict[str, Any] = {
    "config": "configs/ner.cfg",
    "recipe": None,
    "settings": {},
    "strategies": {"plain": {}},
    "epochs": None,
    "train_notes": None,
    "dev_notes": None,
    "test_notes": None,
    "failed_below": 0.05,
    "published": [],
    "search": {},
}


def read_plan(path: Path) -> Plan:
    """Read the YAML of a sweep.

    RAISES (BioclinError): It is no YAML, or has a key that is unknown, missing or of the wrong
        kind.
    """
    if not path.is_file():
        raise BioclinError(f"{path}: no such file; see configs/sweeps")
    try:
        said = srsly.read_yaml(path)
    except ValueError as error:
        raise BioclinError(f"{path}: no YAML: {error}") from None
    if not isinstance(said, dict):
        raise BioclinError(f"{path}: want keys and values: {', '.join(Plan._fields)}")
    if unknown := sorted(set(said) - set(Plan._fields)):
        raise BioclinError(f"{path}: unknown key {unknown[0]!r}; a sweep has {_fields()}")
    if missing := [key for key in Plan._fields if key not in {*said, *DEFAULTS}]:
        raise BioclinError(f"{path}: {missing[0]} is missing; a sweep has {_fields()}")
    given = {key: value for key, value in said.items() if value is not None}
    fields: dict[str, Any] = {**DEFAULTS, **given}
    _check_kinds(path, fields)
    tasks = fields["tasks"]
    if isinstance(tasks, list):
        tasks = dict.fromkeys(tasks)
    fields["tasks"] = {
        name: _read_entry(path, "tasks", name, said, Corpus) for name, said in tasks.items()
    }
    fields["encoders"] = {
        name: _read_entry(path, "encoders", name, said, Encoder)
        for name, said in fields["encoders"].items()
    }
    fields["strategies"] = {name: keys or {} for name, keys in fields["strategies"].items()}
    fields["learn_rates"] = [float(rate) for rate in fields["learn_rates"]]
    return Plan(**fields)


def _fields() -> str:
    return ", ".join(Plan._fields)


def _read_entry(path: Path, axis: str, name: str, said: Any, kind: type[Any]) -> Any:
    """Read "FOLDER" or {"path": "FOLDER", …}."""
    keys = {"path": said} if isinstance(said, str) else {} if said is None else said
    needed = set(kind._fields) - set(kind._field_defaults)
    if isinstance(keys, dict) and needed <= set(keys) <= set(kind._fields):
        return kind(**keys)
    raise BioclinError(
        f"{path}: {axis}.{name} is {said!r}, want a folder or a mapping of "
        f"{', '.join(kind._fields)}"
    )


KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("learn_rates", "seeds", "published"), (list,)),
    **dict.fromkeys(("encoders", "strategies", "settings", "search"), (dict,)),
    **dict.fromkeys(("epochs", "dev_notes", "test_notes"), (int, type(None))),
    "train_notes": (int, dict, type(None)),
    "tasks": (dict, list),
    "config": (str,),
    "recipe": (str, type(None)),
    "failed_below": (int, float),
}
WORDS = {list: "a list", dict: "a mapping", int: "a number", str: "a text", float: "a number"}


def _check_kinds(path: Path, fields: Mapping[str, Any]) -> None:
    for key, kinds in KINDS.items():
        if not isinstance(fields[key], kinds):
            wanted = " or ".join(dict.fromkeys(WORDS[k] for k in kinds if k in WORDS))
            raise BioclinError(f"{path}: {key} is {fields[key]!r}, want {wanted}")
    for key, kind in (("learn_rates", float), ("seeds", int)):
        for value in fields[key]:
            try:
                kind(value)
            except (TypeError, ValueError):
                raise BioclinError(f"{path}: {key} holds {value!r}, want numbers") from None
    for row in fields["published"]:
        if not isinstance(row, dict) or not {"task", "model", "source"} <= set(row):
            raise BioclinError(f"{path}: published holds {row!r}, want task, model, source, scores")
    for key in ("tasks", "encoders", "strategies", "learn_rates", "seeds"):
        if not fields[key]:
            raise BioclinError(f"{path}: {key} is empty, so there is no trial to run")


def trial_folder(out: Path, trial: Trial) -> Path:
    return out / "trials" / trial.name


def read_results(out: Path, trials: Iterable[Trial]) -> Results:
    """RETURNS (list[dict]): What is known of these trials, in their order."""
    paths = (trial_folder(out, trial) / RESULT for trial in trials)
    return [json.loads(path.read_text("utf-8")) for path in paths if path.exists()]


def write_result(out: Path, result: dict[str, Any]) -> None:
    """Write a trial's result, all or nothing."""
    folder = trial_folder(out, Trial(**result["trial"]))
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{RESULT}.partial"
    partial.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    partial.replace(folder / RESULT)


def find_missing(plan: Plan, out: Path, trials: Sequence[Trial]) -> list[Trial]:
    """RETURNS (list[Trial]): Those without a result. Trials that crashed are tried again.

    RAISES (BioclinError): The folder holds a trial of this name with other settings.
    """
    known = {Trial(**result["trial"]): result for result in read_results(out, trials)}
    for trial, result in known.items():
        now = json.loads(json.dumps(plan.settings_of(trial)))
        for key, was in result["settings"].items():
            if was != now.get(key):
                raise BioclinError(
                    f"{trial_folder(out, trial)} was run with {key} = {was!r}, which is "
                    f"{now.get(key)!r} now: give another folder with -o, or delete that one"
                )
    return [t for t in trials if t not in known or known[t]["status"] == CRASHED]


def crashed(plan: Plan, trial: Trial, error: str) -> dict[str, Any]:
    """RETURNS (dict): Result of a trial whose process is gone."""
    return {
        "trial": trial._asdict(),
        "status": CRASHED,
        "error": error,
        "dev": None,
        "test": None,
        "curve": [],
        "settings": plan.settings_of(trial),
    }


def run_processes(
    trials: Iterable[Trial], run: Callable[[Trial], None], *, jobs: int, preload: str
) -> Iterator[tuple[Trial, int]]:
    """Run each trial in a process of its own, some at a time. What one does to its process, to the
    point of being killed for want of memory, does not touch the others.

    run (Callable): Importable, so that a process can find it.
    jobs (int): How many at a time.
    preload (str): Module that takes long to import; it is imported once for all.
    YIELDS (tuple): A trial that has ended, and the exit status of its process.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([preload])
    waiting = iter(trials)
    running: dict[Any, tuple[Trial, Any]] = {}
    try:
        while True:
            for trial in itertools.islice(waiting, jobs - len(running)):
                args = os.getcwd(), run, trial
                process = context.Process(target=_run, args=args, name=trial.name)
                process.start()
                running[process.sentinel] = trial, process
            if not running:
                return
            for sentinel in wait(list(running)):
                trial, process = running.pop(sentinel)
                process.join()
                yield trial, process.exitcode
    finally:
        for _, process in running.values():
            process.terminate()


def _run(folder: str, run: Callable[[Trial], None], trial: Trial) -> None:
    """Run a trial in this folder (the server that forks has that of its own start), and end with
    the process that started it: a trial that went on after its sweep was killed would be run a
    second time beside itself."""
    os.chdir(folder)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    run(trial)


def threads_per_job(jobs: int) -> int:
    """RETURNS (int): Threads that a trial should use; OMP_NUM_THREADS if that is less."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    share = max(1, (cores or 1) // jobs)
    return min(share, int(os.environ.get("OMP_NUM_THREADS") or share))
