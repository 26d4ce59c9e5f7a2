"""What training needs to go on after a kill, beside the pipeline: moments, counters, generators."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from spacy.language import Language
from thinc.api import Model, Optimizer

from ..errors import BioclinError

STATE = "state"
PIPELINE, VALUES = "pipeline", "values.pt"
# What thinc's Adam keeps per weight.
MOMENTS = ("mom1", "mom2", "nr_update")

Evaluation = tuple[float, dict[str, Any]]  # main score, all scores


class Progress(NamedTuple):
    """How far training has come.

    steps (int): Updates done.
    evaluations (list[Evaluation]): What each evaluation on dev gave.
    """

    steps: int
    evaluations: list[Evaluation]


def save_state(nlp: Language, optimizer: Optimizer, progress: Progress, output: Path) -> None:
    """Write `output/state`; a kill at any moment leaves the old one or the new one."""
    partial, old = output / f".{STATE}.partial", output / f".{STATE}.old"
    for folder in (partial, old):
        shutil.rmtree(folder, ignore_errors=True)
    partial.mkdir(parents=True)
    nlp.to_disk(partial / PIPELINE)
    values = {
        "progress": tuple(progress),
        "torch": [shim.get_training_state() for _, shim in _shims(nlp)],
        "thinc": {
            key: {name: getattr(optimizer, name)[weight] for name in MOMENTS}
            for key, weight in _weights(nlp)
            if weight in optimizer.mom1
        },
        "generators": _get_generators(),
    }
    torch.save(values, partial / VALUES)
    if (output / STATE).exists():
        (output / STATE).rename(old)
    partial.rename(output / STATE)
    shutil.rmtree(old, ignore_errors=True)


def load_state(
    nlp: Language, optimizer: Optimizer, output: Path
) -> tuple[Progress, dict[str, Any]]:
    """Bring pipeline and optimizer back to where `save_state` left them.

    RETURNS (tuple): Progress, and the random generators for `set_generators`.
    RAISES (BioclinError): There is no state.
    """
    # A kill between the two renames leaves the old state under its other name.
    candidates = (output / STATE, output / f".{STATE}.old")
    folder = next((folder for folder in candidates if (folder / VALUES).exists()), None)
    if folder is None:
        raise BioclinError(
            f"{output / STATE}: no state of a training run, so there is nothing to resume; it is "
            "written at every evaluation"
        )
    nlp.from_disk(folder / PIPELINE)
    values = torch.load(folder / VALUES, weights_only=False, map_location="cpu")
    for (_, shim), state in zip(_shims(nlp), values["torch"], strict=True):
        shim.set_training_state(state)
    for key, weight in _weights(nlp):
        for name, value in values["thinc"].get(key, {}).items():
            getattr(optimizer, name)[weight] = value
    return Progress(*values["progress"]), values["generators"]


def _models(nlp: Language) -> Iterator[tuple[str, Model]]:
    """YIELDS (tuple): A place in the pipeline, the same in every process, and the model there."""
    for pipe, component in nlp.components:
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for i, node in enumerate(model.walk()):
                yield f"{pipe}.{i}", node


def _shims(nlp: Language) -> Iterator[tuple[str, Any]]:
    for place, node in _models(nlp):
        for shim in node.shims:
            if hasattr(shim, "get_training_state"):
                yield place, shim


def _weights(nlp: Language) -> Iterator[tuple[str, tuple[int, str]]]:
    """YIELDS (tuple): A weight's place, and its key in thinc's optimizer in this process."""
    for place, node in _models(nlp):
        for name in node.param_names:
            yield f"{place}.{name}", (node.id, name)


def _get_generators() -> dict[str, Any]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": cuda,
    }


def set_generators(states: dict[str, Any]) -> None:
    """Draw the random numbers that were drawn after `save_state`."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
