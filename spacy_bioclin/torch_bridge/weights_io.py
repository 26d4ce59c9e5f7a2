"""The bytes in which a module is stored: the settings that rebuild it, and its weights.

Layout: MAGIC, length of the header (8 bytes, little-endian), header (settings as JSON), padding to
a multiple of `ALIGNMENT`, weights in the safetensors format. Nothing is pickled.
"""

import json
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import save

# The number is the version of the layout.
MAGIC = b"bioclin1"
ALIGNMENT = 64
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

    RETURNS (tuple): Settings and weights.
    RAISES (ValueError): The bytes have another origin or a later version.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("Not the weights of a spacy-bioclin model, or of a later version")
    start = len(MAGIC) + 8
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    return json.loads(data[start:end]), _view(memoryview(data)[end + (-end % ALIGNMENT) :])


def _view(data: memoryview) -> dict[str, torch.Tensor]:
    """Read the safetensors format without copying; its own `load` copies every tensor.

    Format: length of the header (8 bytes), JSON {name: {dtype, shape, data_offsets}}, data.
    """
    length = int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8 : 8 + length]))
    header.pop("__metadata__", None)
    body = data[8 + length :]
    tensors = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given buffer is not writable")
        for name, spec in header.items():
            start, end = spec["data_offsets"]
            dtype = DTYPES[spec["dtype"]]
            flat = torch.frombuffer(body[start:end], dtype=dtype) if start < end else torch.empty(0)
            tensors[name] = flat.to(dtype).reshape(spec["shape"])
    return tensors
