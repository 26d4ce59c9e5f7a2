"""A linear-chain conditional random field (Lafferty et al. 2001) on batches of sequences.

All recurrences run on probabilities scaled to sum to 1 at each step (Rabiner 1989, section V.A) in
float64: a step is one matrix product, and a forbidden transition is a zero. Gradients are computed
as expected minus observed counts, not traced through the recurrence.

Sequences are packed as for torch's recurrent networks: first the first step of every sequence, from
the longest to the shortest, then the second step of all that have one, and so on. What a step reads
and writes is contiguous in memory, and nothing is padded.

    lengths 3, 1, 2   packed  a1 c1 b1 | a2 c2 | a3     active  3, 2, 1

The first axis of most tensors is that of layers, which have independent tag sets.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .tags import OUTSIDE


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch in one thread.

    A recurrence is a long sequence of tiny products; threads that wait for each other at each of
    them make it many times slower on a busy machine.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Packing(NamedTuple):
    """The order of packed steps.

    rows (Tensor): For each packed step, its index in the concatenated sequences, (n_rows,).
    active (list[int]): How many sequences have a first, second … step.
    seqs (Tensor): Sequence of each packed step; sequences are sorted by length, (n_rows,).
    later, previous (Tensor): Each step that has a predecessor, and its predecessor,
        (n_rows - n_seqs,).
    last (Tensor): Last step of each sequence, (n_seqs,).
    """

    rows: Tensor
    active: list[int]
    seqs: Tensor
    later: Tensor
    previous: Tensor
    last: Tensor


def pack(lengths: list[int], device: torch.device) -> Packing:
    """Compute the packed order of sequences; those of length 0 are left out.

    lengths (list[int]): Steps of each sequence.
    """
    sizes = np.array(lengths, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    order = order[: int((sizes > 0).sum())]
    starts = (np.cumsum(sizes) - sizes)[order]
    sizes = sizes[order]
    steps = np.arange(int(sizes.max(initial=0)))
    active = np.searchsorted(-sizes, -steps, side="left")
    offsets = np.cumsum(active) - active
    seqs = np.arange(int(active.sum())) - np.repeat(offsets, active)
    rows = starts[seqs] + np.repeat(steps, active)
    later = np.arange(len(order), len(rows))
    previous = later - np.repeat(active[:-1], active[1:])
    last = offsets[sizes - 1] + np.arange(len(order))
    tensors = [torch.from_numpy(x).to(device) for x in (rows, seqs, later, previous, last)]
    return Packing(tensors[0], active.tolist(), *tensors[1:])


def _places(packing: Packing) -> Tensor:
    """Find the packed step of each row of the concatenated sequences, (n_rows,)."""
    place = torch.empty_like(packing.rows)
    place[packing.rows] = torch.arange(len(place), device=place.device)
    return place


class Potentials(NamedTuple):
    """Unnormalised log scores in float64; -inf forbids.

    emissions (Tensor): Packed, (n_layers, n_rows, n_tags).
    transitions (Tensor): From row to column, (n_layers, n_tags, n_tags).
    start, end (Tensor): (n_layers, n_tags).
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor


class ForwardBackward(NamedTuple):
    """Scaled forward and backward variables; their product is the marginal.

    alpha, beta (Tensor): (n_layers, n_rows, n_tags).
    scale (Tensor): Factor by which each step is divided, (n_layers, n_rows, 1).
    weights (Tensor): exp(emissions - peak), same shape as alpha.
    log_z (Tensor): Log of the partition function, summed over sequences, (n_layers,).
    """

    alpha: Tensor
    beta: Tensor
    scale: Tensor
    weights: Tensor
    log_z: Tensor


@one_thread()
@torch.no_grad()
def forward_backward(
    p: Potentials, packing: Packing, allowed: Tensor | None = None
) -> ForwardBackward:
    """Run the forward and the backward recurrence.

    allowed (Tensor | None): True for the tags that paths may use, same shape as the emissions. The
        result is the sum over all paths that agree with a partial annotation.
    """
    active = packing.active
    peak = p.emissions.amax(dim=-1, keepdim=True)
    weights = (p.emissions - peak).exp_()
    if allowed is not None:
        weights *= allowed
    alpha, beta = torch.empty_like(weights), torch.empty_like(weights)
    scale = torch.empty_like(peak)
    w, a, b, s = (x.split(active, dim=1) for x in (weights, alpha, beta, scale))
    transitions, end = torch.exp(p.transitions), torch.exp(p.end)[:, None]
    torch.mul(torch.exp(p.start)[:, None], w[0], out=a[0])
    for t, n in enumerate(active):
        if t:  # writing the product itself into a slice is slow with many layers
            torch.mul(torch.bmm(a[t - 1][:, :n], transitions), w[t], out=a[t])
        a[t].div_(torch.sum(a[t], dim=-1, keepdim=True, out=s[t]))
    final = (alpha[:, packing.last] * end).sum(dim=-1, keepdim=True)
    beta[:, packing.last] = end / final
    backward = transitions.transpose(1, 2).contiguous()
    passed = torch.empty_like(b[0])
    for t in range(len(active) - 2, -1, -1):
        n = active[t + 1]
        step = torch.mul(w[t + 1], b[t + 1], out=passed[:, :n]).div_(s[t + 1])
        b[t][:, :n] = torch.bmm(step, backward)
    log_z = (torch.log(scale) + peak).sum(dim=(1, 2)) + torch.log(final).sum(dim=(1, 2))
    return ForwardBackward(alpha, beta, scale, weights, log_z)


class Counts(NamedTuple):
    """Expected number of times each potential is used: the gradient of log_z.

    Shapes as in `Potentials`; `emissions` are the marginal probabilities.
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor


def expected_counts(p: Potentials, packing: Packing, fb: ForwardBackward) -> Counts:
    """Turn forward and backward variables into expected counts, summed over sequences for the
    shared potentials."""
    n_seqs = len(packing.last)
    marginals = fb.alpha * fb.beta
    arriving = fb.weights[:, n_seqs:] * fb.beta[:, n_seqs:] / fb.scale[:, n_seqs:]
    pairs = fb.alpha[:, packing.previous].transpose(1, 2) @ arriving
    return Counts(
        emissions=marginals,
        transitions=pairs * torch.exp(p.transitions),
        start=marginals[:, :n_seqs].sum(dim=1),
        end=marginals[:, packing.last].sum(dim=1),
    )


def tag_marginals(p: Potentials, packing: Packing) -> Tensor:
    """Compute `alpha * beta` of `forward_backward` so that autograd can trace it.

    A loss on the marginals needs their derivatives, which are second derivatives of log_z.

    RETURNS (Tensor): Packed, (n_layers, n_rows, n_tags).
    """

    def scaled(x: Tensor) -> Tensor:
        return x / x.sum(dim=-1, keepdim=True)

    active = packing.active
    weights = torch.exp(p.emissions - p.emissions.detach().amax(dim=-1, keepdim=True))
    w = weights.split(active, dim=1)
    transitions, end = torch.exp(p.transitions), torch.exp(p.end)[:, None]
    alpha = [scaled(torch.exp(p.start)[:, None] * w[0])]
    for t, n in enumerate(active[1:], start=1):
        alpha.append(scaled((alpha[-1][:, :n] @ transitions) * w[t]))
    beta = [end.expand(-1, active[-1], -1)]
    for t in range(len(active) - 2, -1, -1):
        passed = scaled((w[t + 1] * beta[-1]) @ transitions.transpose(1, 2))
        beta.append(torch.cat([passed, end.expand(-1, active[t] - active[t + 1], -1)], dim=1))
    return torch.cat([scaled(a * b) for a, b in zip(alpha, beta[::-1], strict=True)], dim=1)


def path_counts(p: Potentials, packing: Packing, path: Tensor) -> tuple[Tensor, Counts]:
    """Compute the weight and the counts of one path per sequence: what `forward_backward` and
    `expected_counts` give if a single path is allowed, without the recurrence.

    path (Tensor): int64 tags, (n_layers, n_rows).
    RETURNS (tuple): Log weight, summed over sequences, (n_layers,), and counts.
    """
    layers = torch.arange(len(path), device=path.device)[:, None]
    counts = Counts(*(torch.zeros_like(potential) for potential in p))
    used = [
        (layers, torch.arange(path.shape[1], device=path.device), path),
        (layers, path[:, packing.previous], path[:, packing.later]),
        (layers, path[:, : len(packing.last)]),
        (layers, path[:, packing.last]),
    ]
    weight = torch.zeros_like(p.emissions[:, 0, 0])
    for potential, count, where in zip(p, counts, used, strict=True):
        weight += potential[where].sum(dim=1)
        count.index_put_(where, count.new_ones(()), accumulate=True)
    return weight, counts


def negative_log_likelihood(
    p: Potentials, packing: Packing, allowed: Tensor
) -> tuple[Tensor, Counts]:
    """Compute the loss of a (partial) annotation: the log of the sum over all paths, minus that
    over the paths that the annotation allows (Tsuboi et al. 2008).

    allowed (Tensor): bool, True for each tag that a step may have, shape of the emissions.
    RETURNS (tuple): Loss summed over sequences and layers (nats), and its gradient.
    """
    every = forward_backward(p, packing)
    if bool((allowed.sum(dim=-1) == 1).all()):
        path = allowed.to(torch.int8).argmax(dim=-1)
        gold_weight, observed = path_counts(p, packing, path)
    else:
        gold = forward_backward(p, packing, allowed)
        gold_weight, observed = gold.log_z, expected_counts(p, packing, gold)
    loss = (every.log_z - gold_weight).sum()
    expected = expected_counts(p, packing, every)
    return loss, Counts(*(e - o for e, o in zip(expected, observed, strict=True)))


class Legal(NamedTuple):
    """Which tags are allowed where. All layers have the same scheme and number of labels.

    transitions (Tensor): True if the tag of the column may follow that of the row,
        (n_tags, n_tags).
    start, end (Tensor): (n_tags,).
    """

    transitions: Tensor
    start: Tensor
    end: Tensor


def most_probable_tags(marginals: Tensor, packing: Packing, legal: Legal) -> Tensor:
    """Find the legal path with the largest product of marginals (posterior decoding under a
    grammar, Käll et al. 2005).

    It scores as well as Viterbi's path and is faster: if the best tag of each step makes a legal
    path, as in most texts, no maximum over pairs of tags is needed.

    marginals (Tensor): Packed, (n_layers, n_rows, n_tags).
    RETURNS (Tensor): int64 tags, (n_layers, n_rows).
    """
    path = marginals.argmax(dim=-1)
    n_seqs = len(packing.last)
    step = ~legal.transitions[path[:, packing.previous], path[:, packing.later]]
    broken = torch.zeros_like(path, dtype=torch.bool)
    broken[:, packing.later] = step
    broken[:, packing.previous] |= step
    broken[:, :n_seqs] |= ~legal.start[path[:, :n_seqs]]
    broken[:, packing.last] |= ~legal.end[path[:, packing.last]]
    if bool(broken.any()):
        _mend(path, marginals, broken, packing, legal)
    return path


def _mend(path: Tensor, marginals: Tensor, broken: Tensor, packing: Packing, legal: Legal) -> None:
    """Give the parts of a path that hold an illegal step their best legal tags.

    A path stays legal when an entity is left out. So a token can be in an entity of the best legal
    path only if the best tags of a run of tokens around it, without "O", are together at least as
    probable as "O". Between such runs there is "O", and each run is a sequence of its own.

    broken (Tensor): True at both ends of an illegal step, shape of the path.
    """
    layer, step = broken.nonzero(as_tuple=True)
    affected = broken.new_zeros((len(path), len(packing.last)))
    affected[layer, packing.seqs[step]] = True
    place = _places(packing)
    layer, row = affected[:, packing.seqs[place]].nonzero(as_tuple=True)
    step = place[row]
    tokens = marginals[layer, step]
    gain = tokens[:, OUTSIDE + 1 :].amax(dim=-1).clamp(min=1e-30).log()
    gain -= tokens[:, OUTSIDE].clamp(min=1e-300).log()
    sums = gain.cumsum(dim=0)
    highest = sums.flip(0).cummax(dim=0).values.flip(0)
    lowest = (sums - gain).cummin(dim=0).values
    inside = ~(highest - lowest < -1e-6)
    begins = step < len(packing.last)  # the first steps of all sequences are packed first
    begins[1:] |= ~inside[:-1]
    begins &= inside
    run = begins.cumsum(dim=0)
    is_broken = broken.new_zeros(len(run) + 1)
    is_broken[run[inside & broken[layer, step]]] = True
    chosen = (inside & is_broken[run]).nonzero()[:, 0]
    lengths = run[chosen].unique_consecutive(return_counts=True)[1]
    parts = pack(lengths.tolist(), path.device)
    chosen = chosen[parts.rows]
    scores = torch.log(tokens[chosen]).float()
    path[layer[chosen], step[chosen]] = _best_legal_path(scores, parts, legal)


@one_thread()
def _best_legal_path(scores: Tensor, packing: Packing, legal: Legal) -> Tensor:
    """Find the legal path with the largest sum of scores.

    scores (Tensor): Packed, (n_rows, n_tags).
    RETURNS (Tensor): Tags, (n_rows,).
    """

    def bar(allowed: Tensor) -> Tensor:
        return torch.zeros_like(scores[0]).where(allowed, -torch.inf)

    # Tags that may follow the same tags share a maximum.
    sources, source_of = legal.transitions.T.unique(dim=0, return_inverse=True)
    barred = bar(sources)
    best = scores.split(packing.active)
    best[0].add_(bar(legal.start))
    for t, n in enumerate(packing.active[1:], start=1):
        parts = best[t - 1][:n].split(1024)  # a sum for each pair of tags is large
        through = [(part[:, None] + barred).amax(dim=-1) for part in parts]
        best[t].add_(torch.cat(through)[:, source_of])
    scores[packing.last] += bar(legal.end)
    after = bar(legal.transitions.T)
    tags: list[Tensor] = []
    for t in range(len(best) - 1, -1, -1):
        if tags:
            n = len(tags[-1])
            best[t][:n].add_(after[tags[-1]])
        tags.append(best[t].argmax(dim=-1))
    return torch.cat(tags[::-1])


def span_probabilities(
    p: Potentials,
    packing: Packing,
    fb: ForwardBackward,
    path: Tensor,
    spans: Tensor,
    next_tag: Tensor,
) -> Tensor:
    """Compute the posterior probability that a span of the path is exactly an entity (Culotta and
    McCallum 2004): the weight of all paths through it, over the weight of all paths.

    spans (Tensor): Columns (layer, first row, last row), rows of the concatenated sequences, int64,
        (n_spans, 3).
    next_tag (Tensor): Per layer and tag, the tag that would continue an entity which ends in this
        tag (I after B or I in BIO), or -1; paths that continue it are not counted,
        (n_layers, n_tags).
    RETURNS (Tensor): (n_spans,)
    """
    layer = spans[:, 0]
    place = _places(packing)
    first, last = place[spans[:, 1]], place[spans[:, 2]]
    # Log weight of each step of the path given the previous step, in the order of the sequences, so
    # that a part of the path is a difference of cumulative sums.
    layers = torch.arange(len(path), device=path.device)[:, None]
    weights = torch.log(fb.weights.gather(-1, path[..., None]) / fb.scale)[..., 0]
    weights[:, packing.later] += p.transitions[
        layers, path[:, packing.previous], path[:, packing.later]
    ]
    sums = torch.empty_like(weights)
    sums[:, packing.rows] = weights
    sums = sums.cumsum(dim=1)
    inner = torch.exp(sums[layer, spans[:, 2]] - sums[layer, spans[:, 1]])
    after = fb.beta[layer, last, path[layer, last]]
    tag = next_tag[layer, path[layer, last]]
    following = torch.full_like(place, -1)
    following[packing.previous] = packing.later
    step = following[last]
    has_next = (tag >= 0) & (step >= 0)
    tag, step = tag.clamp(min=0), step.clamp(min=0)
    longer = (
        torch.exp(p.transitions[layer, path[layer, last], tag])
        * fb.weights[layer, step, tag]
        * fb.beta[layer, step, tag]
        / fb.scale[layer, step, 0]
    )
    after = after - torch.where(has_next, longer, 0.0)
    return (fb.alpha[layer, first, path[layer, first]] * inner * after).clamp(0.0, 1.0)
