"""A linear-chain conditional random field (Lafferty et al. 2001) on batches of sequences.

All recurrences run on probabilities scaled to sum to 1 at each step (Rabiner 1989, section V.A) in
float64: a step is one matrix product, and a forbidden transition is a plain zero. The gradients are
written out (expected minus observed counts) instead of being traced through the recurrence.

Sequences come as one padded batch, sorted from long to short, so that step t works on the first
`n_active[t]` rows only. A leading axis of layers carries independent tag sets.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor


@contextmanager
def one_thread() -> Iterator[None]:
    """A recurrence is a long row of tiny products: threads that wait for each other at every one of
    them make it many times slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Potentials(NamedTuple):
    """Unnormalised log scores; -inf forbids.

    emissions (Tensor): (n_layers, n_seqs, n_steps, n_tags), float64; rows past the end are ignored.
    transitions (Tensor): From row to column, (n_layers, n_tags, n_tags).
    start, end (Tensor): (n_layers, n_tags).
    lengths (Tensor): Steps of each sequence, descending, all at least 1, (n_seqs,).
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor


class ForwardBackward(NamedTuple):
    """Scaled forward and backward variables; their product is the marginal.

    alpha, beta (Tensor): (n_layers, n_seqs, n_steps, n_tags), zero past the end.
    scale (Tensor): Factor taken out at each step, (n_layers, n_seqs, n_steps), one past the end.
    weights (Tensor): exp(emissions - peak), same shape as alpha.
    log_z (Tensor): Log of the partition function, (n_layers, n_seqs).
    """

    alpha: Tensor
    beta: Tensor
    scale: Tensor
    weights: Tensor
    log_z: Tensor


def _active(lengths: Tensor) -> list[int]:
    """RETURNS (list[int]): For each step, how many sequences reach it."""
    steps = torch.arange(int(lengths.max()), device=lengths.device)
    return (lengths[None, :] > steps[:, None]).sum(dim=1).tolist()


@one_thread()
def forward_backward(p: Potentials, allowed: Tensor | None = None) -> ForwardBackward:
    """Run the forward and the backward recurrence.

    allowed (Tensor | None): Paths are restricted to tags that are True, same shape as the
        emissions. Gives the sum over all paths that agree with a partial annotation.
    """
    peak = p.emissions.amax(dim=-1, keepdim=True)
    weights = torch.exp(p.emissions - peak)
    if allowed is not None:
        weights = weights * allowed
    n_layers, n_seqs, n_steps, _n_tags = weights.shape
    active = _active(p.lengths)
    transitions, end = torch.exp(p.transitions), torch.exp(p.end)
    alpha = torch.zeros_like(weights)
    scale = weights.new_ones(n_layers, n_seqs, n_steps)
    step = torch.exp(p.start)[:, None] * weights[:, :, 0]
    for t, n in enumerate(active):
        if t:
            step = (alpha[:, :n, t - 1] @ transitions) * weights[:, :n, t]
        total = step.sum(dim=-1)
        scale[:, :n, t] = total
        alpha[:, :n, t] = step / total[..., None]
    beta = torch.zeros_like(weights)
    last = p.lengths - 1
    rows = torch.arange(n_seqs, device=last.device)
    final = (alpha[:, rows, last] * end[:, None]).sum(dim=-1)
    beta[:, rows, last] = end[:, None] / final[..., None]
    backward = transitions.transpose(-1, -2)
    for t in range(n_steps - 2, -1, -1):
        n = active[t + 1]
        step = (weights[:, :n, t + 1] * beta[:, :n, t + 1]) @ backward
        beta[:, :n, t] = step / scale[:, :n, t + 1, None]
    inside = torch.arange(n_steps, device=last.device) < p.lengths[:, None]
    log_z = torch.log(scale).sum(dim=-1) + (peak[..., 0] * inside).sum(dim=-1) + torch.log(final)
    return ForwardBackward(alpha, beta, scale, weights, log_z)


class Counts(NamedTuple):
    """Expected number of times each potential is used: the gradient of log_z.

    Shapes as in `Potentials`; `emissions` are the marginal probabilities.
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor


def expected_counts(p: Potentials, fb: ForwardBackward) -> Counts:
    """Turn forward and backward variables into expected counts, summed over sequences for the
    shared potentials."""
    marginals = fb.alpha * fb.beta
    arriving = fb.weights[:, :, 1:] * fb.beta[:, :, 1:] / fb.scale[:, :, 1:, None]
    pairs = torch.einsum("lsti,lstj->lij", fb.alpha[:, :, :-1], arriving)
    rows = torch.arange(len(p.lengths), device=p.lengths.device)
    return Counts(
        emissions=marginals,
        transitions=pairs * torch.exp(p.transitions),
        start=marginals[:, :, 0].sum(dim=1),
        end=marginals[:, rows, p.lengths - 1].sum(dim=1),
    )


def path_counts(p: Potentials, path: Tensor) -> tuple[Tensor, Counts]:
    """Weigh one path per sequence: what `forward_backward` and `expected_counts` give when a single
    path is allowed, without the recurrence.

    path (Tensor): int64 tags, (n_layers, n_seqs, n_steps).
    RETURNS (tuple): Log weight, (n_layers, n_seqs), and counts.
    """
    _n_layers, n_seqs, n_steps, n_tags = p.emissions.shape
    steps = torch.arange(n_steps, device=path.device)
    inside = (steps < p.lengths[:, None]).to(p.emissions.dtype)
    emissions = torch.nn.functional.one_hot(path, n_tags) * inside[:, :, None]
    moved = torch.einsum("lsti,lstj->lsij", emissions[:, :, :-1], emissions[:, :, 1:])
    rows = torch.arange(n_seqs, device=path.device)
    start, end = emissions[:, :, 0], emissions[:, rows, p.lengths - 1]
    weight = (
        (emissions * p.emissions).sum(dim=(2, 3))
        + _dot(moved, p.transitions[:, None]).sum(dim=(2, 3))
        + _dot(start, p.start[:, None]).sum(dim=2)
        + _dot(end, p.end[:, None]).sum(dim=2)
    )
    return weight, Counts(emissions, moved.sum(dim=1), start.sum(dim=1), end.sum(dim=1))


def _dot(counts: Tensor, potentials: Tensor) -> Tensor:
    """RETURNS (Tensor): Elementwise product; what is never used weighs nothing, even at -inf."""
    return torch.where(counts > 0, counts * potentials, 0.0)


def negative_log_likelihood(p: Potentials, allowed: Tensor) -> tuple[Tensor, Counts]:
    """Loss of a (partial) annotation: log of the sum over all paths, less that over the paths that
    the annotation allows (Tsuboi et al. 2008).

    allowed (Tensor): bool, True for each tag that a step may have, shape of the emissions.
    RETURNS (tuple): Loss summed over sequences and layers (nats), and its gradient.
    """
    every = forward_backward(p)
    inside = torch.arange(allowed.shape[2], device=allowed.device) < p.lengths[:, None]
    if bool((allowed.sum(dim=-1) == 1)[:, inside].all()):
        gold_weight, observed = path_counts(p, allowed.to(torch.int8).argmax(dim=-1))
    else:
        gold = forward_backward(p, allowed)
        gold_weight, observed = gold.log_z, expected_counts(p, gold)
    loss = (every.log_z - gold_weight).sum()
    expected = expected_counts(p, every)
    return loss, Counts(*(e - o for e, o in zip(expected, observed, strict=True)))


@one_thread()
def viterbi(p: Potentials) -> Tensor:
    """Find the most probable path.

    RETURNS (Tensor): int64 tags, (n_layers, n_seqs, n_steps), 0 past the end.
    """
    n_layers, n_seqs, n_steps, _ = p.emissions.shape
    active = _active(p.lengths)
    best = p.start[:, None] + p.emissions[:, :, 0]
    back = torch.zeros(p.emissions.shape, dtype=torch.int64, device=p.emissions.device)
    for t in range(1, n_steps):
        n = active[t]
        scores, back[:, :n, t] = (best[:, :n, :, None] + p.transitions[:, None]).max(dim=2)
        best = torch.cat([scores + p.emissions[:, :n, t], best[:, n:]], dim=1)
    tag = (best + p.end[:, None]).argmax(dim=-1)
    path = torch.zeros((n_layers, n_seqs, n_steps), dtype=torch.int64, device=best.device)
    for t in range(n_steps - 1, -1, -1):
        n = active[t]
        path[:, :n, t] = tag[:, :n]
        previous = back[:, :n, t].gather(-1, tag[:, :n, None])[..., 0]
        tag = torch.cat([previous, tag[:, n:]], dim=1) if t else tag
    return path


def path_log_weights(p: Potentials, fb: ForwardBackward, path: Tensor) -> Tensor:
    """Log weight of each step of a path given the step before, so that the posterior probability of
    a piece of path is exp of a difference of running sums (see `span_probabilities`).

    RETURNS (Tensor): Running sum over steps, (n_layers, n_seqs, n_steps).
    """
    emitted = torch.log(fb.weights).gather(-1, path[..., None])[..., 0] - torch.log(fb.scale)
    layers = torch.arange(path.shape[0], device=path.device)[:, None, None]
    moved = torch.zeros_like(emitted)
    moved[:, :, 1:] = p.transitions[layers, path[:, :, :-1], path[:, :, 1:]]
    inside = torch.arange(path.shape[2], device=path.device) < p.lengths[:, None]
    return torch.where(inside, emitted + moved, 0.0).cumsum(dim=-1)


def span_probabilities(
    p: Potentials,
    fb: ForwardBackward,
    path: Tensor,
    spans: Tensor,
    go_on: Tensor,
) -> Tensor:
    """Posterior probability that a span of the path is exactly an entity (Culotta and McCallum
    2004): the weight of all paths that run through it, over the weight of all paths.

    spans (Tensor): Rows (layer, sequence, first step, last step), int64, (n_spans, 4).
    go_on (Tensor): Per layer and tag, the tag that would continue an entity which ends in this tag
        (I after B or I in BIO), or -1; paths that go on are not counted, (n_layers, n_tags).
    RETURNS (Tensor): (n_spans,)
    """
    layer, seq, first, last = spans.unbind(dim=1)
    sums = path_log_weights(p, fb, path)
    first_tag, last_tag = path[layer, seq, first], path[layer, seq, last]
    inner = torch.exp(sums[layer, seq, last] - sums[layer, seq, first])
    after = fb.beta[layer, seq, last, last_tag]
    tag = go_on[layer, last_tag]
    has_next = (tag >= 0) & (last + 1 < p.lengths[seq])
    step = torch.where(has_next, last + 1, last)
    tag = tag.clamp(min=0)
    longer = (
        torch.exp(p.transitions[layer, last_tag, tag])
        * fb.weights[layer, seq, step, tag]
        * fb.beta[layer, seq, step, tag]
        / fb.scale[layer, seq, step]
    )
    after = after - torch.where(has_next, longer, 0.0)
    return (fb.alpha[layer, seq, first, first_tag] * inner * after).clamp(0.0, 1.0)
