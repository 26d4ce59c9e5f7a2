"""A search by Optuna instead of a grid: choose the next settings by the scores on dev so far."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BioclinError
from .plan import Plan, Search

JOURNAL = "search.journal"


class Sample(NamedTuple):
    """One configuration to try.

    number (int): Number in the study, from 0.
    strategy (str): One of the plan's.
    learn_rate (float): A rate between the smallest and the largest of the plan.
    settings (dict[str, Any]): Keys of the strategy section, or paths in the config.
    """

    number: int
    strategy: str
    learn_rate: float
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the strategy of its trials."""
        return f"search-{self.number}"


def run_study(
    plan: Plan,
    search: Search,
    folder: Path,
    name: str,
    evaluate: Callable[[list[Sample]], list[float]],
    *,
    at_once: int = 1,
) -> None:
    """Try configurations, chosen by TPE (Bergstra et al., 2011), until the study has `n_trials`.

    The folder keeps what was tried, so that an interrupted search resumes. Samples that were being
    evaluated are evaluated first.

    plan (Plan): The rates and strategies to choose from.
    search (Search): The other settings to choose.
    folder (Path): Folder of the sweep. One file in it has all its studies.
    name (str): Name of the study.
    evaluate (Callable): Samples -> their F1 on dev, which is maximised.
    at_once (int): Number of samples to evaluate together.
    RAISES (BioclinError): Optuna is not installed, its file is damaged, or the study has other
        ranges.
    """
    optuna = _import_optuna()
    _repair(folder)
    storage = _open_storage(folder)
    study = optuna.create_study(
        storage=storage, study_name=name, direction="maximize", load_if_exists=True
    )
    running = optuna.trial.TrialState.RUNNING
    interrupted = [trial._trial_id for trial in study.trials if trial.state == running]
    trials = [optuna.trial.Trial(study, number) for number in interrupted]
    while trials or len(study.trials) < search.n_trials:
        n_trials = len(study.trials)
        # A seed for each batch, so that a resumed search equals one that was never interrupted.
        study.sampler = optuna.samplers.TPESampler(
            seed=search.seed + n_trials, constant_liar=at_once > 1
        )
        trials = trials or [study.ask() for _ in range(min(at_once, search.n_trials - n_trials))]
        samples = [_suggest(trial, plan, search) for trial in trials]
        for trial, score in zip(trials, evaluate(samples), strict=True):
            study.tell(trial, score)
        trials = []


def read_samples(folder: Path, name: str) -> list[Sample]:
    """Read the samples of a study, those being evaluated included; none if there is no study."""
    if not (folder / JOURNAL).exists():
        return []
    optuna = _import_optuna()
    storage = _open_storage(folder)
    if name not in optuna.get_all_study_names(storage):
        return []
    study = optuna.load_study(storage=storage, study_name=name)
    return [_make_sample(trial) for trial in study.trials if "strategy" in trial.params]


def _suggest(trial: Any, plan: Plan, search: Search) -> Sample:
    """Let Optuna choose a sample, or read the one that it has chosen for this trial."""
    try:
        rates = list(plan.learn_rates)  # one list, see `Plan`
        trial.suggest_float("learn_rate", min(rates), max(rates), log=True)
        trial.suggest_categorical("strategy", list(plan.strategies))
        for key, values in search.settings.items():
            if values.choices:
                trial.suggest_categorical(key, values.choices)
            elif isinstance(values.low, int) and isinstance(values.high, int):
                trial.suggest_int(key, values.low, values.high, log=values.log)
            else:
                trial.suggest_float(key, values.low, values.high, log=values.log)
    except ValueError as error:
        raise BioclinError(
            f"The search in this folder had other ranges ({error}): give another folder with -o"
        ) from None
    return _make_sample(trial)


def _make_sample(trial: Any) -> Sample:
    settings = dict(trial.params)
    return Sample(trial.number, settings.pop("strategy"), settings.pop("learn_rate"), settings)


def _open_storage(folder: Path) -> Any:
    journal = _import_optuna().storages.journal
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return journal.JournalStorage(journal.JournalFileBackend(str(folder / JOURNAL)))
    except Exception as error:  # JSON errors, unknown operations, missing keys
        raise BioclinError(
            f"{folder / JOURNAL}: is damaged ({type(error).__name__}); start the search again in "
            "a new folder"
        ) from None


def _repair(folder: Path) -> None:
    """Remove what a killed run has left of Optuna's file: its lock, and half of a line, to which
    the next line would be added. The folder is locked by `grow_folder`."""
    file = folder / JOURNAL
    file.with_name(f"{JOURNAL}.lock").unlink(missing_ok=True)
    if file.is_file():
        content = file.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(file, content.rfind(b"\n") + 1)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise BioclinError(
            "A search needs Optuna: pip install 'spacy-bioclin[sweep]', or remove `search` to run "
            "the grid"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
