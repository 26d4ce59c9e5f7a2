"""The number format that an encoder computes in, and copies of a network in that format."""

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from ..errors import BioclinError
from ..torch_bridge.int8 import quantize_linear_layers
from .strategy.linear import copy_merged

FORMATS = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.qint8,
}
# First NVIDIA generation (Volta) that multiplies fp16 matrices in hardware.
FP16_CAPABILITY = (7, 0)
# Random pieces that show which activations are large: sequences, and pieces in each.
N_SAMPLES, SAMPLE_LENGTH = 4, 128


class Precision(NamedTuple):
    """The number format for a device, and why it was chosen."""

    dtype: torch.dtype
    reason: str


def has_fast_bf16(device: torch.device) -> bool:
    """Check whether the device multiplies matrices faster in bf16 than in fp32.

    AMX always does. With AVX512-BF16 alone AMD's processors do and Intel's do not, so that a few
    products are timed, once per process.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if getattr(torch.cpu, "_is_amx_tile_supported", bool)():
        return True
    return getattr(torch.cpu, "_is_avx512_bf16_supported", bool)() and _times_bf16_as_faster()


@cache
def _times_bf16_as_faster() -> bool:
    return _time_product(torch.bfloat16) < _time_product(torch.float32)


def _time_product(dtype: torch.dtype) -> float:
    """Time a product as large as those of an encoder; the fastest of ten, in seconds."""
    pieces, weight = torch.ones(256, 384, dtype=dtype), torch.ones(1536, 384, dtype=dtype)
    times = []
    with torch.no_grad():
        for _ in range(10):
            start = time.perf_counter()
            functional.linear(pieces, weight)
            times.append(time.perf_counter() - start)
    return min(times)


def choose_precision(precision: str, device: torch.device) -> Precision:
    """Choose the number format for a device.

    precision (str): "fp32", "bf16", "fp16" (GPU only), "int8" (annotation on a CPU only; training
        then uses "auto"), or "auto": bf16 if the hardware is faster in it, else fp16 on a GPU that
        has it, else fp32.
    RAISES (BioclinError): The name is unknown, or the device cannot compute in that format.
    """
    if precision == "auto":
        if has_fast_bf16(device):
            return Precision(torch.bfloat16, "this hardware multiplies matrices faster in bf16")
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


def autocast(device: torch.device, dtype: torch.dtype) -> torch.autocast:
    """Run operations that tolerate it in bf16 or fp16; other formats change nothing."""
    mixed = dtype in (torch.bfloat16, torch.float16)
    return torch.autocast(device.type, dtype if mixed else None, enabled=mixed)


def convert_linear_layers(
    module: nn.Module,
    dtype: torch.dtype,
    run: Callable[[nn.Module], object] | None = None,
) -> nn.Module:
    """Make a copy for annotation whose linear layers have weights in this format.

    module (nn.Module): An encoder, or a `WindowedEncoder`.
    run (Callable | None): For int8, see `quantize_linear_layers`; None for `run_on_random_pieces`.
    RETURNS (nn.Module): Shares all other weights with the module.
    """
    twin = copy_merged(module)
    if dtype == torch.qint8:
        quantize_linear_layers(twin.eval(), run or run_on_random_pieces)
        return twin
    for layer in twin.modules():
        if isinstance(layer, nn.Linear):
            for name, weight in list(layer.named_parameters(recurse=False)):
                converted = nn.Parameter(weight.detach().to(dtype), requires_grad=False)
                setattr(layer, name, converted)
    return twin


def run_on_random_pieces(module: nn.Module) -> None:
    """Compute an encoder on pieces that are drawn at random, the same ones every time.

    Which activations are large depends on the encoder, hardly on the text.
    """
    is_whole = hasattr(module, "get_input_embeddings")  # DistilBERT has a part `transformer`
    transformer: Any = module if is_whole else module.transformer
    config = transformer.config
    positions = getattr(config, "max_position_embeddings", None) or 2 * SAMPLE_LENGTH
    length = min(SAMPLE_LENGTH, positions // 2)
    draw = torch.Generator().manual_seed(0)
    transformer(torch.randint(config.vocab_size, (N_SAMPLES, length), generator=draw))
