"""Moving averages of torch weights, kept where thinc's optimizer keeps those of its own weights.

spaCy's training loop evaluates and saves a pipeline with `optimizer.averages`, if the optimizer has
`use_averages = true` (Polyak & Juditsky 1992; Izmailov et al. 2018).
"""

from collections.abc import Mapping
from typing import Any

import torch
from thinc.api import Optimizer, get_current_ops, torch2xp, xp2torch
from thinc.util import to_numpy

# Begins the name of an average, so that no weight of thinc's own has the same key.
PREFIX = "torch."
MAX_DECAY = 0.9999  # thinc's


def update_averages(owner: int, weights: Mapping[str, torch.Tensor], optimizer: Optimizer) -> None:
    """Move the averages of weights toward the weights after a step, in one call for all of them.

    The share of the old average is thinc's, min(0.9999, (1 + t) / (10 + t)) in step t: about the
    last ninth of the updates counts, however long the training is. Unlike thinc's, an average
    begins at the weight instead of at zero, which would scale the weights of the first evaluation.

    owner (int): Id of the shim that has the weights.
    weights (Mapping[str, Tensor]): Name -> weight, fp32. They are the same in every call.
    optimizer (Optimizer): Its `averages` get an array for each weight, its `nr_update` their steps.
    """
    averages: Any = optimizer.averages
    values, found, t = [], [], 0
    for name, weight in weights.items():
        key = (owner, PREFIX + name)
        value = weight.detach()
        if key not in averages:
            averages[key] = torch2xp(value.clone())
        optimizer.nr_update[key] += 1
        t = optimizer.nr_update[key]
        values.append(value)
        found.append(xp2torch(averages[key], device=value.device))
    torch._foreach_lerp_(found, values, 1 - min(MAX_DECAY, (1 + t) / (10 + t)))


def find_averages(owner: int, averages: Mapping[Any, Any] | None) -> dict[str, Any]:
    """Find the averages of a shim's weights.

    averages (Mapping | None): `optimizer.averages`, or what `use_params` gets.
    RETURNS (dict[str, Any]): Name of a weight -> array.
    """
    return {
        name.removeprefix(PREFIX): value
        for (node, name), value in (averages or {}).items()
        if node == owner and name.startswith(PREFIX)
    }


def get_averages(owner: int, optimizer: Optimizer) -> dict[str, Any]:
    """Collect the averages of a shim's weights for the state of a training.

    RETURNS (dict[str, Any]): "steps" (int) and "weights" (name -> Tensor).
    """
    found = find_averages(owner, optimizer.averages)
    steps = max((optimizer.nr_update[owner, PREFIX + name] for name in found), default=0)
    weights = {name: torch.from_numpy(to_numpy(value)) for name, value in found.items()}
    return {"steps": steps, "weights": weights}


def set_averages(owner: int, optimizer: Optimizer, state: Mapping[str, Any]) -> None:
    """Undo `get_averages`, for a shim that has the same weights."""
    averages: Any = optimizer.averages
    for name, value in state["weights"].items():
        key = (owner, PREFIX + name)
        averages[key] = get_current_ops().asarray(value.numpy())
        optimizer.nr_update[key] = state["steps"]
