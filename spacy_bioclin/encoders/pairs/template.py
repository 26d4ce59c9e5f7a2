"""How an encoder's tokenizer writes a pair of texts: special pieces around and between them."""

import inspect
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerFast

from ...errors import BioclinError


class PairTemplate(NamedTuple):
    """The special pieces and segments of a pair: `before`, first text, `middle`, second text,
    `after`. For BERT: [CLS] first [SEP] second [SEP].

    before, middle, after (tuple[int, ...]): Vocabulary indices.
    segments (tuple): Segment of each piece of `before`, of the first text, of each piece of
        `middle`, of the second text, and of each piece of `after`.
    summary (int): Which of the special pieces stands for the pair ([CLS]), counted over all three.
    has_segments (bool): Whether the encoder has embeddings for segments.
    """

    before: tuple[int, ...]
    middle: tuple[int, ...]
    after: tuple[int, ...]
    segments: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]]
    summary: int
    has_segments: bool

    @property
    def special(self) -> tuple[int, ...]:
        """All special pieces, in order."""
        return self.before + self.middle + self.after

    @property
    def summary_id(self) -> int:
        """Vocabulary index of the piece that stands for the pair."""
        return self.special[self.summary]


def find_pair_template(tokenizer: PreTrainedTokenizerFast, transformer: Any) -> PairTemplate:
    """Find how a tokenizer writes a pair, by a pair of texts of one letter.

    transformer (nn.Module): The encoder of the tokenizer.
    RAISES (BioclinError): The tokenizer adds no special piece to a pair.
    """
    encoded = tokenizer("a", "a")
    encoding = encoded.encodings[0]
    texts, ids = encoding.sequence_ids, encoding.ids
    has_segments = "token_type_ids" in encoded and _has_segments(transformer)
    types = encoding.type_ids if has_segments else [0] * len(ids)
    first, second = (_find_range(texts, text) for text in (0, 1))
    before, middle, after = slice(first[0]), slice(first[1], second[0]), slice(second[1], None)
    special = (*ids[before], *ids[middle], *ids[after])
    if not special:
        raise BioclinError(
            "[components.transformer.model] cannot read pairs of texts: the tokenizer of the "
            "encoder adds no special piece such as [CLS] to them; use another encoder"
        )
    cls_id = tokenizer.cls_token_id
    return PairTemplate(
        before=tuple(ids[before]),
        middle=tuple(ids[middle]),
        after=tuple(ids[after]),
        segments=(
            tuple(types[before]),
            types[first[0]],
            tuple(types[middle]),
            types[second[0]],
            tuple(types[after]),
        ),
        summary=special.index(cls_id) if cls_id in special else 0,
        has_segments=has_segments,
    )


def _find_range(texts: list[int | None], text: int) -> tuple[int, int]:
    """Find the first piece of a text, and the piece after its last one."""
    return texts.index(text), len(texts) - texts[::-1].index(text)


def _has_segments(transformer: Any) -> bool:
    """Check whether an encoder has embeddings of at least two segments, and takes segments."""
    n_types = getattr(transformer.config, "type_vocab_size", 0) or 0
    return n_types > 1 and "token_type_ids" in inspect.signature(transformer.forward).parameters
