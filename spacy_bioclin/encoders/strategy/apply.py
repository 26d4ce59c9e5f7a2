"""Apply a strategy to an encoder: which weights learn, in which groups, at which rates."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from thinc.api import Optimizer
from torch import nn

from ...torch_bridge.step import MAX_DIMS_WITHOUT_DECAY, UpdateRule, WeightGroup
from .levels import find_levels
from .linear import QUERY_AND_VALUE, LoraLinear, add_factors, add_mixout, linear_layers
from .settings import Strategy, check_layers, rate_factor, select


@dataclass(frozen=True)
class LevelGroup(WeightGroup):
    """Weights of one level of the encoder, or of all.

    level (int): See `Levels`.
    rate (float): Factor on the learning rate.
    anchors (list[Tensor]): The pretrained weights, to which they are pulled; may be empty.
    """

    level: int
    rate: float
    anchors: list[torch.Tensor]


class Tuning(UpdateRule):
    """The `UpdateRule` of an encoder.

    Frozen weights get no gradients, so that the backward pass ends above them.

    transformer (nn.Module): An encoder of the `transformers` library.
    state (dict | None): From `get_state`, of the run that this one resumes.
    RAISES (BioclinError): The strategy does not fit the encoder.
    """

    groups: list[LevelGroup]

    def __init__(
        self, transformer: nn.Module, strategy: Strategy, state: dict[str, Any] | None = None
    ) -> None:
        check_strategy(strategy, transformer)
        state = state or {}
        self.strategy = strategy
        self.steps = state.get("steps", 0)
        self._transformer = transformer
        self._levels = find_levels(transformer)
        self._n_layers = len(self._levels.layers)
        for name, weight in transformer.named_parameters():
            if strategy.lora_rank or self._is_frozen(self._levels.of[name]):
                weight.requires_grad_(False)
        if strategy.lora_rank:
            self._add_factors(state.get("factors"))
        device = next(transformer.parameters()).device
        anchors = state.get("anchors") or dict(self._take_anchors())
        self._anchors = {name: weight.to(device) for name, weight in anchors.items()}
        if strategy.mixout:
            for name, layer in linear_layers(transformer).items():
                if f"{name}.weight" in self._anchors:
                    add_mixout(layer, anchor=self._anchors[f"{name}.weight"], p=strategy.mixout)
        super().__init__(list(self._make_groups()))
        self.thaw()

    def _is_frozen(self, level: int) -> bool:
        frozen = self.strategy.freeze_layers
        if frozen and frozen == self._n_layers:
            return True
        return level <= frozen if frozen else level == 0 and self.strategy.freeze_embeddings

    def _add_factors(self, known: dict[str, Any] | None) -> None:
        """Add LoRA's factors to the layers that learn: new ones, or those of the earlier run."""
        layers = linear_layers(self._transformer)
        for name in lora_targets(self.strategy, layers):
            if self._is_frozen(self._levels.of[f"{name}.weight"]):
                continue
            # The earlier run drew them already, so this one must not use up random numbers.
            with torch.random.fork_rng(devices=[], enabled=known is not None):
                add_factors(
                    layers[name], rank=self.strategy.lora_rank, alpha=self.strategy.lora_alpha
                )
            for key, weight in layers[name].named_parameters():
                if known is not None:
                    weight.data = known[name][key].to(weight.device)
        self._levels = find_levels(self._transformer)

    def _take_anchors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Copy the pretrained weights to which mixout or decay pull, and yield them by name."""
        if not (self.strategy.mixout or self.strategy.pretrained_decay):
            return
        for name, weight in self._transformer.named_parameters():
            level = self._levels.of[name]
            top = self._n_layers - self.strategy.reinit_layers < level <= self._n_layers
            if weight.requires_grad and not top:
                yield name, weight.detach().clone()

    def _make_groups(self) -> Iterator[LevelGroup]:
        weights = dict(self._transformer.named_parameters())
        patterns = self.strategy.no_decay
        if patterns is None:
            spared = {n for n, weight in weights.items() if weight.ndim <= MAX_DIMS_WITHOUT_DECAY}
        else:
            spared = select("no_decay", patterns, weights, kind="weight")
        found: dict[tuple[int, bool, bool], list[str]] = {}
        per_level = self.strategy.layer_decay != 1.0 or self.strategy.unfreeze_steps
        for name, weight in weights.items():
            if weight.requires_grad:
                level = self._levels.of[name] if per_level else self._n_layers
                key = (level, name not in spared, name in self._anchors)
                found.setdefault(key, []).append(name)
        for (level, decays, anchored), names in sorted(found.items(), reverse=True):
            yield LevelGroup(
                level=level,
                rate=rate_factor(self.strategy.layer_decay, level, self._n_layers),
                decays=decays,
                weights=[weights[name] for name in names],
                anchors=[self._anchors[name] for name in names] if anchored else [],
            )

    def thaw(self) -> bool:
        """Unfreeze the weights whose time has come. RETURNS (bool): Whether any weight learns."""
        every = self.strategy.unfreeze_steps
        lowest = 0
        if every:
            n_open = self.steps // every
            lowest = self._n_layers + 1 - n_open if n_open else self._n_layers + 2
        for group in self.groups:
            for weight in group.weights:
                weight.requires_grad_(group.level >= lowest)
        return any(group.level >= lowest for group in self.groups)

    def prepare_step(
        self, adamw: torch.optim.AdamW, optimizer: Optimizer, learn_rate: float
    ) -> None:
        """Set the rates of AdamW's next step, and pull weights toward the pretrained ones.

        Without bias correction, as in BERT's code of 2018, a step is lr·m / (√v + ε). AdamW's is
        lr/(1-β₁ᵗ)·m / (√v/√(1-β₂ᵗ) + ε): lr and ε are set so that the corrections cancel.
        """
        for own, group in zip(self.groups, adamw.param_groups, strict=True):
            rate = learn_rate * own.rate
            _pull(own, rate * self.strategy.pretrained_decay)
            group["lr"] = rate
            if not self.strategy.bias_correction:
                beta1, beta2 = group["betas"]
                t = 1 + _steps(adamw, own.weights)
                first, second = 1 - beta1**t, math.sqrt(1 - beta2**t)
                group["lr"] = rate * first / second
                group["eps"] = float(optimizer.eps) / second
                group["weight_decay"] = float(optimizer.L2) * own.decays * second / first

    def get_state(self) -> dict[str, Any]:
        """Collect what the stored weights do not contain: the number of updates, the pretrained
        weights, and LoRA's factors."""
        return {
            "steps": self.steps,
            "anchors": self._anchors,
            "factors": {
                name: {key: value.detach() for key, value in layer.named_parameters()}
                for name, layer in linear_layers(self._transformer).items()
                if isinstance(layer, LoraLinear)
            },
        }


def check_strategy(strategy: Strategy, transformer: nn.Module) -> None:
    """Check a strategy against an encoder.

    RAISES (BioclinError): The strategy names layers or weights that the encoder lacks.
    """
    levels = find_levels(transformer)
    check_layers(strategy, len(levels.layers), prefix=levels.prefix)
    select("no_decay", strategy.no_decay or [], levels.of, kind="weight")
    if strategy.lora_rank:
        lora_targets(strategy, linear_layers(transformer))


def lora_targets(strategy: Strategy, names: dict[str, nn.Linear]) -> list[str]:
    """Find the names of the linear layers that learn with LoRA, in order."""
    patterns = strategy.lora_targets
    patterns = [QUERY_AND_VALUE] if patterns is None else patterns
    found = select("lora_targets", patterns, names, kind="linear layer")
    return [name for name in names if name in found]


def _pull(group: LevelGroup, share: float) -> None:
    """Move the weights that have a gradient this share of the distance to the pretrained ones."""
    if not share or not group.anchors:
        return
    pairs = zip(group.weights, group.anchors, strict=True)
    moved = [(weight, anchor) for weight, anchor in pairs if weight.grad is not None]
    if moved:
        weights, anchors = zip(*moved, strict=True)
        with torch.no_grad():
            torch._foreach_lerp_(list(weights), list(anchors), share)


def _steps(adamw: torch.optim.AdamW, weights: list[nn.Parameter]) -> int:
    """Count the steps that AdamW has taken with these weights."""
    states = [adamw.state[w] for w in weights if w.grad is not None]
    return max((int(state["step"]) for state in states if state), default=0)
