"""From text to pieces, and from tokens to the pieces that cover them."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from ..types import IntArray

# Characters that are spaces to `str.isspace`; the last one is U+3000, the ideographic space.
SPACES = np.array([i for i in range(0x3001) if chr(i).isspace()], dtype=np.uint32)


class Pieces(NamedTuple):
    """The pieces of one text, without special pieces; each array is (n_pieces,).

    ids (IntArray): Vocabulary indices.
    start, end (IntArray): Character offsets, both non-decreasing.
    strings (list[str]): The vocabulary's strings.
    """

    ids: IntArray
    start: IntArray
    end: IntArray
    strings: list[str]


def whole_text_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Any:
    """Get the fast tokenizer, which neither cuts nor pads from now on.

    A setting is only changed if it is another one: while a thread changes it, no other thread can
    tokenize. So call this once when a tokenizer is opened.

    RETURNS (tokenizers.Tokenizer): The tokenizer, not a copy.
    """
    backend = tokenizer.backend_tokenizer
    if backend.truncation is not None:
        backend.no_truncation()
    if backend.padding is not None:
        backend.no_padding()
    return backend


def split_into_pieces(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> list[Pieces]:
    """Tokenize whole texts in one call of the fast tokenizer, on all cores, without truncation.

    RETURNS (list[Pieces]): One per text.
    """
    if not texts:
        return []
    backend = whole_text_tokenizer(tokenizer)
    pieces = []
    encodings = backend.encode_batch(texts, add_special_tokens=False)
    for text, encoding in zip(texts, encodings, strict=True):
        flat = itertools.chain.from_iterable(encoding.offsets)
        offsets = np.fromiter(flat, dtype=np.int64, count=2 * len(encoding)).reshape(-1, 2)
        start, end = offsets[:, 0], offsets[:, 1]
        # SentencePiece counts the space before a word to the first piece of the word.
        chars = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        trim = end - start > 1
        trim[trim] = np.isin(chars[start[trim]], SPACES)
        start = np.maximum.accumulate(start + trim) if len(start) else start
        end = np.maximum.accumulate(end) if len(end) else end
        pieces.append(Pieces(np.array(encoding.ids, dtype=np.int64), start, end, encoding.tokens))
    return pieces


def make_placeholder(tokenizer: PreTrainedTokenizerFast) -> Pieces:
    """Make a piece for a text without pieces (empty, spaces). It belongs to no token, so the tokens
    have zero vectors of the right width."""
    piece = str(tokenizer.pad_token or tokenizer.unk_token)
    ids = np.array([tokenizer.convert_tokens_to_ids(piece)], dtype=np.int64)
    return Pieces(ids, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), [piece])


class Alignment(NamedTuple):
    """For each token the slice of pieces that covers it; both arrays are (n_tokens,).

    A token without pieces in the encoder's vocabulary (spaces, control characters) has length 0. A
    piece can belong to several tokens (an unknown word that spaCy splits).
    """

    first: IntArray
    length: IntArray


def align_tokens(token_start: IntArray, token_end: IntArray, pieces: Pieces) -> Alignment:
    """Find the pieces whose characters overlap each token's.

    token_start, token_end (IntArray): Character offsets, (n_tokens,).
    """
    first = np.searchsorted(pieces.end, token_start, side="right")
    after = np.searchsorted(pieces.start, token_end, side="left")
    return Alignment(first.astype(np.int64), np.maximum(after - first, 0).astype(np.int64))


def token_boundaries(alignment: Alignment) -> IntArray:
    """Find the piece indices, sorted, where a cut separates two tokens."""
    covered = alignment.length > 0
    first, after = alignment.first[covered], (alignment.first + alignment.length)[covered]
    if not len(first):
        return first
    clean = np.concatenate([[True], first[1:] >= after[:-1]])
    return first[clean]


def ragged_indices(alignment: Alignment) -> NDArray[np.int32]:
    """Write out the slices: [first, first + 1, …] of every token, one after the other.

    RETURNS (NDArray): (sum of lengths,)
    """
    total = int(alignment.length.sum())
    ends = np.cumsum(alignment.length)
    offsets = np.arange(total) - np.repeat(ends - alignment.length, alignment.length)
    return (np.repeat(alignment.first, alignment.length) + offsets).astype(np.int32)
