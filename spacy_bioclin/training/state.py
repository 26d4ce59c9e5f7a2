"""Save and load the state of training: pipeline, optimizer, counters and random generators.

Nothing in it is unpickled but tensors and plain values, so a state is data, as a pipeline is.
"""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from spacy.language import Language
from thinc.api import Model, Optimizer, get_current_ops
from thinc.util import to_numpy

from ..about import __version__
from ..errors import BioclinError
from ..files import hash_files
from ..outputs import open_folder
from ..runs import RUN, check_made_from, read_object
from ..torch_bridge.averages import get_averages, set_averages
from ..torch_bridge.shim import TorchShim
from ..vocab import save_pipeline

STATE = "state"
PIPELINE, VALUES = "pipeline", "values.pt"
ARRAYS = ("mom1", "mom2", "averages")  # attributes of thinc's Adam: weight -> array
COUNTS = "nr_update"  # weight -> number of updates
FORMAT = 3  # of the state; a later one has another number

Evaluation = tuple[float, dict[str, Any]]  # main score, all scores


class NotResumable(BioclinError):
    """There is a state, but it is damaged, or belongs to another training."""


class Progress(NamedTuple):
    """How far training has come.

    steps (int): Number of updates done.
    evaluations (list[Evaluation]): The scores of each evaluation on dev.
    """

    steps: int
    evaluations: list[Evaluation]


def save_state(
    nlp: Language,
    optimizer: Optimizer,
    progress: Progress,
    output: Path,
    made_from: Mapping[str, Any],
) -> None:
    """Write the folder `output/state`. An interruption leaves either the old or the new one.

    made_from (Mapping[str, Any]): Settings and hashes of the corpora, as JSON. A run with others
        cannot resume from this state.
    """
    values = {
        "steps": progress.steps,
        "evaluations": json.dumps(progress.evaluations, default=_to_plain),
        "torch": [shim.get_training_state() for shim in _shims(nlp)],
        "averages": [get_averages(shim.id, optimizer) for shim in _shims(nlp)],
        "thinc": {
            key: {
                COUNTS: optimizer.nr_update[weight],
                **{
                    name: torch.from_numpy(to_numpy(getattr(optimizer, name)[weight]))
                    for name in ARRAYS
                    if weight in (getattr(optimizer, name) or {})
                },
            }
            for key, weight in _weights(nlp)
            if weight in optimizer.mom1
        },
        "generators": _get_generators(),
    }
    with open_folder(output / STATE) as folder:
        save_pipeline(nlp, folder / PIPELINE)
        torch.save(values, folder / VALUES)
        files = {name: hash_files(folder / name) for name in (PIPELINE, VALUES)}
        run = {"format": FORMAT, "version": __version__, "files": files, "made_from": made_from}
        (folder / RUN).write_text(json.dumps(run, indent=2) + "\n", "utf-8")


def find_state(output: Path) -> Path | None:
    """Find the state in the output of a training.

    RETURNS (Path | None): Its folder; None if there is none.
    """
    # Up to 0.2, an interruption between two renames left the old state under another name.
    candidates = (output / STATE, output / f".{STATE}.old")
    return next((folder for folder in candidates if (folder / VALUES).exists()), None)


def load_state(
    nlp: Language, optimizer: Optimizer, output: Path, made_from: Mapping[str, Any]
) -> tuple[Progress, dict[str, Any]]:
    """Restore pipeline and optimizer from `output/state`.

    made_from (Mapping[str, Any]): See `save_state`.
    RETURNS (tuple): The progress, and the states of the random generators for `set_generators`.
    RAISES (BioclinError): There is no state.
    RAISES (NotResumable): It is damaged, or it belongs to another run.
    """
    folder = find_state(output)
    if folder is None:
        raise BioclinError(
            f"{output / STATE}: no state of a training run, so there is nothing to resume; it is "
            "written at every evaluation"
        )
    if not (folder / RUN).is_file():
        raise NotResumable(
            f"{folder}: was written by an earlier version, which does not say what it was made "
            "from; start again without --resume"
        )
    try:
        run = read_object(folder / RUN)
        check_made_from(folder, run.get("made_from", {}), made_from)
    except BioclinError as error:
        raise NotResumable(str(error)) from None
    if run.get("format") != FORMAT:
        raise NotResumable(
            f"{folder}: has format {run.get('format')}, this version reads {FORMAT}; resume with "
            f"spacy-bioclin {run.get('version')}, or start again without --resume"
        )
    for name in (PIPELINE, VALUES):
        if run.get("files", {}).get(name) != hash_files(folder / name):
            raise NotResumable(
                f"{folder / name}: is damaged or was changed; start again without --resume"
            )
    try:
        return _restore(nlp, optimizer, folder)
    except BioclinError as error:
        raise BioclinError(
            f"{folder}: cannot be read: {error}; start again without --resume"
        ) from None
    except Exception as error:  # pickle, torch, spaCy: all mean "not what save_state wrote"
        raise NotResumable(
            f"{folder}: cannot be read ({type(error).__name__}); start again without --resume"
        ) from None


def _restore(nlp: Language, optimizer: Optimizer, folder: Path) -> tuple[Progress, dict[str, Any]]:
    nlp.from_disk(folder / PIPELINE)
    values = torch.load(folder / VALUES, weights_only=True, map_location="cpu")
    for shim, state in zip(_shims(nlp), values["torch"], strict=True):
        shim.set_training_state(state)
    for shim, state in zip(_shims(nlp), values["averages"], strict=True):
        set_averages(shim.id, optimizer, state)
    ops = get_current_ops()
    for key, weight in _weights(nlp):
        for name, value in values["thinc"].get(key, {}).items():
            kept = value if name == COUNTS else ops.asarray(value.numpy())
            getattr(optimizer, name)[weight] = kept
    evaluations = [(score, scores) for score, scores in json.loads(values["evaluations"])]
    return Progress(values["steps"], evaluations), values["generators"]


def _to_plain(value: Any) -> Any:
    """Convert a score that is no JSON: a number of numpy, or nothing."""
    return value.item() if isinstance(value, np.generic) else None


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
    state: Any = np.random.get_state()
    kind, keys, *rest = state
    return {
        "python": random.getstate(),
        "numpy": (kind, keys.tolist(), *rest),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_generators(states: dict[str, Any]) -> None:
    """Restore the random generators, so that they draw what they drew after `save_state`."""
    kind, keys, *rest = states["numpy"]
    random.setstate(states["python"])
    np.random.set_state((kind, np.array(keys, np.uint32), *rest))
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
