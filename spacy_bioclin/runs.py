"""Long runs: a folder that grows, has one writer at a time, and states what it is made from.

An output that is made in one go is an `outputs.Output`. What takes hours is written bit by bit, so
that it can be resumed; then the folder has to say which run it belongs to.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import BioclinError
from .interrupts import tell
from .outputs import grow_folder, write_atomic

RUN = "run.json"
# What a run makes before its first checkpoint: it may be begun again.
BEGUN = (".lock", RUN, "blocks")
SHOWN = 60  # characters of a value in a message


def is_first_process() -> bool:
    """Check whether this process writes and prints, of those that `torchrun` starts."""
    return not int(os.environ.get("RANK", "0"))


@contextmanager
def open_run(
    path: Path, made_from: Mapping[str, Any], *, inputs: Iterable[Path], resume: bool
) -> Iterator[None]:
    """Work in the folder of a run, new or to be resumed, while no other process does.

    path (Path): The folder. It is new or empty, or holds a run with the same `made_from`.
    made_from (Mapping[str, Any]): All that the result depends on, as JSON: settings, and hashes of
        what is read. It is stored in run.json.
    inputs (Iterable[Path]): What is read. The folder must not be one of them, nor hold one.
    resume (bool): Whether the user wants to go on with what is in the folder.
    RAISES (BioclinError): Another process works there, the folder holds something else, or it holds
        a run and `resume` is False or `made_from` differs.
    """
    with grow_folder(path, inputs=inputs):
        if check_new_run(path, resume=resume):
            check_made_from(path, read_object(path / RUN), made_from)
        else:
            write_atomic(path / RUN, json.dumps(made_from, indent=2) + "\n")
        tell(lambda: f"what {path} has is kept; run the same command again with --resume")
        yield


def check_new_run(path: Path, *, resume: bool) -> bool:
    """Check that a run may work in a folder, before it has read anything. See `open_run`.

    RETURNS (bool): Whether the folder holds a run that has made something worth keeping.
    RAISES (BioclinError): It holds something else, or `resume` is False.
    """
    if not path.is_dir() or not any(file.name not in BEGUN for file in path.iterdir()):
        return False
    if not (path / RUN).is_file():
        raise BioclinError(
            f"{path}: holds other files than a run of this version (it has no {RUN}); give a new "
            "folder"
        )
    if not resume:
        raise BioclinError(
            f"{path}: holds a run with checkpoints; resume it with --resume, or give a new folder"
        )
    return True


def check_made_from(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that a resumed run has the settings and inputs of the interrupted one.

    path (Path): The folder of the run, for the message.
    before, now (Mapping[str, Any]): What each is made from, as JSON.
    RAISES (BioclinError): It has others; the message names the first.
    """
    if difference := find_difference(before, now):
        raise BioclinError(
            f"{path}: {difference}, so resuming would give another result; resume with what it "
            "was started with, or start again in a new folder"
        )


def find_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe the first key whose values differ; "" if none does.

    before (Mapping[str, Any]): Read from JSON.
    now (Mapping[str, Any]): To be written as JSON.
    """
    now = json.loads(json.dumps(now))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            return f"{key} was {_show(before.get(key))} and is {_show(now.get(key))}"
    return ""


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object that this package wrote.

    RAISES (BioclinError): It is missing or damaged.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise BioclinError(f"{path}: cannot be read ({reason}); {_REMEDY}") from None
    if not isinstance(content, dict):
        raise BioclinError(f"{path}: is damaged (no JSON object); {_REMEDY}")
    return content


_REMEDY = "remove what was made there and start again"
