"""The bytes in which a module is stored: the settings that rebuild it, and its weights.

Layout: MAGIC, length of the header (8 bytes, little-endian), header (settings as JSON), padding to
a multiple of `ALIGNMENT`, weights in the safetensors format. Nothing is pickled.
"""

import json
import math
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import save

from ..errors import BioclinError

# The number is the version of the layout.
MAGIC = b"bioclin1"
ALIGNMENT = 64
COPY_AGAIN = "copy the pipeline again"
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def pack_weights(cfg: dict[str, Any], weights: Mapping[str, torch.Tensor]) -> bytes:
    """Write settings and weights as bytes.

    cfg (dict): Settings from which the module can be built; must be JSON.
    weights (Mapping[str, Tensor]): As `nn.Module.state_dict` gives them.
    """
    header = json.dumps(cfg, ensure_ascii=False).encode("utf-8")
    prefix = MAGIC + len(header).to_bytes(8, "little") + header
    padding = b" " * (-len(prefix) % ALIGNMENT)
    return prefix + padding + save({key: value.contiguous() for key, value in weights.items()})


def unpack_weights(data: bytes) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Read what `pack_weights` wrote. The tensors are views of `data`, not a second copy.

    Every length is compared with the bytes that there are before anything is made of it.

    RETURNS (tuple): Settings and weights.
    RAISES (BioclinError): The bytes have another origin or a later version, are cut short or were
        changed.
    """
    if not data:
        raise BioclinError(f"the file is empty; {COPY_AGAIN}")
    if data[: len(MAGIC)] != MAGIC:
        raise BioclinError("not the weights of a spacy-bioclin model, or of a later version")
    header, end = _read_json(memoryview(data), len(MAGIC), "header")
    return header, _view(memoryview(data)[end + (-end % ALIGNMENT) :])


def _read_json(data: memoryview, start: int, what: str) -> tuple[dict[str, Any], int]:
    """Read a length of 8 bytes and as much JSON.

    RETURNS (tuple): The object, and where it ends.
    """
    end = start + 8 + int.from_bytes(data[start : start + 8], "little")
    if not start + 8 < end <= len(data):
        raise BioclinError(f"the weights are cut short or damaged (in their {what}); {COPY_AGAIN}")
    try:
        found = json.loads(bytes(data[start + 8 : end]))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BioclinError(f"the weights are damaged ({what} is not a JSON object); {COPY_AGAIN}")
    return found, end


def _view(data: memoryview) -> dict[str, torch.Tensor]:
    """Read the safetensors format without copying; its own `load` copies every tensor.

    Format: length of the header (8 bytes), JSON {name: {dtype, shape, data_offsets}}, data.
    """
    header, end = _read_json(data, 0, "table of tensors")
    header.pop("__metadata__", None)
    body = data[end:]
    tensors = {}
    covered = 0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given buffer is not writable")
        for name, spec in header.items():
            dtype, shape, start, end = _check_tensor(name, spec, len(body))
            covered += end - start
            flat = torch.frombuffer(body[start:end], dtype=dtype) if start < end else torch.empty(0)
            tensors[name] = flat.to(dtype).reshape(shape)
    if covered != len(body):
        raise BioclinError(
            f"the weights are damaged: tensors of {covered:,} bytes in {len(body):,}; {COPY_AGAIN}"
        )
    return tensors


def _check_tensor(name: str, spec: Any, n_bytes: int) -> tuple[torch.dtype, list[int], int, int]:
    """Check the entry of a tensor before memory is used for it.

    RETURNS (tuple): Number format, shape, first and last byte.
    RAISES (BioclinError): It is not an entry, or has another size than its bytes.
    """
    try:
        dtype, shape = DTYPES[spec["dtype"]], spec["shape"]
        start, end = spec["data_offsets"]
        sizes = [*shape, start, end]
        right = all(type(size) is int and size >= 0 for size in sizes)
        # Python's integers do not overflow, whatever the shape says.
        right = right and math.prod(shape) * dtype.itemsize == end - start
    except (TypeError, KeyError, ValueError):
        right = False
    if not right:
        raise BioclinError(f"the weights are damaged (tensor {name[:100]!r}); {COPY_AGAIN}")
    if end > n_bytes:
        raise BioclinError(
            f"the weights are cut short: tensor {name[:100]!r} ends at byte {end:,} of "
            f"{n_bytes:,}; {COPY_AGAIN}"
        )
    return dtype, shape, start, end
