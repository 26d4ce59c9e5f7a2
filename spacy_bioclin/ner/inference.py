"""From a head's scores to entities with probabilities, and to a loss with gradients."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from . import crf
from .model import TagScores
from .tags import MISSING, OUTSIDE, TagSet, decode_tags, legal_transitions

# Largest number of padded scores in one batch of sequences: 32 MB in float64 for each of the
# half-dozen arrays that a CRF needs.
MAX_BATCH_SCORES = 4_000_000


class Entity(NamedTuple):
    """A decoded entity: token slice, label, and its posterior probability."""

    start: int
    end: int
    label: str
    probability: float


class Grammar(NamedTuple):
    """The tagging schemes of all layers as tensors; -inf forbids, 0 allows.

    transitions (Tensor): (n_layers, n_tags, n_tags).
    start, end (Tensor): (n_layers, n_tags).
    go_on (Tensor): Tag that continues an entity ending in this tag, or -1, (n_layers, n_tags).
    """

    transitions: Tensor
    start: Tensor
    end: Tensor
    go_on: Tensor


def make_grammar(tag_sets: list[TagSet], device: torch.device) -> Grammar:
    """RETURNS (Grammar): What may follow what, for layers of one size."""
    legal = [legal_transitions(tag_set) for tag_set in tag_sets]

    def log_of(arrays: list[np.ndarray]) -> Tensor:
        with np.errstate(divide="ignore"):
            return torch.from_numpy(np.log(np.stack(arrays).astype(np.float64))).to(device)

    go_on = torch.full((len(tag_sets), tag_sets[0].n_tags), -1, dtype=torch.int64)
    if tag_sets[0].scheme == "BIO":  # in BILUO the last tag of an entity says that it ends
        inside = torch.arange(2, tag_sets[0].n_tags, 2)
        go_on[:, inside] = inside
        go_on[:, inside - 1] = inside
    return Grammar(
        log_of([rule.transitions for rule in legal]),
        log_of([rule.start for rule in legal]),
        log_of([rule.end for rule in legal]),
        go_on.to(device),
    )


class Batch(NamedTuple):
    """Some Docs of a `TagScores` as one padded batch.

    docs (list[int]): Which Docs, longest first.
    tokens (Tensor): Row in the emissions of each (Doc, step); past the end any, (n_seqs, n_steps).
    inside (Tensor): False past the end, (n_seqs, n_steps).
    """

    docs: list[int]
    tokens: Tensor
    inside: Tensor
    potentials: crf.Potentials


def make_batches(scores: TagScores, grammar: Grammar) -> Iterator[Batch]:
    """Pad Docs of like length together; empty Docs are left out."""
    device = scores.emissions.device
    _, n_layers, n_tags = scores.emissions.shape
    starts = np.cumsum([0, *scores.lengths])
    order = sorted(range(len(scores.lengths)), key=lambda i: -scores.lengths[i])
    order = [i for i in order if scores.lengths[i]]
    while order:
        longest = scores.lengths[order[0]]
        n = max(1, MAX_BATCH_SCORES // (longest * n_layers * n_tags))
        docs, order = order[:n], order[n:]
        lengths = torch.tensor([scores.lengths[i] for i in docs])
        steps = torch.arange(longest)
        inside = steps[None, :] < lengths[:, None]
        first = torch.tensor([int(starts[i]) for i in docs])
        tokens = torch.where(inside, first[:, None] + steps[None, :], 0).to(device)
        emissions = scores.emissions.detach()[tokens].permute(2, 0, 1, 3).double()
        potentials = crf.Potentials(
            emissions,
            scores.transitions.detach().double() + grammar.transitions,
            scores.start.detach().double() + grammar.start,
            scores.end.detach().double() + grammar.end,
            lengths.to(device),
        )
        yield Batch(docs, tokens, inside.to(device), potentials)


def find_entities(
    scores: TagScores, tag_sets: list[TagSet], grammar: Grammar
) -> list[list[Entity]]:
    """Decode the most probable legal tags of each Doc and give each entity its posterior
    probability.

    RETURNS (list[list[Entity]]): Per Doc, by start.
    """
    found: list[list[Entity]] = [[] for _ in scores.lengths]
    for batch in make_batches(scores, grammar):
        path = crf.viterbi(batch.potentials)
        rows, names = [], []
        tags = path.cpu().numpy()
        for layer, tag_set in enumerate(tag_sets):
            for seq in np.flatnonzero((tags[layer] != OUTSIDE).any(axis=1)).tolist():
                n = scores.lengths[batch.docs[seq]]
                for start, end, label in decode_tags(tags[layer, seq, :n], tag_set):
                    rows.append((layer, seq, start, end - 1))
                    names.append(label)
        if not rows:
            continue
        probabilities = crf.span_probabilities(
            batch.potentials,
            crf.forward_backward(batch.potentials),
            path,
            torch.tensor(rows, device=path.device),
            grammar.go_on,
        ).tolist()
        for (_, seq, first, last), label, p in zip(rows, names, probabilities, strict=True):
            found[batch.docs[seq]].append(Entity(first, last + 1, label, p))
    return [sorted(entities) for entities in found]


def crf_loss(scores: TagScores, tags: Tensor, grammar: Grammar) -> tuple[float, TagScores]:
    """Negative log-likelihood of whole sequences, per annotated token and layer.

    tags (Tensor): int64, MISSING where not annotated, (n_tokens, n_layers).
    RETURNS (tuple): Loss in nats, and its gradient with respect to the scores.
    """
    n_tags = scores.emissions.shape[-1]
    known = tags != MISSING
    allowed_flat = torch.nn.functional.one_hot(tags.clamp(min=0), n_tags).bool()
    allowed_flat |= ~known[..., None]
    norm = max(1, int(known.sum()))
    d_emissions = torch.zeros_like(scores.emissions)
    potentials = (scores.transitions, scores.start, scores.end)
    shared = [torch.zeros_like(p, dtype=torch.float64) for p in potentials]
    total = 0.0
    for batch in make_batches(scores, grammar):
        allowed = allowed_flat[batch.tokens].permute(2, 0, 1, 3)
        loss, counts = crf.negative_log_likelihood(batch.potentials, allowed)
        total += float(loss)
        d_padded = counts.emissions.permute(1, 2, 0, 3)[batch.inside]
        d_emissions[batch.tokens[batch.inside]] = d_padded.to(d_emissions.dtype)
        for gradient, count in zip(shared, counts[1:], strict=True):
            gradient += count
    gradients = [(g / norm).to(scores.emissions.dtype) for g in shared]
    transitions, start, end = gradients
    return total / norm, TagScores(d_emissions / norm, transitions, start, end, scores.lengths)


def token_loss(scores: TagScores, tags: Tensor) -> tuple[float, TagScores]:
    """Cross-entropy per annotated token and layer. Arguments and returns as for `crf_loss`."""
    logits = scores.emissions.detach().float().requires_grad_()
    known = int((tags != MISSING).sum())
    loss = torch.nn.functional.cross_entropy(
        logits.permute(0, 2, 1), tags, ignore_index=MISSING, reduction="sum"
    ) / max(1, known)
    loss.backward()
    assert logits.grad is not None
    gradients = TagScores(
        logits.grad,
        torch.zeros_like(scores.transitions),
        torch.zeros_like(scores.start),
        torch.zeros_like(scores.end),
        scores.lengths,
    )
    return float(loss.detach()), gradients
