"""A strategy at work on a module: which weights learn, their groups, and the rates of each step."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from thinc.api import Optimizer
from torch import nn

from .levels import find_levels
from .strategy import Strategy, check_layers, rate_factor, select

# Weights that weight decay leaves alone: biases and layer norms (Devlin et al. 2019, appendix A).
MAX_DIMS_WITHOUT_DECAY = 1


class WeightGroup(NamedTuple):
    """Weights with the same rate and decay.

    rate (float): Factor on the learning rate.
    decays (bool): Whether weight decay pulls them to zero.
    """

    rate: float
    decays: bool
    weights: list[nn.Parameter]


class Tuning:
    """What a strategy makes of a module's weights. Frozen ones no longer want gradients, so that
    the backward pass ends above them.

    transformer (nn.Module): An encoder of the `transformers` library, or a head.
    RAISES (BioclinError): If the strategy does not fit the encoder.
    """

    def __init__(self, transformer: nn.Module, strategy: Strategy) -> None:
        self.strategy = strategy
        self._levels = find_levels(transformer)
        self._n_layers = len(self._levels.layers)
        check_strategy(strategy, transformer)
        for name, weight in transformer.named_parameters():
            if self._is_frozen(self._levels.of[name]):
                weight.requires_grad_(False)
        self.groups = list(self._make_groups(transformer))

    def _is_frozen(self, level: int) -> bool:
        frozen = self.strategy.freeze_layers
        if frozen and frozen == self._n_layers:
            return True
        return level <= frozen if frozen else level == 0 and self.strategy.freeze_embeddings

    @property
    def learns(self) -> bool:
        """Whether any weight learns."""
        return bool(self.groups)

    def _make_groups(self, transformer: nn.Module) -> Iterator[WeightGroup]:
        weights = dict(transformer.named_parameters())
        patterns = self.strategy.no_decay
        if patterns is None:
            spared = {n for n, weight in weights.items() if weight.ndim <= MAX_DIMS_WITHOUT_DECAY}
        else:
            spared = select("no_decay", patterns, weights)
        found: dict[tuple[float, bool], list[nn.Parameter]] = {}
        for name, weight in weights.items():
            if weight.requires_grad:
                level = self._levels.of[name]
                rate = rate_factor(self.strategy.layer_decay, level, self._n_layers)
                found.setdefault((rate, name not in spared), []).append(weight)
        for rate, decays in sorted(found, reverse=True):
            yield WeightGroup(rate, decays, found[rate, decays])

    def make_adamw(self, optimizer: Optimizer) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            [
                {"params": group.weights, "weight_decay": float(optimizer.L2) * group.decays}
                for group in self.groups
            ],
            betas=(float(optimizer.b1), float(optimizer.b2)),
            eps=float(optimizer.eps),
            fused=True,
        )

    def set_rates(self, adamw: torch.optim.AdamW, optimizer: Optimizer, learn_rate: float) -> None:
        """Tell AdamW the rates of its next step.

        Without bias correction the step of BERT's code of 2018 is lr·m / (√v + ε), where AdamW's is
        lr/(1-β₁ᵗ)·m / (√v/√(1-β₂ᵗ) + ε): so the corrections go into lr and ε, and out of the decay.
        """
        for ours, group in zip(self.groups, adamw.param_groups, strict=True):
            group["lr"] = learn_rate * ours.rate
            if not self.strategy.bias_correction:
                beta1, beta2 = group["betas"]
                t = 1 + _steps(adamw, ours.weights)
                first, second = 1 - beta1**t, math.sqrt(1 - beta2**t)
                group["lr"] *= first / second
                group["eps"] = float(optimizer.eps) / second
                group["weight_decay"] = float(optimizer.L2) * ours.decays * second / first


def check_strategy(strategy: Strategy, transformer: nn.Module) -> None:
    """RAISES (BioclinError): If the strategy names layers or weights that the encoder lacks."""
    levels = find_levels(transformer)
    check_layers(strategy, len(levels.layers), prefix=levels.prefix)
    select("no_decay", strategy.no_decay or [], levels.of)


def _steps(adamw: torch.optim.AdamW, weights: list[nn.Parameter]) -> int:
    """RETURNS (int): Steps that AdamW has taken with these weights."""
    states = [adamw.state[w] for w in weights if w.grad is not None]
    return max((int(state["step"]) for state in states if state), default=0)
