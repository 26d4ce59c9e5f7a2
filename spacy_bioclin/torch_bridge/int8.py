"""Linear layers in int8, for annotation on a CPU.

Weights are quantised once, with a scale for each output, and activations at every call, with one
scale for all. In encoders a few of the activations are many times as large as the others, for which
such a scale leaves few steps. Those few stay in fp32, as in LLM.int8() (Dettmers et al. 2022); they
are the same for every text, so they are looked for once.
"""

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

# An input is far from the others if its largest value is so many times that of the median input.
FAR = 4.0
MAX_SHARE = 1 / 32  # of the inputs of a layer, the farthest ones
MAX_WEIGHT = 127  # of a quantised weight; an activation has 8 bits, or 7 without VNNI


class Int8Linear(nn.Module):
    """A linear layer in int8. It cannot be trained.

    layer (nn.Linear): In fp32. It is not changed.
    far (Tensor): Numbers of the inputs that stay in fp32, ascending, (n_far,).
    """

    def __init__(self, layer: nn.Linear, far: Tensor) -> None:
        super().__init__()
        weight = layer.weight.detach().clone()
        self.far = far
        self.far_weight = weight[:, far].t().contiguous()
        weight[:, far] = 0.0
        scale = (weight.abs().amax(dim=1).double() / MAX_WEIGHT).clamp(min=1e-12)
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():  # constraints.txt has a version of torch that has it
            warnings.filterwarnings("ignore", message="torch.quantize_per_tensor")
            quantised = torch.quantize_per_channel(weight, scale, zero, 0, torch.qint8)
        bias = None if layer.bias is None else layer.bias.detach()
        self._packed = torch.ops.quantized.linear_prepack(quantised, bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply.

        inputs (Tensor): (..., n_inputs), in fp32. Changed meanwhile, and the same in the end.
        RETURNS (Tensor): (..., n_outputs), in fp32.
        """
        rows = inputs.reshape(-1, inputs.shape[-1])
        if len(self.far):
            # They are put back after the product: to copy the others would take longer.
            far = rows[:, self.far]
            rows.index_fill_(1, self.far, 0.0)
        outputs: Tensor = torch.ops.quantized.linear_dynamic(
            rows, self._packed, reduce_range=not _has_vnni()
        )
        if len(self.far):
            rows.index_copy_(1, self.far, far)
            outputs.addmm_(far, self.far_weight)
        return outputs.reshape(*inputs.shape[:-1], outputs.shape[-1])


@cache
def _has_vnni() -> bool:
    """Check whether the processor adds products of 8 bits without overflow."""
    return bool(getattr(torch.cpu, "_is_vnni_supported", bool)())


class _Recorder(nn.Module):
    """A linear layer that notes the largest absolute value of each of its inputs."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        self.largest = torch.zeros(layer.in_features)

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.reshape(-1, inputs.shape[-1]).abs()
        if len(rows):
            self.largest = torch.maximum(self.largest, rows.amax(dim=0))
        outputs: Tensor = self.layer(inputs)
        return outputs


def quantize_linear_layers(module: nn.Module, run: Callable[[nn.Module], object]) -> None:
    """Replace the linear layers of a module, in place.

    module (nn.Module): In fp32 on the CPU. Layers of subclasses of `nn.Linear` stay.
    run (Callable): Computes the module on a sample, from which the large activations are seen.
    """
    places = [
        (parent, name)
        for parent in module.modules()
        for name, layer in parent.named_children()
        if type(layer) is nn.Linear
    ]
    for parent, name in places:
        setattr(parent, name, _Recorder(getattr(parent, name)))
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        run(module)
    for parent, name in places:
        recorder = getattr(parent, name)
        setattr(parent, name, Int8Linear(recorder.layer, find_far(recorder.largest)))


def find_far(largest: Tensor) -> Tensor:
    """Find the inputs that are far larger than the others.

    largest (Tensor): Largest absolute value of each input, (n_inputs,).
    RETURNS (Tensor): Their numbers, ascending; at most MAX_SHARE of all.
    """
    n_far = int((largest > FAR * largest.median()).sum())
    n_far = min(n_far, int(len(largest) * MAX_SHARE))
    return largest.topk(n_far).indices.sort().values
