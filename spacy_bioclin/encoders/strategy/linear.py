"""Linear layers that do more while they are trained: LoRA and mixout.

This LoRA replaces that of `peft`, which would have to be installed wherever a pipeline is loaded
and which renames the weights. Here what was learned is added to the weights when they are stored,
so that a pipeline trained this way is like any other.
"""

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

# Queries and values (Hu et al. 2022, section 7.1) by their names in all architectures. If one layer
# computes queries, keys and values (ModernBERT, DeBERTa), all three are adapted.
QUERY_AND_VALUE = r"(^|\.)((query|value|q|v)(_proj|_lin)?|in_proj|Wqkv)$"


class LoraLinear(nn.Linear):
    """Low-rank adaptation: the weight W is frozen, and the layer learns a low-rank difference B·A
    (Hu et al. 2022).

    lora_down (Parameter): A, initially random, (rank, n_inputs).
    lora_up (Parameter): B, initially zero, (n_outputs, rank).
    """

    lora_down: nn.Parameter
    lora_up: nn.Parameter
    scale: float

    def forward(self, input: Tensor) -> Tensor:
        """Compute x·Wᵀ + b + scale·x·Aᵀ·Bᵀ."""
        low = nn.functional.linear(input, self.lora_down)
        return super().forward(input) + self.scale * nn.functional.linear(low, self.lora_up)


def add_factors(layer: Any, *, rank: int, alpha: float) -> None:
    """Let a linear layer learn a difference of this rank, scaled by alpha / rank."""
    n_outputs, n_inputs = layer.weight.shape
    down, up = torch.empty(rank, n_inputs), torch.zeros(n_outputs, rank)
    nn.init.kaiming_uniform_(down, a=math.sqrt(5))  # as the paper's code does
    layer.lora_down = nn.Parameter(down.to(layer.weight.device))
    layer.lora_up = nn.Parameter(up.to(layer.weight.device))
    layer.scale = alpha / rank
    layer.__class__ = LoraLinear


class MixoutLinear(nn.Linear):
    """Mixout: in training each value of the weight is replaced by the pretrained one with
    probability p; the others are scaled so that the mean stays (Lee et al. 2020, equation 8).

    anchor (Tensor): The pretrained weight.
    """

    anchor: Tensor
    p: float

    def forward(self, input: Tensor) -> Tensor:
        """Apply the mixed weight in training, the weight itself in annotation."""
        if not self.training:
            return super().forward(input)
        weight = self.anchor + nn.functional.dropout(self.weight - self.anchor, self.p)
        return nn.functional.linear(input, weight, self.bias)


def add_mixout(layer: Any, *, anchor: Tensor, p: float) -> None:
    """Let a linear layer mix its weight with the anchor in training."""
    layer.anchor, layer.p = anchor, p
    layer.__class__ = MixoutLinear


def linear_layers(module: nn.Module) -> dict[str, nn.Linear]:
    """Find the linear layers of a module by name."""
    return {name: layer for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}


def copy_merged(module: nn.Module) -> nn.Module:
    """Copy a module for annotation, with linear layers of torch's own class.

    RETURNS (nn.Module): Shares weights and attributes with the module, except that what LoRA
        learned is added to the weights.
    """
    twin: Any = copy.copy(module)
    twin._parameters = dict(module._parameters)
    twin._modules = {name: child and copy_merged(child) for name, child in module._modules.items()}
    if isinstance(twin, LoraLinear):
        with torch.no_grad():
            merged = twin.weight + twin.scale * twin.lora_up @ twin.lora_down
        twin.weight = nn.Parameter(merged, requires_grad=False)
        del twin.lora_down, twin.lora_up
    if type(twin) in (LoraLinear, MixoutLinear):
        twin.__class__ = nn.Linear
    return twin
