"""LAMB: a step worked by hand."""

import math

import pytest
import torch

from spacy_bioclin.pretraining.large.lamb import Lamb


def test_first_step_by_hand() -> None:
    # Weights (3, 4) of length 5; gradient (1, -2). Corrected moments of the first step are the
    # gradient and its square, so that Adam's step is (1, -1); with decay 0.1: (1.3, -0.6).
    weights = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    weights.grad = torch.tensor([1.0, -2.0])
    Lamb([weights], lr=0.01, eps=0.0, weight_decay=0.1).step()
    ratio = 5 / math.hypot(1.3, 0.6)
    assert weights.tolist() == pytest.approx([3 - 0.01 * ratio * 1.3, 4 + 0.01 * ratio * 0.6])


def test_without_decay_it_is_adam() -> None:
    start, rng = torch.randn(7, generator=torch.Generator().manual_seed(0)), torch.manual_seed(1)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    lamb = Lamb([ours], lr=0.01, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.0)
    adam = torch.optim.Adam([theirs], lr=0.01, betas=(0.9, 0.98), eps=1e-6)
    for _ in range(5):
        gradient = torch.randn(7, generator=rng)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        lamb.step()
        adam.step()
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_weights_of_zero_take_adams_step() -> None:
    weights = torch.nn.Parameter(torch.zeros(2))
    weights.grad = torch.tensor([5.0, -5.0])
    Lamb([weights], lr=0.1, eps=0.0).step()
    assert weights.tolist() == pytest.approx([-0.1, 0.1])
