"""The pieces of Docs, some of which may be pairs of texts."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from transformers import PreTrainedTokenizerFast

from ...annotations.pairs import get_boundary
from ...types import IntArray
from ..pieces import (
    Alignment,
    Pieces,
    make_placeholder,
    split_into_pieces,
    token_boundaries,
)
from .template import PairTemplate
from .windows import PairLayout, TextPieces, lay_out_pair

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)
# Where a text that fits one window is cut: nowhere.
NO_CUTS = (_NOTHING, _NOTHING)


class DocPieces(NamedTuple):
    """The pieces of a Doc.

    pieces (Pieces): At least one.
    boundary (int | None): Of a pair, the index of the piece that stands for it; the pieces of the
        first text are before it, those of the second text after it. None for other Docs.
    """

    pieces: Pieces
    boundary: int | None


class ReadsPairs(Protocol):
    """A network that knows how pairs are read: `WindowedEncoder`."""

    @property
    def pair_template(self) -> PairTemplate:
        """How pairs are read."""


def split_docs(
    tokenizer: PreTrainedTokenizerFast,
    docs: list[Doc],
    network: ReadsPairs,
    read: Callable[[Doc], str],
) -> list[DocPieces]:
    """Tokenize Docs in one call of the fast tokenizer. Both texts of a pair are tokenized on their
    own, as the tokenizer does with a pair; between them comes the piece that stands for the pair,
    which covers the line break.

    network (ReadsPairs): Asked for its template if there is a pair.
    read (Callable): Makes the text to read of a Doc, which is as long as the Doc's.
    """
    boundaries = [get_boundary(doc) for doc in docs]
    texts: list[str] = []
    for doc, boundary in zip(docs, boundaries, strict=True):
        text = read(doc)
        if boundary is None:
            texts.append(text)
        else:
            offset = doc[boundary].idx
            texts += [text[:offset], text[offset + 1 :]]
    split = iter(split_into_pieces(tokenizer, texts))
    found = []
    for doc, boundary in zip(docs, boundaries, strict=True):
        pieces = next(split)
        if boundary is not None:
            offset = doc[boundary].idx
            summary = network.pair_template.summary_id
            joined = _join(pieces, next(split), offset, summary, tokenizer)
            found.append(DocPieces(joined, len(pieces.ids)))
        else:
            pieces = pieces if len(pieces.ids) else make_placeholder(tokenizer)
            found.append(DocPieces(pieces, None))
    return found


def _join(
    first: Pieces, second: Pieces, offset: int, summary: int, tokenizer: PreTrainedTokenizerFast
) -> Pieces:
    """Join the pieces of both texts of a pair; `offset` is that of the line break."""
    return Pieces(
        ids=np.concatenate([first.ids, [summary], second.ids]),
        start=np.concatenate([first.start, [offset], second.start + offset + 1]),
        end=np.concatenate([first.end, [offset + 1], second.end + offset + 1]),
        strings=[*first.strings, str(tokenizer.convert_ids_to_tokens(summary)), *second.strings],
    )


def find_cuts(alignment: Alignment, sentence_start: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Find where a Doc may be cut.

    sentence_start (NDArray): Whether a token starts a sentence, (n_tokens,).
    RETURNS (tuple): Sorted piece indices where a sentence starts, and where a cut separates two
        tokens.
    """
    tokens = token_boundaries(alignment)
    return np.intersect1d(alignment.first[sentence_start], tokens), tokens


def lay_out_doc(
    found: DocPieces,
    alignment: Alignment,
    sentence_start: NDArray[np.bool_],
    template: PairTemplate,
    *,
    size: int,
    overlap: int,
) -> PairLayout:
    """Write out the windows of a pair, see `lay_out_pair`.

    RAISES (ValueError): The Doc is not a pair.
    """
    pieces, boundary = found
    if boundary is None:
        raise ValueError("the Doc is not a pair")
    after = boundary + 1
    is_long = len(pieces.ids) - 1 > size
    cuts = find_cuts(alignment, sentence_start) if is_long else NO_CUTS
    first = TextPieces(pieces.ids[:boundary], *(cut[cut < boundary] for cut in cuts))
    second = TextPieces(pieces.ids[after:], *(cut[cut >= after] - after for cut in cuts))
    return lay_out_pair(first, second, template, size=size, overlap=overlap)
