"""torch's fused attention for an architecture that the transformers library gives none."""

from typing import Any

from torch import Tensor, nn
from transformers.models.roberta_prelayernorm import modeling_roberta_prelayernorm


class FusedSelfAttention(modeling_roberta_prelayernorm.RobertaPreLayerNormSelfAttention):
    """Self-attention of RobertaPreLayerNorm with `scaled_dot_product_attention`; same weights."""

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any
    ) -> tuple[Tensor]:
        """
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


def fuse_attention(transformer: nn.Module) -> None:
    """Replace what can be, in place. The other architectures choose fused attention themselves."""
    slow = modeling_roberta_prelayernorm.RobertaPreLayerNormSelfAttention
    for module in transformer.modules():
        if type(module) is slow and module.position_embedding_type == "absolute":
            module.__class__ = FusedSelfAttention
