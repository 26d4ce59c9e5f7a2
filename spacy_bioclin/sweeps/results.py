"""The results of trials, each a JSON file in the trial's folder."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import BioclinError
from ..files import write_atomic
from .plan import Plan, Trial

RESULT = "result.json"
DONE, DIVERGED, CRASHED = "done", "diverged", "crashed"

Result = dict[str, Any]


def get_folder(out: Path, trial: Trial) -> Path:
    """Get the folder of a trial in the folder of a sweep."""
    return out / "trials" / trial.name


def make_result(plan: Plan, trial: Trial, status: str = DONE, error: str | None = None) -> Result:
    """Make a result without scores."""
    return {
        "trial": trial._asdict(),
        "status": status,
        "error": error,
        "dev": None,
        "test": None,
        "curve": [],
        "settings": plan.get_settings(trial),
    }


def read_results(out: Path, trials: Iterable[Trial]) -> list[Result]:
    """Read the results of the trials that have one, in their order."""
    paths = (get_folder(out, trial) / RESULT for trial in trials)
    return [json.loads(path.read_text("utf-8")) for path in paths if path.exists()]


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
