"""What a head for pairs learns from: losses and their gradients, with numbers and tensors only."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

MISSING = -100  # class of a pair that was not annotated


class Scale(NamedTuple):
    """How graded scores are standardised, so that a head learns them at any scale.

    mean, std (float): Of the scores of the training corpus; `std` is above 0.
    """

    mean: float
    std: float

    @staticmethod
    def of(scores: Sequence[float]) -> "Scale":
        """Compute mean and standard deviation (of the population) of at least one score."""
        values = torch.tensor(scores, dtype=torch.float64)
        return Scale(values.mean().item(), values.std(correction=0).item())


def class_loss(scores: Tensor, classes: Sequence[int]) -> tuple[float, Tensor]:
    """Compute the cross-entropy of softmax, the mean over annotated pairs (nats).

    scores (Tensor): Unnormalised log scores, (n_pairs, n_classes).
    classes (Sequence[int]): The class of each pair, or MISSING.
    RETURNS (tuple): The loss, 0 if no pair is annotated, and its gradient by the scores.
    """
    target = torch.tensor(classes, dtype=torch.long, device=scores.device)
    if not bool((target != MISSING).any()):
        return 0.0, torch.zeros_like(scores)
    return _differentiate(scores, lambda x: cross_entropy(x, target, ignore_index=MISSING))


def grade_loss(
    scores: Tensor, grades: Sequence[float | None], scale: Scale
) -> tuple[float, Tensor]:
    """Compute the squared error of standardised scores, the mean over annotated pairs.

    scores (Tensor): Standardised predictions, (n_pairs, 1).
    grades (Sequence[float | None]): The annotated score of each pair; None if there is none.
    RETURNS (tuple): The loss, 0 if no pair is annotated, and its gradient by the scores.
    """
    known = [i for i, grade in enumerate(grades) if grade is not None]
    if not known:
        return 0.0, torch.zeros_like(scores)
    wanted = [(grade - scale.mean) / scale.std for grade in grades if grade is not None]
    target = torch.tensor(wanted, dtype=scores.dtype, device=scores.device)
    return _differentiate(scores, lambda x: mse_loss(x[known, 0], target))


def _differentiate(scores: Tensor, compute: Callable[[Tensor], Tensor]) -> tuple[float, Tensor]:
    leaf = scores.detach().requires_grad_()
    with torch.enable_grad():
        loss = compute(leaf)
        [gradient] = torch.autograd.grad(loss, [leaf])
    return loss.item(), gradient
