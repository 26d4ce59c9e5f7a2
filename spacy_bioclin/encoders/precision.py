"""Which number format the encoder computes in, and copies of a network that hold it."""

import warnings
from typing import NamedTuple

import torch
from torch import nn

from ..errors import BioclinError
from .strategy.linear import plain_copy

FORMATS = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.qint8,
}
# First NVIDIA generation (Volta) that multiplies fp16 matrices in hardware.
FP16_CAPABILITY = (7, 0)


class Precision(NamedTuple):
    """The format for a device, and why it was chosen."""

    dtype: torch.dtype
    reason: str


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the processor multiplies bf16 matrices in hardware (AMX or AVX512-BF16 on CPU)."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    probes = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, probe, bool)() for probe in probes)


def choose_precision(precision: str, device: torch.device) -> Precision:
    """Choose the format for a device.

    precision (str): "fp32", "bf16", "fp16" (on a GPU), "int8" (annotation on a CPU; training then
        runs as with "auto"), or "auto": bf16 where the hardware has it, else fp16 on a GPU that has
        that, else fp32.
    RAISES (BioclinError): For an unknown name, or one that the device cannot compute in.
    """
    if precision == "auto":
        if has_fast_bf16(device):
            return Precision(torch.bfloat16, "the hardware multiplies bf16 matrices")
        if device.type == "cuda" and torch.cuda.get_device_capability(device) >= FP16_CAPABILITY:
            return Precision(torch.float16, "this GPU has fp16, but no bf16, matrix units")
        return Precision(torch.float32, f"this {device.type} has no matrix units for bf16 or fp16")
    if precision not in FORMATS:
        raise BioclinError(
            f"precision = {precision!r} is unknown: use 'auto' or one of {sorted(FORMATS)}"
        )
    wanted = {"fp16": "cuda", "int8": "cpu"}.get(precision, device.type)
    if device.type != wanted:
        raise BioclinError(
            f"precision = {precision!r} does not run on {device.type}: use 'auto', 'bf16' or 'fp32'"
        )
    return Precision(FORMATS[precision], f'precision = "{precision}" is set')


def convert_linear_layers(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """RETURNS (nn.Module): A copy for annotation whose linear layers hold weights of this format.
    All other weights are shared with the module. int8 quantises weights once, per output, and
    activations as they come (torch's dynamic quantisation)."""
    twin = plain_copy(module)
    if dtype == torch.qint8:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.ao.quantization.quantize_dynamic(twin, {nn.Linear}, dtype, inplace=True)
    for layer in twin.modules():
        if isinstance(layer, nn.Linear):
            for name, weight in list(layer.named_parameters(recurse=False)):
                converted = nn.Parameter(weight.detach().to(dtype), requires_grad=False)
                setattr(layer, name, converted)
    return twin
