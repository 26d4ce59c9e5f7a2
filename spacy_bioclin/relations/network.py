"""The torch part of relation classification: scores of pairs of spans over token vectors."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..types import IntArray

# Tokens between two spans, up to which a bucket of distances goes; the last one has the rest.
DISTANCES = np.array([0, 1, 2, 4, 8, 16, 32, 64])
# For each bucket, head before child and child before head; and spans that overlap.
N_DISTANCES = 2 * (len(DISTANCES) + 1) + 1


class PairInputs(NamedTuple):
    """Pairs of arguments as indices of tokens of a batch whose Docs are concatenated.

    spans (IntArray): First token and end of each mention, (n_mentions, 2).
    owner (IntArray): For each mention of an argument, the argument, (n_members,), sorted.
    member (IntArray): The mention itself, (n_members,).
    type (IntArray): Entity type of each argument, (n_arguments,).
    pairs (IntArray): Head and child, indices of arguments, (n_pairs, 2).
    between (IntArray): First token and end of what is between their nearest mentions, (n_pairs, 2);
        empty where they touch or overlap.
    distance (IntArray): Bucket of the distance, (n_pairs,).
    """

    spans: IntArray
    owner: IntArray
    member: IntArray
    type: IntArray
    pairs: IntArray
    between: IntArray
    distance: IntArray


def find_distances(head: IntArray, child: IntArray) -> IntArray:
    """Find the bucket of the distance between spans.

    head, child (IntArray): First token and end, (n_pairs, 2).
    RETURNS (IntArray): From 0 to `N_DISTANCES` - 1, (n_pairs,).
    """
    after, before = child[:, 0] - head[:, 1], head[:, 0] - child[:, 1]
    bucket = np.searchsorted(DISTANCES, np.maximum(after, before))
    overlapping = N_DISTANCES - 1
    found = np.where(after >= 0, bucket, bucket + len(DISTANCES) + 1)
    return np.where((after < 0) & (before < 0), overlapping, found).astype(np.int64)


def find_between(head: IntArray, child: IntArray) -> IntArray:
    """Find the tokens between spans.

    head, child (IntArray): First token and end, (n_pairs, 2).
    RETURNS (IntArray): First token and end, (n_pairs, 2); equal where nothing is between.
    """
    start = np.minimum(head[:, 1], child[:, 1])
    end = np.maximum(head[:, 0], child[:, 0])
    return np.stack([start, np.maximum(start, end)], axis=1)


class RelationNetwork(nn.Module):
    """Score the relations of pairs, as SpERT does (Eberts and Ulges 2020): from the max-pooled
    vectors of both spans and of the text between them.

    Beyond SpERT, there are embeddings of the entity types and of the distance with its direction,
    and an argument with several mentions has the log-sum-exp of their vectors, as in ATLOP (Zhou
    et al. 2021, equation 3). The scores come from a hidden layer instead of a linear one.

    width (int): Size of the token vectors.
    n_types, n_labels (int): Number of entity types, and of labels of relations.
    context (bool): Use the text between the spans.
    feature_width (int): Size of the embeddings of types and distances; 0 for none.
    hidden_width (int): Size of the hidden layer; 0 for none.
    dropout (float): Rate of dropout before each linear layer.
    """

    def __init__(
        self,
        *,
        width: int,
        n_types: int,
        n_labels: int,
        context: bool,
        feature_width: int,
        hidden_width: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.context, self.feature_width = context, feature_width
        size = (3 if context else 2) * width + 3 * feature_width
        if feature_width:
            self.types = nn.Embedding(n_types, feature_width)
            self.distances = nn.Embedding(N_DISTANCES, feature_width)
        layers: list[nn.Module] = [nn.Dropout(dropout)]
        if hidden_width:
            layers += [nn.Linear(size, hidden_width), nn.GELU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(hidden_width or size, n_labels + 1))

    def forward(self, X: Tensor, inputs: PairInputs) -> Tensor:
        """Score the labels of pairs.

        X (Tensor): Token vectors, (n_tokens, width).
        inputs (PairInputs): The pairs.
        RETURNS (Tensor): Unnormalised log scores, (n_pairs, 1 + n_labels); the first is that of no
            relation.
        """
        spans, owner, member, types, pairs, between, distance = (
            torch.from_numpy(array).to(X.device) for array in inputs
        )
        arguments = join_mentions(range_max(X, spans)[member], owner, len(types))
        head, child = pairs[:, 0], pairs[:, 1]
        parts = [arguments[head], arguments[child]]
        if self.context:
            parts.append(range_max(X, between))
        if self.feature_width:
            embedded = self.types(types)
            parts += [embedded[head], embedded[child], self.distances(distance)]
        scores: Tensor = self.layers(torch.cat(parts, dim=1))
        return scores


def range_max(X: Tensor, ranges: Tensor) -> Tensor:
    """Max-pool ranges of rows, each in constant time: the maximum of a range is that of two ranges
    whose lengths are a power of two, and those come from a table (Bender and Farach-Colton 2000).

    X (Tensor): (n_rows, width).
    ranges (Tensor): First row and end, (n_ranges, 2).
    RETURNS (Tensor): (n_ranges, width); zeros for an empty range.
    """
    start, end = ranges[:, 0], ranges[:, 1]
    length = end - start
    pooled = X.new_zeros((len(ranges), X.shape[1]))
    if not len(ranges):
        return pooled
    level = X
    size, longest = 1, int(length.max())
    while size <= longest:
        rows = torch.nonzero((length >= size) & (length < 2 * size)).flatten()
        if len(rows):
            two = torch.maximum(level[start[rows]], level[end[rows] - size])
            pooled = pooled.index_copy(0, rows, two)
        if 2 * size <= longest:
            level = torch.maximum(level[:-size], level[size:])
        size *= 2
    return pooled


def join_mentions(vectors: Tensor, owner: Tensor, n_arguments: int) -> Tensor:
    """Join the vectors of each argument's mentions by their log-sum-exp.

    vectors (Tensor): (n_members, width).
    owner (Tensor): The argument of each, sorted, (n_members,); every argument has one or more.
    RETURNS (Tensor): (n_arguments, width); of an argument with one mention, its vector.
    """
    if n_arguments == len(vectors):
        return vectors
    rows = owner[:, None].expand_as(vectors)
    top = vectors.new_zeros((n_arguments, vectors.shape[1]))
    top = top.scatter_reduce(0, rows, vectors.detach(), "amax", include_self=False)
    powers = (vectors - top[owner]).exp()
    return top + powers.new_zeros(top.shape).index_add(0, owner, powers).log()
