"""Run windows of different lengths without padding: one row of pieces, attention window by window.

All layers of an encoder except attention work on each piece by itself, so that windows can be
concatenated. FlashAttention (Dao, 2023) calls this layout variable-length; here it is plain torch.
"""

import threading
from functools import cache
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..torch_bridge.attention import attend, trains_in_bf16

# Architectures whose self-attention has linear layers query, key and value and absolute positions.
ARCHITECTURES = (
    "bert",
    "camembert",
    "electra",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
)

# In bf16, pieces are filled up to a multiple of this. oneDNN compiles a kernel for each number of
# rows that it has not met, which takes longer than the product itself, and keeps it.
ROWS = 32

# Of a thread that is in `run_packed`: (number of windows, length) of neighbours of equal length.
_current = threading.local()


class PackedAttention(nn.Module):
    """Add attention without padding to a self-attention of the transformers library.

    The class is mixed into that of the library, see `make_packable`.
    """

    num_attention_heads: int
    attention_head_size: int
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    dropout: nn.Dropout

    def forward(
        self, hidden_states: Tensor, *arguments: Any, **settings: Any
    ) -> tuple[Tensor, ...]:
        """Attend within each window in `run_packed`, and otherwise as the library does."""
        runs = getattr(_current, "runs", None)
        if runs is None:
            mask, *others = arguments or (settings.pop("attention_mask", None),)
            if trains_in_bf16(hidden_states) and self._is_plain(*others, *settings.values()):
                return (self._attend_in_bf16(hidden_states, mask),)
            library: Any = super()
            arguments = (mask, *others)
            return library.forward(hidden_states, *arguments, **settings)
        shape = (-1, self.num_attention_heads, self.attention_head_size)
        layers = (self.query, self.key, self.value)
        projected = [layer(hidden_states)[0].view(shape) for layer in layers]
        contexts, start = [], 0
        for n_windows, length in runs:
            end = start + n_windows * length
            query, key, value = (
                part[start:end].unflatten(0, (n_windows, length)).transpose(1, 2)
                for part in projected
            )
            context = functional.scaled_dot_product_attention(query, key, value)
            contexts.append(context.transpose(1, 2).reshape(end - start, -1))
            start = end
        return (torch.cat(contexts)[None],)

    def _is_plain(self, *others: Any) -> bool:
        """Check that there is no dropout, no cache, and no second input."""
        dropout = getattr(self, "dropout_prob", self.dropout.p) if self.training else 0.0
        return not dropout and all(other is None or other is False for other in others)

    def _attend_in_bf16(self, hidden_states: Tensor, mask: Tensor | None) -> Tensor:
        shape = (self.num_attention_heads, self.attention_head_size)
        query, key, value = (
            layer(hidden_states).unflatten(-1, shape).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        return attend(query, key, value, mask).transpose(1, 2).flatten(2)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # The class is made at run time, so that pickle cannot find it by name.
        return _new_packed, (type(self).__mro__[2],), self.__dict__


@cache
def _pack_class(cls: Any) -> Any:
    return type(f"Packed{cls.__name__}", (PackedAttention, cls), {})


def _new_packed(cls: Any) -> Any:
    packed: Any = _pack_class(cls)
    return packed.__new__(packed)


def make_packable(transformer: nn.Module) -> None:
    """Let an encoder of a known architecture run without padding, see `run_packed`."""
    config = getattr(transformer, "config", None)
    if getattr(config, "model_type", None) not in ARCHITECTURES:
        return
    for module in transformer.modules():
        positions = getattr(module, "position_embedding_type", None)
        known = positions == "absolute" and hasattr(module, "query")
        if known and not isinstance(module, PackedAttention):
            cls: Any = type(module)
            module.__class__ = _pack_class(cls)


def can_pack(transformer: Any) -> bool:
    """Check whether `make_packable` found the attention of every layer."""
    n_packed = sum(isinstance(module, PackedAttention) for module in transformer.modules())
    return n_packed == getattr(transformer.config, "num_hidden_layers", None)


def run_packed(
    transformer: Any, input_ids: Tensor, lengths: list[int], segments: Tensor | None = None
) -> Tensor:
    """Encode windows without padding, without dropout.

    transformer (nn.Module): An encoder that `can_pack`.
    input_ids (Tensor): Pieces of all windows, special pieces included, (n_pieces,). Neighbours of
        equal length are faster.
    lengths (list[int]): Number of pieces of each window.
    segments (Tensor | None): Segment of each piece, (n_pieces,); None for 0.
    RETURNS (Tensor): (n_pieces, width).
    """
    n_pieces = len(input_ids)
    if torch.is_autocast_enabled("cpu") and (n_more := -n_pieces % ROWS):
        input_ids = torch.cat([input_ids, input_ids[-1:].expand(n_more)])
        segments = None if segments is None else functional.pad(segments, (0, n_more))
        lengths = [*lengths, *[1] * n_more]  # each is a window
    sizes = torch.tensor(lengths)
    first = torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    padding = getattr(transformer.embeddings, "padding_idx", None)
    if padding is None:
        positions = torch.arange(len(input_ids)) - first
    else:
        # RoBERTa counts from padding_idx + 1 and gives <pad> the position padding_idx.
        counted = (input_ids != padding).long()
        total = counted.cumsum(0)
        positions = (total - (total - counted)[first]) * counted + padding
    if segments is None:
        segments = torch.zeros_like(input_ids)
    _current.runs = [(len(list(same)), length) for length, same in groupby(lengths)]
    try:
        output = transformer(
            input_ids=input_ids[None],
            position_ids=positions[None],
            token_type_ids=segments[None],
        )
    finally:
        _current.runs = None
    return output.last_hidden_state[0, :n_pieces]
