"""From scores of candidates to relations, and the loss. Torch and numpy only."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .candidates import Candidates, Mention, Types, allowed_labels


class Found(NamedTuple):
    """A relation that was found.

    head, child (Mention): The arguments; of concepts, the mentions that are nearest.
    label (str): Type of the relation.
    probability (float): From 0 to 1.
    concepts (tuple[str, str] | None): Ids of head and child, of a relation between concepts.
    """

    head: Mention
    child: Mention
    label: str
    probability: float
    concepts: tuple[str, str] | None


def get_log_probabilities(scores: Tensor, allowed: np.ndarray) -> Tensor:
    """Normalise scores over the labels that a pair of types may have.

    scores (Tensor): (n_pairs, 1 + n_labels); the first column is "no relation".
    allowed (ndarray): (n_pairs, n_labels).
    RETURNS (Tensor): (n_pairs, 1 + n_labels); minus infinity for other labels.
    """
    mask = torch.from_numpy(~allowed).to(scores.device)
    none = torch.zeros((len(mask), 1), dtype=torch.bool, device=scores.device)
    closed = torch.cat([none, mask], dim=1)
    return scores.masked_fill(closed, -torch.inf).log_softmax(dim=1)


def decode(
    scores: Tensor, candidates: Candidates, types: Types, thresholds: Mapping[str, float]
) -> list[Found]:
    """Choose the labels of each candidate: the most probable one, if it is a relation, and each
    label that reaches its own threshold, if it has one.

    scores (Tensor): (n_pairs, 1 + n_labels).
    RETURNS (list[Found]): In the order of the candidates. Of a symmetric relation in both
        directions, the more probable is kept.
    """
    probabilities = get_log_probabilities(scores, allowed_labels(candidates, types)).exp().numpy()
    best = probabilities.argmax(axis=1)
    chosen = np.zeros(probabilities[:, 1:].shape, dtype=bool)
    for column, label in enumerate(types.labels):
        if label in thresholds:
            # A label that the types exclude has probability 0, which a threshold of 0 would reach.
            p = probabilities[:, column + 1]
            chosen[:, column] = (p >= thresholds[label]) & (p > 0)
        else:
            chosen[:, column] = best == column + 1
    found: dict[tuple[int, int, int], float] = {}
    for row, column in np.argwhere(chosen).tolist():
        head, child = candidates.pairs[row].tolist()
        other = found.get((child, head, column)) if types.symmetric[column] else None
        probability = float(probabilities[row, column + 1])
        if other is not None:
            if other >= probability:
                continue
            del found[child, head, column]
        found[head, child, column] = probability
    rows = {pair: row for row, pair in enumerate(map(tuple, candidates.pairs.tolist()))}
    return [
        _to_found(candidates, rows[head, child], types.labels[column], probability)
        for (head, child, column), probability in found.items()
    ]


def _to_found(candidates: Candidates, row: int, label: str, probability: float) -> Found:
    head, child = (candidates.mentions[i] for i in candidates.nearest[row].tolist())
    first, second = (candidates.arguments[i].concept for i in candidates.pairs[row].tolist())
    concepts = None if first is None or second is None else (first, second)
    return Found(head, child, label, probability, concepts)


class Targets(NamedTuple):
    """What candidates are.

    labels (ndarray): Whether a candidate has a label, (n_pairs, n_labels).
    known (ndarray): Whether it was annotated, (n_pairs,); others have no loss.
    allowed (ndarray): Labels that its types may have, (n_pairs, n_labels).
    """

    labels: np.ndarray
    known: np.ndarray
    allowed: np.ndarray


def relation_loss(
    scores: Tensor,
    labels: np.ndarray,
    known: np.ndarray,
    allowed: np.ndarray,
    *,
    n_known: int | None = None,
) -> tuple[float, Tensor]:
    """Compute the cross-entropy per candidate (nats) and its gradient.

    A candidate with several labels has them in equal parts.

    scores (Tensor): (n_pairs, 1 + n_labels).
    labels, known, allowed (ndarray): See `Targets`.
    n_known (int | None): Number of annotated candidates, if these are a part of them.
    RETURNS (tuple): Loss, and gradient, (n_pairs, 1 + n_labels).
    """
    target = np.concatenate([~labels.any(axis=1, keepdims=True), labels], axis=1).astype("f")
    target /= target.sum(axis=1, keepdims=True)
    target *= known[:, None]
    goal = torch.from_numpy(target).to(scores.device)
    with torch.no_grad():
        log_p = get_log_probabilities(scores.detach(), allowed)
        n = max(int(known.sum()) if n_known is None else n_known, 1)
        loss = -torch.where(goal > 0, goal * log_p, 0.0).sum() / n
        weight = goal.sum(dim=1, keepdim=True)
        gradient = (log_p.exp() * weight - goal) / n
    return float(loss), gradient
