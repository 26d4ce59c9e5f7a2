"""Faster layers for encoders of the transformers library, with the same weights and function."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.roberta_prelayernorm import modeling_roberta_prelayernorm

from .packing import make_packable


class FusedSelfAttention(modeling_roberta_prelayernorm.RobertaPreLayerNormSelfAttention):
    """Self-attention of RobertaPreLayerNorm with `scaled_dot_product_attention`."""

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any
    ) -> tuple[Tensor]:
        """Attend within each window.

        hidden_states (Tensor): (n_windows, n_pieces, width).
        attention_mask (Tensor | None): Added to the scores, (n_windows, 1, 1, n_pieces).
        RETURNS (tuple[Tensor]): (n_windows, n_pieces, width).
        """
        query, key, value = (
            self.transpose_for_scores(layer(hidden_states))
            for layer in (self.query, self.key, self.value)
        )
        context = nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if attention_mask is None else attention_mask.to(query.dtype),
            dropout_p=self.dropout.p if self.training else 0.0,
        )
        return (context.transpose(1, 2).flatten(2),)


class FastDropout(nn.Dropout):
    """Dropout that draws 16 random bits per value. Torch draws a floating-point number, which is
    most of its cost on a CPU."""

    def forward(self, input: Tensor) -> Tensor:
        """Set values to zero with probability `p`, rounded to a multiple of 2^-16."""
        if not self.training or not self.p or input.device.type != "cpu":
            return super().forward(input)
        n = input.numel()
        bits = torch.empty(-(-n // 4), dtype=torch.int64).random_(-(2**63), None)
        keep = bits.view(torch.int16)[:n].view(input.shape) >= round(self.p * 2**16) - 2**15
        return input * keep.to(input.dtype).mul_(1 / (1 - self.p))


def use_fast_layers(transformer: nn.Module) -> None:
    """Replace slow layers in place; architectures with fused attention keep theirs."""
    slow = modeling_roberta_prelayernorm.RobertaPreLayerNormSelfAttention
    for module in transformer.modules():
        if type(module) is slow and module.position_embedding_type == "absolute":
            module.__class__ = FusedSelfAttention
        elif type(module) is nn.Dropout and module.p < 1:
            module.__class__ = FastDropout
    make_packable(transformer)
