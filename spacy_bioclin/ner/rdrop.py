"""R-drop: both of two passes with different dropout learn to give the same probabilities (Liang et
al. 2021)."""

from collections.abc import Iterable

import numpy as np
import torch
from spacy.training import Example
from torch import Tensor

from ..errors import BioclinError
from ..types import IntArray
from . import crf
from .inference import Grammar, make_batches
from .model import TagScores

# Added to a probability that may be zero, so that its logarithm is finite.
TINY = 1e-30


def pair_tokens(examples: Iterable[Example], *, name: str, alpha: float) -> IntArray:
    """Find the tokens of each note in the two passes of a batch: the training loop has put each
    example into it twice.

    name (str): Name of the component, for the error.
    alpha (float): Its setting, for the error.
    RETURNS (IntArray): Rows of the same token, (2, n_tokens / 2).
    RAISES (BioclinError): An example is there only once.
    """
    first: dict[int, int] = {}
    pairs, start = [np.zeros((2, 0), dtype=np.int64)], 0
    for eg in examples:
        end = start + len(eg.predicted)
        earlier = first.pop(id(eg.reference), None)
        if earlier is None:
            first[id(eg.reference)] = start
        else:
            rows = np.arange(end - start)
            pairs.append(np.stack([earlier + rows, start + rows]))
        start = end
    if first:
        raise BioclinError(
            f"[components.{name}] rdrop = {alpha}: runs every batch twice, which only `bioclin "
            "train` does, not `spacy train` or nlp.update(): train with it, or set rdrop to 0"
        )
    return np.concatenate(pairs, axis=1)


def add_divergence(
    loss: tuple[float, TagScores],
    scores: TagScores,
    pairs: IntArray,
    known: Tensor,
    grammar: Grammar,
    *,
    alpha: float,
    chain: bool,
) -> tuple[float, TagScores]:
    """Add the divergence between two passes to the loss of both.

    The paper's loss of an example is the sum of its losses in both passes, plus alpha / 2 times the
    sum of both Kullback-Leibler divergences (equation 4). The loss here is half of it, so that it
    has the size of the loss of one pass.

    loss (tuple): Mean loss over the tokens of both passes, and its gradient.
    pairs (IntArray): Rows of the same token in both passes, (2, n_pairs).
    known (Tensor): Whether a token is annotated; others have no divergence, bool,
        (n_tokens, n_layers).
    chain (bool): Compare posterior marginals of the CRF, not the softmax of the emissions.
    RETURNS (tuple): Loss per token and layer (nats), and its gradient.
    """
    one, other = torch.from_numpy(pairs).to(scores.emissions.device)
    part, d_part = divergence(scores, one, other, known, grammar, chain=chain)
    share = alpha / 4 / max(1, int(known[one].sum()))
    emissions, transitions, start, end = (
        gradient + share * extra for gradient, extra in zip(loss[1][:4], d_part[:4], strict=True)
    )
    gradient = TagScores(emissions, transitions, start, end, scores.lengths)
    return loss[0] + share * part, gradient


def divergence(
    scores: TagScores, one: Tensor, other: Tensor, known: Tensor, grammar: Grammar, *, chain: bool
) -> tuple[float, TagScores]:
    """Sum the Kullback-Leibler divergences between the tags of pairs of tokens, in both directions.

    one, other (Tensor): Rows of tokens, int64, (n_pairs,).
    RETURNS (tuple): Divergence in nats, and its gradient with respect to the scores.
    """
    with crf.one_thread(), torch.enable_grad():
        leaves, marginals = _trace_marginals(scores, grammar, chain=chain)
        p, q = marginals[one], marginals[other]
        both = (p - q) * (torch.log(p + TINY) - torch.log(q + TINY))
        total = (both.sum(dim=-1) * known[one]).sum()
        found = iter(torch.autograd.grad(total, [x for _, tensors in leaves for x in tensors]))
    gradient = scores.map(lambda score: torch.zeros_like(score, dtype=torch.float64))
    for rows, tensors in leaves:
        d_emissions, *d_shared = (next(found) for _ in tensors)
        gradient.emissions[rows] = d_emissions.transpose(0, 1)
        # Without `chain`, the loss has no shared scores.
        for whole, part in zip(gradient[1:4], d_shared, strict=False):
            whole += part
    return float(total.detach()), gradient.map(lambda x: x.to(scores.emissions.dtype))


def _trace_marginals(
    scores: TagScores, grammar: Grammar, *, chain: bool
) -> tuple[list[tuple[Tensor, list[Tensor]]], Tensor]:
    """Compute the probability of each tag of each token so that autograd can trace it.

    RETURNS (tuple): Rows and leaves of each part, whose gradients are wanted: emissions,
        (n_layers, n_rows, n_tags), and with `chain` the shared scores; and the probabilities,
        float64, (n_tokens, n_layers, n_tags).
    """
    if not chain:
        leaf = scores.emissions.detach().double().transpose(0, 1).contiguous().requires_grad_()
        rows = torch.arange(len(scores.emissions), device=leaf.device)
        return [(rows, [leaf])], leaf.softmax(dim=-1).transpose(0, 1)
    leaves, parts = [], []
    for batch in make_batches(scores, grammar):
        potentials = [potential.detach().requires_grad_() for potential in batch.potentials]
        leaves.append((batch.first + batch.packing.rows, potentials))
        parts.append(crf.tag_marginals(crf.Potentials(*potentials), batch.packing))
    order = torch.argsort(torch.cat([rows for rows, _ in leaves]))
    return leaves, torch.cat(parts, dim=1).transpose(0, 1)[order]
