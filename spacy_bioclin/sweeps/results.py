"""The results of trials, each a JSON file in the trial's folder."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import BioclinError
from ..outputs import write_atomic
from ..runs import read_object
from .plan import Plan, Trial

TRIALS, RESULT = "trials", "result.json"
REPORT = ("summary.json", "tables.md", "report.html")  # beside the trials
KEYS = {"trial", "status", "error", "dev", "test", "settings"}  # that every result has
DONE, DIVERGED, CRASHED = "done", "diverged", "crashed"

Result = dict[str, Any]


def get_folder(out: Path, trial: Trial) -> Path:
    """Get the folder of a trial in the folder of a sweep."""
    return out / TRIALS / trial.name


def make_result(plan: Plan, trial: Trial, status: str = DONE, error: str | None = None) -> Result:
    """Make a result without scores."""
    return {
        "trial": trial.to_dict(),
        "status": status,
        "error": error,
        "dev": None,
        "test": None,
        "curve": [],
        "settings": plan.get_settings(trial),
    }


def get_value(scores: Mapping[str, Any]) -> float:
    """Read the score of a split: the metric of the task, or F1 in results of earlier versions."""
    value: float = scores["value"] if "value" in scores else scores["f"]
    return value


def read_results(out: Path, trials: Iterable[Trial]) -> list[Result]:
    """Read the results of the trials that have one, in their order.

    RAISES (BioclinError): A result is damaged, or belongs to another trial.
    """
    paths = {trial: get_folder(out, trial) / RESULT for trial in trials}
    return [_read_result(path, trial) for trial, path in paths.items() if path.exists()]


def _read_result(path: Path, trial: Trial) -> Result:
    result = read_object(path)
    if not result.keys() >= KEYS or {"fold": "", **result["trial"]} != trial._asdict():
        raise BioclinError(
            f"{path}: is damaged or belongs to another trial; delete it, and the trial runs again"
        )
    return result


def write_result(out: Path, result: Result) -> None:
    """Write the result of a trial into its folder."""
    path = get_folder(out, Trial(**result["trial"])) / RESULT
    write_atomic(path, json.dumps(result, indent=2) + "\n")


def find_missing(plan: Plan, out: Path, trials: Sequence[Trial]) -> list[Trial]:
    """Find the trials that have no result or have crashed.

    RAISES (BioclinError): The folder has a trial of the same name with other settings.
    """
    finished = set()
    for result in read_results(out, trials):
        trial = Trial(**result["trial"])
        settings = json.loads(json.dumps(plan.get_settings(trial)))
        for key, old in result["settings"].items():
            if old != settings.get(key):
                raise BioclinError(
                    f"{get_folder(out, trial)} was run with {key} = {old!r}, which is "
                    f"{settings.get(key)!r} now: give another folder with -o, or delete that one"
                )
        if result["status"] != CRASHED:
            finished.add(trial)
    return [trial for trial in trials if trial not in finished]
