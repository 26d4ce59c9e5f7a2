"""From the candidates of Docs to what the model gets."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from ..types import IntArray
from .candidates import Argument, Candidates, Mention, Types
from .marking import mark_pair, mask_pair
from .network import PairInputs, find_between, find_distances

INPUTS = {"spans": None, "markers": mark_pair, "masked": mask_pair}
# Tokens of marked texts that are encoded at once in prediction, and in training, where every layer
# keeps its vectors until the gradients are computed.
MAX_TOKENS = 16_384
MAX_TRAINING_TOKENS = 4096


class RelationBatch(NamedTuple):
    """Input of the model.

    docs (list[Doc]): What the encoder reads: Docs of the pipeline, or texts of single candidates.
    inputs (PairInputs): Pairs of arguments in their tokens.
    """

    docs: list[Doc]
    inputs: PairInputs


def make_span_batch(
    docs: Sequence[Doc], found: Sequence[Candidates], types: Types
) -> RelationBatch:
    """Point to the spans of all candidates in Docs that are encoded once."""
    index = {label: i for i, label in enumerate(types.entities)}
    columns: list[list[IntArray]] = [[] for _ in PairInputs._fields]
    n_tokens = n_mentions = n_arguments = 0
    for doc, own in zip(docs, found, strict=True):
        spans = _to_array([(m.start, m.end) for m in own.mentions])
        members = [(i, m) for i, argument in enumerate(own.arguments) for m in argument.mentions]
        owner, member = _to_array(members).T
        head, child = spans[own.nearest[:, 0]], spans[own.nearest[:, 1]]
        for column, values in zip(
            columns,
            (
                spans + n_tokens,
                owner + n_arguments,
                member + n_mentions,
                np.array([index[a.label] for a in own.arguments], dtype=np.int64),
                own.pairs + n_arguments,
                find_between(head, child) + n_tokens,
                find_distances(head, child),
            ),
            strict=True,
        ):
            column.append(values)
        n_tokens += len(doc)
        n_mentions += len(own.mentions)
        n_arguments += len(own.arguments)
    return RelationBatch(list(docs), PairInputs(*map(np.concatenate, columns)))


def make_marked_batches(
    docs: Sequence[Doc],
    found: Sequence[Candidates],
    types: Types,
    *,
    kind: str,
    max_tokens: int,
) -> Iterator[RelationBatch]:
    """Make a text of its own for each candidate.

    It has the sentences of the arguments and all between them.

    kind (str): "markers" or "masked".
    max_tokens (int): Tokens in a batch, about.
    YIELDS (RelationBatch): The candidates in order, one Doc for each.
    """
    mark = INPUTS[kind]
    assert mark is not None
    texts: list[Doc] = []
    singles: list[Candidates] = []
    size = 0
    for doc, own in zip(docs, found, strict=True):
        bounds = find_sentences(doc) if len(own.pairs) else np.zeros(0, dtype=np.int64)
        for pair in own.pairs.tolist():
            arguments = [own.arguments[i] for i in pair]
            mentions = [[own.mentions[i] for i in argument.mentions] for argument in arguments]
            part = _find_part(bounds, [mention for each in mentions for mention in each])
            marked = mark(doc, (mentions[0], mentions[1]), part)
            texts.append(marked.doc)
            singles.append(_to_candidates(marked.head, marked.child, [a.label for a in arguments]))
            size += len(marked.doc)
            if size >= max_tokens:
                yield make_span_batch(texts, singles, types)
                texts, singles, size = [], [], 0
    if texts:
        yield make_span_batch(texts, singles, types)


def _to_candidates(head: list[int], child: list[int], labels: list[str]) -> Candidates:
    """Make one candidate of a marked text, whose mentions are single tokens."""
    mentions = [
        Mention(token, token + 1, label)
        for tokens, label in zip((head, child), labels, strict=True)
        for token in tokens
    ]
    arguments = [
        Argument(labels[0], None, tuple(range(len(head)))),
        Argument(labels[1], None, tuple(range(len(head), len(mentions)))),
    ]
    pair = np.array([[0, 1]], dtype=np.int64)
    return Candidates(mentions, arguments, pair, np.array([[0, len(head)]], dtype=np.int64))


def find_sentences(doc: Doc) -> IntArray:
    """Find the first token of each sentence, and the length of the Doc, (n_sentences + 1,)."""
    starts = [sent.start for sent in doc.sents] if len(doc) else [0]
    return np.array([*starts, len(doc)], dtype=np.int64)


def number_sentences(doc: Doc) -> IntArray:
    """Number the sentence of each token, (n_tokens,)."""
    if not len(doc):
        return np.zeros(0, dtype=np.int64)
    lengths = [end - start for start, end in itertools.pairwise(find_sentences(doc).tolist())]
    return np.repeat(np.arange(len(lengths)), lengths)


def _find_part(bounds: IntArray, mentions: Sequence[Mention]) -> tuple[int, int]:
    """Find the sentences that hold mentions. RETURNS (tuple[int, int]): First token and end."""
    first = min(mention.start for mention in mentions)
    last = max(mention.end for mention in mentions)
    start = bounds[np.searchsorted(bounds, first, side="right") - 1]
    end = bounds[np.searchsorted(bounds, last, side="left")]
    return int(start), int(end)


def _to_array(rows: Sequence[tuple[int, int]]) -> IntArray:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)
