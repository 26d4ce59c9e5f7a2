"""Save and load the state of training: pipeline, optimizer, counters and random generators."""

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
from ..torch_bridge.shim import TorchShim

STATE = "state"
PIPELINE, VALUES = "pipeline", "values.pt"
MOMENTS = ("mom1", "mom2", "nr_update")  # attributes of thinc's Adam: weight -> value

Evaluation = tuple[float, dict[str, Any]]  # main score, all scores


class Progress(NamedTuple):
    """How far training has come.

    steps (int): Number of updates done.
    evaluations (list[Evaluation]): The scores of each evaluation on dev.
    """

    steps: int
    evaluations: list[Evaluation]


def save_state(nlp: Language, optimizer: Optimizer, progress: Progress, output: Path) -> None:
    """Write the folder `output/state`. An interruption leaves either the old or the new one."""
    partial, old = output / f".{STATE}.partial", output / f".{STATE}.old"
    for folder in (partial, old):
        shutil.rmtree(folder, ignore_errors=True)
    partial.mkdir(parents=True)
    nlp.to_disk(partial / PIPELINE)
    values = {
        "progress": tuple(progress),
        "torch": [shim.get_training_state() for shim in _shims(nlp)],
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
    """Restore pipeline and optimizer from `output/state`.

    RETURNS (tuple): The progress, and the states of the random generators for `set_generators`.
    RAISES (BioclinError): There is no state.
    """
    # An interruption between the two renames leaves the old state under its other name.
    candidates = (output / STATE, output / f".{STATE}.old")
    folder = next((folder for folder in candidates if (folder / VALUES).exists()), None)
    if folder is None:
        raise BioclinError(
            f"{output / STATE}: no state of a training run, so there is nothing to resume; it is "
            "written at every evaluation"
        )
    nlp.from_disk(folder / PIPELINE)
    values = torch.load(folder / VALUES, weights_only=False, map_location="cpu")
    for shim, state in zip(_shims(nlp), values["torch"], strict=True):
        shim.set_training_state(state)
    for key, weight in _weights(nlp):
        for name, value in values["thinc"].get(key, {}).items():
            getattr(optimizer, name)[weight] = value
    return Progress(*values["progress"]), values["generators"]


def _models(nlp: Language) -> Iterator[tuple[str, Model]]:
    """Yield each model of the pipeline, with a name that is the same in every process."""
    for pipe, component in nlp.components:
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for i, node in enumerate(model.walk()):
                yield f"{pipe}.{i}", node


def _shims(nlp: Language) -> list[TorchShim]:
    return [shim for _, node in _models(nlp) for shim in node.shims if isinstance(shim, TorchShim)]


def _weights(nlp: Language) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield the name of each weight and its key in thinc's optimizer in this process."""
    for model, node in _models(nlp):
        for name in node.param_names:
            yield f"{model}.{name}", (node.id, name)


def _get_generators() -> dict[str, Any]:
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_generators(states: dict[str, Any]) -> None:
    """Restore the random generators, so that they draw what they drew after `save_state`."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
