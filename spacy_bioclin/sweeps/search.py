"""A search by Optuna in the place of a grid: what to try next, judged by what was tried on dev."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BioclinError

JOURNAL = "search.journal"
KEYS = ("n_trials", "seed", "settings")


class Sample(NamedTuple):
    """One configuration to try.

    number (int): Counts from 0 in each study.
    strategy (str): One of the plan's.
    settings (dict[str, Any]): Keys of the strategy section, or paths in the config.
    """

    number: int
    strategy: str
    learn_rate: float
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        return f"search-{self.number}"


class Space(NamedTuple):
    """Where to search.

    n_trials (int): How many configurations.
    seed (int): Of the sampler (TPE; Bergstra et al., 2011).
    learn_rates (tuple[float, float]): Ends of its range, which is searched on a logarithmic scale.
    strategies (list[str]): To choose from.
    settings (dict): Key -> {"low", "high", "log"} or {"choices"}.
    """

    n_trials: int
    seed: int
    learn_rates: tuple[float, float]
    strategies: list[str]
    settings: dict[str, dict[str, Any]]


def read_space(
    said: Mapping[str, Any], learn_rates: Sequence[float], strategies: Sequence[str]
) -> Space:
    """Read the section `search` of a sweep.

    said (Mapping): `n_trials`; perhaps `seed`, and `settings` with a range each.
    RAISES (BioclinError): A key is unknown or missing, or a range is none.
    """
    if unknown := sorted(set(said) - set(KEYS)):
        raise BioclinError(f"search.{unknown[0]} is unknown; a search has {', '.join(KEYS)}")
    if not isinstance(said.get("n_trials"), int) or said["n_trials"] < 1:
        raise BioclinError(f"search.n_trials is {said.get('n_trials')!r}, want a number from 1")
    settings = {key: _range(key, limits) for key, limits in (said.get("settings") or {}).items()}
    rates = min(learn_rates), max(learn_rates)
    return Space(said["n_trials"], said.get("seed", 0), rates, list(strategies), settings)


def _range(key: str, limits: Any) -> dict[str, Any]:
    limits = limits if isinstance(limits, dict) else {}
    if set(limits) == {"choices"} and isinstance(limits["choices"], list) and limits["choices"]:
        return limits
    if {"low", "high"} <= set(limits) <= {"low", "high", "log"}:
        ends = limits["low"], limits["high"]
        if all(isinstance(end, int | float) for end in ends) and ends[0] <= ends[1]:
            return limits
    raise BioclinError(
        f"search.settings.{key} is {limits!r}, want {{low: 0.7, high: 1.0}}, with log: true for "
        "a logarithmic scale, or {choices: [0.1, 0.3]}"
    )


def search(
    space: Space,
    folder: Path,
    name: str,
    evaluate: Callable[[list[Sample]], list[float]],
    *,
    at_once: int = 1,
) -> None:
    """Try configurations until the study has `n_trials`. What was tried is remembered in the
    folder, so that a search that was killed goes on; those it was at are evaluated first.

    folder (Path): One file in it holds the studies of a sweep.
    name (str): Of the study.
    evaluate (Callable): Samples -> their F1 on dev, to be made as large as possible.
    at_once (int): How many samples to evaluate together.
    RAISES (BioclinError): If Optuna is not installed, or the study has other ranges.
    """
    optuna = _optuna()
    study = optuna.create_study(
        storage=_storage(folder), study_name=name, direction="maximize", load_if_exists=True
    )
    running = optuna.trial.TrialState.RUNNING
    cut_short = [one._trial_id for one in study.trials if one.state == running]
    trials = [optuna.trial.Trial(study, number) for number in cut_short]
    while trials or len(study.trials) < space.n_trials:
        n_trials = len(study.trials)
        # A seed for each, so that a search that went on is the search that was never stopped.
        study.sampler = optuna.samplers.TPESampler(
            seed=space.seed + n_trials, constant_liar=at_once > 1
        )
        trials = trials or [study.ask() for _ in range(min(at_once, space.n_trials - n_trials))]
        samples = [_suggest(trial, space) for trial in trials]
        for trial, value in zip(trials, evaluate(samples), strict=True):
            study.tell(trial, value)
        trials = []


def read_samples(folder: Path, name: str) -> list[Sample]:
    """RETURNS (list[Sample]): What a study has tried or is at; empty if there is none."""
    if not (folder / JOURNAL).exists():
        return []
    optuna = _optuna()
    storage = _storage(folder)
    if name not in optuna.get_all_study_names(storage):
        return []
    study = optuna.load_study(storage=storage, study_name=name)
    return [_sample(trial) for trial in study.trials if "strategy" in trial.params]


def _suggest(trial: Any, space: Space) -> Sample:
    """RETURNS (Sample): What Optuna chooses, or has chosen, for this trial of its."""
    low, high = space.learn_rates
    try:
        trial.suggest_float("learn_rate", low, high, log=True)
        trial.suggest_categorical("strategy", space.strategies)
        for key, limits in space.settings.items():
            if "choices" in limits:
                trial.suggest_categorical(key, limits["choices"])
            else:
                ends = limits["low"], limits["high"]
                whole = all(isinstance(end, int) for end in ends)
                suggest = trial.suggest_int if whole else trial.suggest_float
                suggest(key, *ends, log=limits.get("log", False))
    except ValueError as error:
        raise BioclinError(
            f"The search in this folder had other ranges ({error}): give another folder with -o"
        ) from None
    return _sample(trial)


def _sample(trial: Any) -> Sample:
    settings = dict(trial.params)
    return Sample(trial.number, settings.pop("strategy"), settings.pop("learn_rate"), settings)


def _storage(folder: Path) -> Any:
    journal = _optuna().storages.journal
    folder.mkdir(parents=True, exist_ok=True)
    return journal.JournalStorage(journal.JournalFileBackend(str(folder / JOURNAL)))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise BioclinError(
            "A search needs Optuna: pip install 'spacy-bioclin[sweep]', or leave `search` out and "
            "give a grid"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
