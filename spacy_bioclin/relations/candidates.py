"""Which pairs of entities may be related: candidates by type and distance. Pure functions."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..types import IntArray

SCOPES = ("sentence", "window", "document")
# Concept ids that mean that a mention has none.
NO_CONCEPT = ("", "-1")

# Label of a relation -> pairs of labels of head and child.
TypeTable = Mapping[str, Collection[tuple[str, str]]]


class Mention(NamedTuple):
    """A span that may be an argument of relations.

    start, end (int): Token offsets, end exclusive.
    label (str): Entity type.
    concepts (tuple[str, ...]): Its concept ids, if any.
    """

    start: int
    end: int
    label: str
    concepts: tuple[str, ...] = ()


class Argument(NamedTuple):
    """What relations are between: a mention, or a concept with all its mentions.

    label (str): Entity type.
    concept (str | None): Id of the concept; None for a mention.
    mentions (tuple[int, ...]): Indices of its mentions.
    """

    label: str
    concept: str | None
    mentions: tuple[int, ...]


class Candidates(NamedTuple):
    """The candidates of a Doc, in the order of the text.

    mentions (list[Mention]): Sorted by start, then end.
    arguments (list[Argument]): Of these mentions.
    pairs (IntArray): Indices of the arguments that may be head and child, (n_pairs, 2).
    nearest (IntArray): Indices of their mentions that are nearest to each other, (n_pairs, 2).
    """

    mentions: list[Mention]
    arguments: list[Argument]
    pairs: IntArray
    nearest: IntArray


def no_candidates() -> Candidates:
    """Make the candidates of a Doc without any."""
    none = np.zeros((0, 2), dtype=np.int64)
    return Candidates([], [], none, none)


class Types(NamedTuple):
    """Which relations may be between which entity types.

    labels (tuple[str, ...]): Types of relations, sorted.
    entities (tuple[str, ...]): Types of entities, sorted.
    allowed (ndarray): (n_entities, n_entities, n_labels): whether a relation of the last may lead
        from the first to the second.
    in_order (ndarray): (n_entities, n_entities): whether all relations between them are symmetric,
        so that the argument that comes first in the text is the head.
    symmetric (ndarray): (n_labels,).
    """

    labels: tuple[str, ...]
    entities: tuple[str, ...]
    allowed: np.ndarray
    in_order: np.ndarray
    symmetric: np.ndarray


def make_types(table: TypeTable, symmetric: Collection[str]) -> Types:
    """Make the arrays of a table of types.

    table (TypeTable): Label of a relation -> pairs of labels of head and child.
    symmetric (Collection[str]): Labels of relations without direction: both orders are allowed.
    """
    labels = tuple(sorted(table))
    entities = tuple(
        sorted({label for pairs in table.values() for pair in pairs for label in pair})
    )
    index = {label: i for i, label in enumerate(entities)}
    allowed = np.zeros((len(entities), len(entities), len(labels)), dtype=bool)
    for k, label in enumerate(labels):
        for head, child in table[label]:
            allowed[index[head], index[child], k] = True
            if label in symmetric:
                allowed[index[child], index[head], k] = True
    is_symmetric = np.array([label in symmetric for label in labels], dtype=bool)
    in_order = ~(allowed & ~is_symmetric).any(axis=2)
    return Types(labels, entities, allowed, in_order & in_order.T, is_symmetric)


def find_candidates(
    mentions: Sequence[Mention],
    types: Types,
    *,
    by_concept: bool,
    scope: str,
    window: int,
    sentence_of: IntArray,
) -> Candidates:
    """Find the pairs of arguments that a relation may be between.

    mentions (Sequence[Mention]): In any order; those of other types are left out.
    by_concept (bool): Pairs of concepts, by the ids of their mentions, instead of mentions.
    scope (str): "sentence": both in one sentence; "window": at most `window` tokens between them;
        "document": any two. Of two concepts, any two of their mentions have to be so near.
    sentence_of (IntArray): Number of the sentence of each token, (n_tokens,).
    """
    known = sorted(mention for mention in set(mentions) if mention.label in types.entities)
    if by_concept:
        arguments = _group_by_concept(known)
    else:
        arguments = [Argument(m.label, None, (i,)) for i, m in enumerate(known)]
    near = _find_near(known, scope, window, sentence_of)
    if by_concept:
        near = _to_arguments(near, known, arguments)
    else:
        near = np.concatenate([near, near], axis=1)  # an argument is its mention
    both = np.concatenate([near, near[:, [1, 0, 3, 2]]])
    index = {label: i for i, label in enumerate(types.entities)}
    type_of = np.array([index[argument.label] for argument in arguments], dtype=np.int64)
    heads, children = type_of[both[:, 0]], type_of[both[:, 1]]
    keep = types.allowed[heads, children].any(axis=1)
    # The second half has the pairs against the order of the text.
    keep[len(near) :] &= ~types.in_order[heads, children][len(near) :]
    found = both[keep]
    found = found[np.lexsort((found[:, 3], found[:, 2]))]
    return Candidates(known, arguments, found[:, :2], found[:, 2:])


def _find_near(
    mentions: Sequence[Mention], scope: str, window: int, sentence_of: IntArray
) -> IntArray:
    """Find the pairs of mentions in scope, the one that starts first before the other.

    The partners of a mention are a slice of those after it, so that the work grows with the number
    of pairs that are found.

    RETURNS (IntArray): Indices of mentions, (n_pairs, 2).
    """
    n = len(mentions)
    start = np.array([mention.start for mention in mentions], dtype=np.int64)
    end = np.array([mention.end for mention in mentions], dtype=np.int64)
    if scope == "document" or not n:
        stop = np.full(n, n, dtype=np.int64)
    elif scope == "window":
        stop = np.searchsorted(start, end + window, side="right")
    else:
        stop = np.searchsorted(sentence_of[start], sentence_of[end - 1], side="right")
    counts = np.maximum(stop - np.arange(n) - 1, 0)
    first = np.repeat(np.arange(n), counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([first, first + 1 + offsets], axis=1).astype(np.int64)


def _group_by_concept(mentions: Sequence[Mention]) -> list[Argument]:
    groups: dict[tuple[str, str], list[int]] = {}
    for i, mention in enumerate(mentions):
        for concept in dict.fromkeys(mention.concepts):
            if concept not in NO_CONCEPT:
                groups.setdefault((mention.label, concept), []).append(i)
    return [Argument(label, concept, tuple(own)) for (label, concept), own in groups.items()]


def _to_arguments(
    near: IntArray, mentions: Sequence[Mention], arguments: Sequence[Argument]
) -> IntArray:
    """Turn pairs of mentions into pairs of concepts, with the mentions that are nearest.

    RETURNS (IntArray): Two arguments and their mentions, (n_pairs, 4), the concept whose nearest
        mention comes first before the other.
    """
    owners: dict[int, list[int]] = {}
    for number, argument in enumerate(arguments):
        for mention in argument.mentions:
            owners.setdefault(mention, []).append(number)
    best: dict[tuple[int, int], tuple[int, int, int, int, int]] = {}
    for a, b in near.tolist():
        gap = max(mentions[b].start - mentions[a].end, 0)
        for i in owners.get(a, ()):
            for j in owners.get(b, ()):
                pair = (min(i, j), max(i, j))
                if i != j and (pair not in best or gap < best[pair][0]):
                    best[pair] = (gap, i, j, a, b)
    rows = [row[1:] for row in best.values()]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def allowed_labels(candidates: Candidates, types: Types) -> np.ndarray:
    """Find the labels that the types of each candidate may have, (n_pairs, n_labels)."""
    index = {label: i for i, label in enumerate(types.entities)}
    type_of = np.array([index[a.label] for a in candidates.arguments], dtype=np.int64)
    heads, children = candidates.pairs.T
    allowed: np.ndarray = types.allowed[type_of[heads], type_of[children]]
    return allowed
