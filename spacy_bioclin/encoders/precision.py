"""Which number format the encoder computes in."""

import torch

from ..errors import BioclinError

FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def _fast_bf16(device: torch.device) -> bool:
    """Whether the processor multiplies bf16 matrices in hardware (AMX or AVX512-BF16 on CPU)."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    probes = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, probe, bool)() for probe in probes)


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """Choose the format for a device. "auto" is bf16 where the hardware has it, else fp32.

    RETURNS (torch.dtype): torch.float32 or torch.bfloat16.
    RAISES (BioclinError): For an unknown name.
    """
    if precision == "auto":
        return torch.bfloat16 if _fast_bf16(device) else torch.float32
    if precision not in FORMATS:
        raise BioclinError(
            f"precision = {precision!r} is unknown: use 'auto' or one of {sorted(FORMATS)}"
        )
    return FORMATS[precision]
