"""From a head's scores to entities with probabilities, and to a loss with gradients."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from . import crf
from .model import AnyScores, TagScores
from .tags import MISSING, OUTSIDE, TagSet, decode_tags, legal_transitions

# Largest number of scores in a batch: 32 MB in float64 for each of about six arrays of a CRF.
MAX_BATCH_SCORES = 4_000_000


class Entity(NamedTuple):
    """A decoded entity: token slice, label and posterior probability.

    doubtful (bool): Whether it is not in the most probable tags.
    """

    start: int
    end: int
    label: str
    probability: float
    doubtful: bool = False


class Grammar(NamedTuple):
    """The tagging schemes of all layers as tensors; -inf forbids, 0 allows.

    transitions (Tensor): (n_layers, n_tags, n_tags).
    start, end (Tensor): (n_layers, n_tags).
    next_tag (Tensor): Tag that continues an entity ending in this tag, or -1, (n_layers, n_tags).
    """

    transitions: Tensor
    start: Tensor
    end: Tensor
    next_tag: Tensor


def make_grammar(tag_sets: list[TagSet], device: torch.device) -> Grammar:
    """Make the tensors of the tagging schemes, for layers with the same number of tags."""
    legal = [legal_transitions(tag_set) for tag_set in tag_sets]
    next_tag = torch.full((len(tag_sets), tag_sets[0].n_tags), -1, dtype=torch.int64)
    if tag_sets[0].scheme == "BIO":  # in BILUO the last tag of an entity marks its end
        inside = torch.arange(2, tag_sets[0].n_tags, 2)
        next_tag[:, inside] = inside
        next_tag[:, inside - 1] = inside
    transitions, start, end = (
        torch.from_numpy(np.stack(rule)).to(device).double().log()
        for rule in zip(*legal, strict=True)
    )
    return Grammar(transitions, start, end, next_tag.to(device))


class Batch(NamedTuple):
    """Scores of some Docs, packed for the CRF.

    docs (range): Indices of the Docs.
    first (int): Row of their first token in the emissions.
    """

    docs: range
    first: int
    packing: crf.Packing
    potentials: crf.Potentials


def make_batches(scores: TagScores, grammar: Grammar, *, n_members: int = 1) -> Iterator[Batch]:
    """Group as many consecutive Docs as `MAX_BATCH_SCORES` allows, for each of so many models."""
    _, n_layers, n_tags = scores.emissions.shape
    ends = np.cumsum(scores.lengths)
    max_rows = MAX_BATCH_SCORES // (n_members * n_layers * n_tags)
    shared = [
        potential.detach().double() + legal
        for potential, legal in zip(scores[1:4], grammar[:3], strict=True)
    ]
    doc, first = 0, 0
    while doc < len(ends):
        stop = max(doc + 1, int(np.searchsorted(ends, first + max_rows, side="right")))
        packing = crf.pack(scores.lengths[doc:stop], scores.emissions.device)
        if len(packing.rows):
            emissions = scores.emissions.detach()[first + packing.rows].transpose(0, 1)
            potentials = crf.Potentials(emissions.double().contiguous(), *shared)
            yield Batch(range(doc, stop), first, packing, potentials)
        doc, first = stop, int(ends[stop - 1])


def make_joint_batches(scores: AnyScores, grammar: Grammar) -> Iterator[list[Batch]]:
    """Group Docs as `make_batches` does, with a batch of the same Docs for each model."""
    members = [scores] if isinstance(scores, TagScores) else scores
    batches = (make_batches(member, grammar, n_members=len(members)) for member in members)
    yield from map(list, zip(*batches, strict=True))


def find_entities(
    scores: AnyScores,
    tag_sets: list[TagSet],
    grammar: Grammar,
    *,
    threshold: float = 0.0,
    doubtful_from: float | None = None,
) -> list[list[Entity]]:
    """Decode the most probable legal tags of each Doc and compute the entities' probabilities.

    An ensemble is the mixture of its members, each with the same weight: a path is as probable as
    it is for the members on average. So are a tag and an entity, which both are sets of paths.

    The recurrences run on the CPU: a GPU is no faster at many small steps, and encodes the next
    batch meanwhile.

    scores (TagScores | list[TagScores]): Of one model, or of each member of an ensemble.
    grammar (Grammar): On the CPU.
    threshold (float): Lowest probability of an entity of the most probable tags.
    doubtful_from (float | None): Also find entities that are not in the most probable tags, but
        have this probability or more; None to leave them out.
    RETURNS (list[list[Entity]]): Per Doc, ordered by start.
    """
    members = [scores] if isinstance(scores, TagScores) else scores
    members = [member.map(torch.Tensor.cpu) for member in members]
    all_lengths = members[0].lengths
    found: list[list[Entity]] = [[] for _ in all_lengths]
    legal = crf.Legal(*(potential[0] > -torch.inf for potential in grammar[:3]))
    for batches in make_joint_batches(members, grammar):
        batch = batches[0]
        variables = [crf.forward_backward(each.potentials, each.packing) for each in batches]
        marginals = mean_marginals(variables)
        path = crf.most_probable_tags(marginals, batch.packing, legal)
        tags = np.empty(path.shape, dtype=np.int64)
        # An array: numpy takes a tensor of one element for a number, and drops the axis.
        rows = batch.packing.rows.numpy()
        tags[:, rows] = path
        lengths = all_lengths[batch.docs.start : batch.docs.stop]
        ends = np.cumsum(lengths)
        starts = ends - lengths
        entities = decode_tags(tags.reshape(-1), tag_sets[0])
        layer, first = np.divmod(entities.first, tags.shape[1])
        last = entities.last % tags.shape[1]
        spans = torch.from_numpy(np.stack([layer, first, last], axis=1))
        of_members = [
            crf.span_probabilities(
                each.potentials, each.packing, fb, path, spans, grammar.next_tag
            ).numpy()
            for each, fb in zip(batches, variables, strict=True)
        ]
        probability = np.mean(of_members, axis=0)
        at = np.searchsorted(ends, first, side="right")
        place = at + batch.docs.start, first - starts[at], last + 1 - starts[at]
        columns = [column.tolist() for column in (*place, layer, entities.label, probability)]
        for doc, start, end, n, label, p in zip(*columns, strict=True):
            if p >= threshold:
                found[doc].append(Entity(start, end, tag_sets[n].labels[label], p))
        if doubtful_from is not None:
            posterior = np.empty((*path.shape, tag_sets[0].n_tags))
            posterior[:, rows] = marginals.numpy()
            for doc, start, end in zip(batch.docs, starts.tolist(), ends.tolist(), strict=True):
                for n, tag_set in enumerate(tag_sets):
                    here = posterior[n, start:end], tags[n, start:end]
                    found[doc].extend(doubtful_entities(*here, tag_set, doubtful_from))
    return [sorted(entities) for entities in found]


def mean_marginals(variables: list[crf.ForwardBackward]) -> Tensor:
    """Compute the marginals of a mixture of models with the same weight.

    RETURNS (Tensor): Packed, (n_layers, n_rows, n_tags).
    """
    total = variables[0].alpha * variables[0].beta
    for other in variables[1:]:
        total += other.alpha * other.beta
    return total / len(variables) if len(variables) > 1 else total


def doubtful_entities(
    posterior: np.ndarray, path: np.ndarray, tag_set: TagSet, threshold: float
) -> Iterator[Entity]:
    """Find runs of tokens that are "O" in the most probable tags but may well be part of an entity.

    posterior (ndarray): Probability of each tag of each token, (n_tokens, n_tags).
    path (ndarray): The most probable tags, (n_tokens,).
    threshold (float): Lowest probability that a token is not "O".
    YIELDS (Entity): Its label is the most probable one, its probability the highest probability
        that one of its tokens is not "O".
    """
    inside = 1 - posterior[:, OUTSIDE]
    doubtful = (path == OUTSIDE) & (inside >= threshold)
    edges = np.flatnonzero(np.diff(doubtful, prepend=False, append=False))
    for start, end in edges.reshape(-1, 2).tolist():
        mass = posterior[start:end, 1:].reshape(end - start, len(tag_set.labels), -1).sum((0, 2))
        label = tag_set.labels[int(mass.argmax())]
        yield Entity(start, end, label, float(inside[start:end].max()), doubtful=True)


def crf_loss(
    scores: TagScores, tags: Tensor, grammar: Grammar, open_tags: Tensor | None = None
) -> tuple[float, TagScores]:
    """Compute the negative log-likelihood of whole sequences, per annotated token and layer.

    tags (Tensor): int64, MISSING where not annotated, (n_tokens, n_layers).
    open_tags (Tensor | None): True for the tags that a token may have besides that in `tags`, bool,
        (n_tokens, n_layers, n_tags). All paths that agree count (Tsuboi et al. 2008).
    RETURNS (tuple): Loss in nats, and its gradient with respect to the scores.
    """
    known = tags != MISSING
    used = known.any(dim=0)
    if not bool(used.all()):  # layers for which nothing is annotated: their gradient is zero
        return _loss_of_layers(scores, tags, grammar, open_tags, used.nonzero()[:, 0])
    allowed_flat = _allowed(tags, open_tags, scores.emissions.shape[-1]) | ~known[..., None]
    norm = max(1, int(known.sum()))
    d_emissions = torch.zeros_like(scores.emissions)
    shared = [torch.zeros_like(score, dtype=torch.float64) for score in scores[1:4]]
    total = 0.0
    for batch in make_batches(scores, grammar):
        rows = batch.first + batch.packing.rows
        loss, counts = crf.negative_log_likelihood(
            batch.potentials, batch.packing, allowed_flat[rows].transpose(0, 1)
        )
        total += float(loss)
        d_emissions[rows] = counts.emissions.transpose(0, 1).to(d_emissions.dtype)
        for gradient, count in zip(shared, counts[1:], strict=True):
            gradient += count
    transitions, start, end = ((g / norm).to(scores.emissions.dtype) for g in shared)
    return total / norm, TagScores(d_emissions / norm, transitions, start, end, scores.lengths)


def _loss_of_layers(
    scores: TagScores, tags: Tensor, grammar: Grammar, open_tags: Tensor | None, layers: Tensor
) -> tuple[float, TagScores]:
    """Compute `crf_loss` of some layers; the gradient of the others is zero."""
    gradient = scores.map(torch.zeros_like)
    if not len(layers):
        return 0.0, gradient
    emissions, transitions, start, end, lengths = scores
    part = TagScores(emissions[:, layers], transitions[layers], start[layers], end[layers], lengths)
    rules = Grammar(*(rule[layers] for rule in grammar))
    open_tags = None if open_tags is None else open_tags[:, layers]
    loss, found = crf_loss(part, tags[:, layers], rules, open_tags)
    gradient.emissions[:, layers] = found.emissions
    for whole, each in zip(gradient[1:4], found[1:4], strict=True):
        whole[layers] = each
    return loss, gradient


def _allowed(tags: Tensor, open_tags: Tensor | None, n_tags: int) -> Tensor:
    """Find the tags that annotated tokens may have, bool, (n_tokens, n_layers, n_tags)."""
    allowed = torch.nn.functional.one_hot(tags.clamp(min=0), n_tags).bool()
    return allowed if open_tags is None else allowed | open_tags


def token_loss(
    scores: TagScores, tags: Tensor, open_tags: Tensor | None = None
) -> tuple[float, TagScores]:
    """Compute the cross-entropy per annotated token and layer; where a token may have several tags,
    that of the sum of their probabilities. See `crf_loss`."""
    logits = scores.emissions.detach().float().requires_grad_()
    known = tags != MISSING
    if open_tags is None:
        total = torch.nn.functional.cross_entropy(
            logits.permute(0, 2, 1), tags, ignore_index=MISSING, reduction="sum"
        )
    else:
        allowed = _allowed(tags, open_tags, logits.shape[-1])
        right = logits.masked_fill(~allowed, -torch.inf).logsumexp(dim=-1)
        total = (logits.logsumexp(dim=-1) - right)[known].sum()
    loss = total / max(1, int(known.sum()))
    loss.backward()
    assert logits.grad is not None
    return float(loss.detach()), scores.map(torch.zeros_like)._replace(emissions=logits.grad)
