"""Attention in bf16 for training on a CPU, where torch's fused kernel has a slow backward pass."""

import math
from typing import Any

import torch
from torch import Tensor

# Longest window whose attention weights are kept for the backward pass, in pieces.
MAX_LENGTH = 512


class Bf16Attention(torch.autograd.Function):
    """Scaled dot-product attention (Vaswani et al. 2017, equation 1) as batched matrix products.

    The attention weights are kept in bf16 for the backward pass, which torch's fused kernel
    computes again, in fp32.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attend. The shapes are those of `attend`."""
        scores = torch.matmul(query * (1 / math.sqrt(query.shape[-1])), key.transpose(-1, -2))
        if mask is not None:
            scores += mask
        weights = torch._softmax(scores, -1, False)
        ctx.save_for_backward(query, key, value, weights)
        return torch.matmul(weights, value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Compute the gradients of query, key and value."""
        query, key, value, weights = ctx.saved_tensors
        scale = 1 / math.sqrt(query.shape[-1])
        of_value = torch.matmul(weights.transpose(-1, -2), gradient)
        of_weights = torch.matmul(gradient, value.transpose(-1, -2))
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        of_query = torch.matmul(of_scores, key) * scale
        of_key = torch.matmul(of_scores.transpose(-1, -2), query) * scale
        return of_query, of_key, of_value, None


def trains_in_bf16(hidden_states: Tensor) -> bool:
    """Check whether a gradient is wanted on a CPU in bf16."""
    return (
        torch.is_grad_enabled()
        and hidden_states.device.type == "cpu"
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
        and hidden_states.shape[1] <= MAX_LENGTH
    )


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Attend within each window.

    query, key, value (Tensor): (n_windows, n_heads, n_pieces, width of a head), bf16.
    mask (Tensor | None): Added to the scores; it broadcasts to (n_windows, n_heads, n_pieces,
        n_pieces).
    RETURNS (Tensor): As the query.
    """
    if mask is not None:
        mask = mask.to(query.dtype)
    attended: Tensor = Bf16Attention.apply(query, key, value, mask)
    return attended
