"""Weights of tasks that follow their losses."""

import math
from collections.abc import Collection, Mapping, Sequence

TEMPERATURE = 2.0  # as in the paper; the larger, the more even are the weights


def average_weights(
    tasks: Collection[str], losses: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """Weight tasks by how slowly their losses fall: the dynamic weight average (Liu et al. 2019,
    End-to-End Multi-Task Learning with Attention, eq. 7).

    tasks (Collection[str]): Names of the tasks.
    losses (Sequence[Mapping[str, float]]): Mean loss of each task between evaluations, the oldest
        first. The first is left out: it is of one batch.
    RETURNS (dict[str, float]): Task -> weight; their mean is 1. All are 1 until each task has two
        losses.
    """
    rates = {}
    for task in tasks:
        known = [part[task] for part in losses[1:] if task in part]
        if len(known) < 2 or known[-2] <= 0:
            return dict.fromkeys(tasks, 1.0)
        rates[task] = known[-1] / known[-2]
    top = max(rates.values())
    powers = {task: math.exp((rate - top) / TEMPERATURE) for task, rate in rates.items()}
    total = sum(powers.values())
    return {task: len(powers) * power / total for task, power in powers.items()}
