"""From the scores of pieces to entities, by the rules of the `transformers` library."""

import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.util import filter_spans
from tokenizers import Encoding
from transformers import PreTrainedTokenizerFast
from transformers.pipelines.token_classification import (
    AggregationStrategy,
    TokenClassificationPipeline,
)

from ..inference import Entity

OUTSIDE = "O"
Aggregation = Literal["simple", "first", "average", "max"]
AGGREGATIONS = get_args(Aggregation)


class CharEntity(NamedTuple):
    """Character offsets of an entity without the blanks at its edges, and its score."""

    start: int
    end: int
    label: str
    score: float


class Aggregator(TokenClassificationPipeline):
    """Aggregate pieces as the pipeline of `transformers` does, without its model.

    tokenizer (PreTrainedTokenizerFast): The checkpoint's.
    labels (list[str]): Label of each column of the scores: "O", "B-X", "I-X".
    aggregation (str): One of `AGGREGATIONS`.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, labels: list[str], aggregation: str
    ) -> None:
        # Not super().__init__(), which needs the model. The methods used here read these three.
        self.tokenizer = tokenizer
        self.model = SimpleNamespace(config=SimpleNamespace(id2label=dict(enumerate(labels))))
        self.framework = "pt"
        self.strategy = AggregationStrategy(aggregation)
        self._outside = labels.index(OUTSIDE)

    def find(self, text: str, encoding: Encoding, scores: NDArray[np.float32]) -> list[CharEntity]:
        """Find the entities of a text.

        encoding (Encoding): The text's pieces, without special ones around it.
        scores (NDArray): Probabilities, (n_pieces, n_labels).
        RETURNS (list[CharEntity]): Ordered by start.
        """
        ids, offsets, special = encoding.ids, encoding.offsets, encoding.special_tokens_mask

        def gather(i: int) -> list[dict[str, Any]]:
            fields = (values[i : i + 1] for values in (ids, scores, offsets, special))
            return self.gather_pre_entities(text, *fields, self.strategy)

        with warnings.catch_warnings():
            # Byte-level vocabularies do not mark words; transformers warns of that at every piece.
            warnings.filterwarnings("ignore", message="Tokenizer does not support real words")
            outside = scores.argmax(axis=1) == self._outside
            found = [
                entity
                for pieces in find_stretches(outside, gather)
                for entity in self.aggregate(pieces, self.strategy)
            ]
        return trim_entities(text, found)


def find_stretches(
    outside: NDArray[np.bool_], gather: Callable[[int], list[dict[str, Any]]]
) -> Iterator[list[dict[str, Any]]]:
    """Find the words that may be part of an entity, so that the rest of the text costs nothing.

    If all pieces of a word are most probably "O", every aggregation gives "O" for it. Such words
    separate entities, so the pieces between two of them can be aggregated alone.

    outside (NDArray): Whether a piece's most probable label is "O", (n_pieces,).
    gather (Callable): Describes a piece as transformers does; [] for a special piece.
    YIELDS (list[dict]): The pieces of neighbouring words.
    """

    def is_subword(i: int) -> bool:
        return all(piece["is_subword"] for piece in gather(i))

    stretches: list[tuple[int, int]] = []
    end = 0
    for i in np.flatnonzero(~outside).tolist():
        if i < end:
            continue
        start, last_end, end = i, end, i + 1
        while start > last_end and is_subword(start):
            start -= 1
        while end < len(outside) and (not outside[end] or is_subword(end)):
            end += 1
        if stretches and start == last_end:
            start = stretches.pop()[0]
        stretches.append((start, end))
    for start, end in stretches:
        yield [piece for i in range(start, end) for piece in gather(i)]


def trim_entities(text: str, found: list[dict[str, Any]]) -> list[CharEntity]:
    """Drop "O", and the spaces at the edges of entities, which some vocabularies count to a word.
    Entities of nothing but spaces are dropped.

    found (list[dict]): With `entity_group`, `score`, `start` and `end`.
    """
    entities = []
    for entity in found:
        start, end = entity["start"], entity["end"]
        inside = text[start:end]
        start += len(inside) - len(inside.lstrip())
        end -= len(inside) - len(inside.rstrip())
        if start < end and entity["entity_group"] != OUTSIDE:
            label, score = entity["entity_group"], float(entity["score"])
            entities.append(CharEntity(start, end, label, score))
    return entities


def cover_tokens(doc: Doc, found: list[CharEntity], *, overlap: bool) -> list[Entity]:
    """Widen entities to whole tokens. If entities of one label then overlap, they are merged, with
    the higher score.

    overlap (bool): Whether entities of different labels may overlap; otherwise the longest is kept,
        or the first of equally long ones.
    RETURNS (list[Entity]): Ordered by start.
    """
    merged: list[Entity] = []
    last: dict[str, int] = {}  # label -> index of its last entity
    for entity in sorted(found):
        span = doc.char_span(entity.start, entity.end, alignment_mode="expand")
        assert span is not None  # it holds a character that is not blank
        here = Entity(span.start, span.end, entity.label, entity.score)
        i = last.get(here.label)
        if i is not None and here.start < merged[i].end:
            before = merged[i]
            end, score = max(before.end, here.end), max(before.probability, here.probability)
            merged[i] = before._replace(end=end, probability=score)
            continue
        last[here.label] = len(merged)
        merged.append(here)
    if not overlap:
        spans = [Span(doc, e.start, e.end, label=e.label) for e in merged]
        kept = set(filter_spans(spans))
        merged = [e for e, span in zip(merged, spans, strict=True) if span in kept]
    return sorted(merged)
