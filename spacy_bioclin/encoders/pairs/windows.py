"""Cut pairs of texts into windows that an encoder can read. Pure functions on indices."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...types import IntArray
from ..windows import Windows, cut_windows
from .template import PairTemplate


class TextPieces(NamedTuple):
    """One text of a pair.

    ids (IntArray): Its pieces, (n_pieces,).
    sentences, tokens (IntArray): Sorted piece indices where a sentence starts, and where a cut
        separates two tokens; needed if the pair is longer than a window.
    """

    ids: IntArray
    sentences: IntArray
    tokens: IntArray


class PairLayout(NamedTuple):
    """What an encoder reads for one pair: its windows, one after the other, special pieces
    included; all arrays are (n_read,) but the lengths.

    ids (IntArray): Vocabulary indices.
    segments (IntArray): The segment of each piece.
    where (IntArray): Index among the pieces of the pair, which has one piece that stands for the
        pair between its texts; -1 if the vector is not used.
    lengths (IntArray): Pieces of each window, (n_windows,).
    """

    ids: IntArray
    segments: IntArray
    where: IntArray
    lengths: IntArray


class PlacedPair(NamedTuple):
    """A pair in a batch of texts.

    start, end (int): Slice of the pieces of all texts.
    layout (PairLayout): What is read for it.
    """

    start: int
    end: int
    layout: PairLayout


class PairBatch(NamedTuple):
    """What an encoder reads for several pairs.

    ids, segments (IntArray): See `PairLayout`, joined, (n_read,).
    rows (IntArray): The row of each vector in a table that is sorted by piece, (n_read,); -1 if it
        is not used.
    windows (Windows): Slices of `ids`.
    pieces (IntArray): Index, in the batch, of each piece that has a vector, (n_kept,).
    counts (IntArray): How many neighbouring rows belong to that piece, (n_kept,).
    """

    ids: IntArray
    segments: IntArray
    rows: IntArray
    windows: Windows
    pieces: IntArray
    counts: IntArray


def lay_out_pair(
    first: TextPieces, second: TextPieces, template: PairTemplate, *, size: int, overlap: int
) -> PairLayout:
    """Write out the windows of a pair.

    A pair that fits a window has one. Otherwise the longer text is cut as any text is, and each
    part is read together with the other text. If that takes more than half of the window, it is cut
    too, and the parts of both texts are read side by side, from the first ones to the last ones:

        [CLS] first: part 1 [SEP] second: part 1 [SEP]     window 0
        [CLS] first: part 2 [SEP] second: part 1 [SEP]     window 1
        [CLS] first: part 3 [SEP] second: part 2 [SEP]     window 2
        [CLS] first: part 4 [SEP] second: part 2 [SEP]     window 3

    Every piece is in the core of at least one window, see `Windows`. The vector of a piece that is
    in several cores, such as [CLS], is the mean.

    size (int): Most pieces in a window, special pieces not counted.
    overlap (int): Most pieces that two parts of a text share.
    """
    n_first = len(first.ids)
    if n_first + len(second.ids) <= size:
        parts = [(_whole(first), _whole(second))]
    else:
        parts = _cut(first, second, size=size, overlap=overlap)
    windows = [_write(first, second, one, other, template) for one, other in parts]
    ids, segments, where = (np.concatenate(field) for field in zip(*windows, strict=True))
    lengths = np.array([len(window[0]) for window in windows], dtype=np.int64)
    return PairLayout(ids, segments, where, lengths)


class _Part(NamedTuple):
    """A part of a text and its core, see `Windows`."""

    start: int
    end: int
    core_start: int
    core_end: int


def _whole(text: TextPieces) -> _Part:
    return _Part(0, len(text.ids), 0, len(text.ids))


def _cut(
    first: TextPieces, second: TextPieces, *, size: int, overlap: int
) -> list[tuple[_Part, _Part]]:
    """Cut the longer text, and the other one if it takes more than half of the window.

    RETURNS (list): Per window, the parts of both texts.
    """
    texts = (first, second)
    shorter = 0 if len(first.ids) < len(second.ids) else 1
    room = min(len(texts[shorter].ids), size // 2)
    sizes = [size - room, size - room]
    sizes[shorter] = room
    cut = [
        _cut_text(text, size=most, overlap=overlap) for text, most in zip(texts, sizes, strict=True)
    ]
    n = max(len(parts) for parts in cut)
    return [(cut[0][i * len(cut[0]) // n], cut[1][i * len(cut[1]) // n]) for i in range(n)]


def _cut_text(text: TextPieces, *, size: int, overlap: int) -> list[_Part]:
    if len(text.ids) <= size:
        return [_whole(text)]
    overlap = min(overlap, (size - 1) // 2)
    windows = cut_windows(len(text.ids), text.sentences, text.tokens, size=size, overlap=overlap)
    return [_Part(*bounds) for bounds in zip(*(field.tolist() for field in windows), strict=True)]


def _write(
    first: TextPieces, second: TextPieces, one: _Part, other: _Part, template: PairTemplate
) -> tuple[IntArray, IntArray, IntArray]:
    """Write out one window. RETURNS (tuple): `ids`, `segments` and `where` of `PairLayout`."""
    n_first = len(first.ids)
    special = np.full(len(template.special), -1, dtype=np.int64)
    special[template.summary] = n_first
    n_before, n_middle = len(template.before), len(template.middle)
    ids: tuple[tuple[int, ...] | IntArray, ...] = (
        template.before,
        first.ids[one.start : one.end],
        template.middle,
        second.ids[other.start : other.end],
        template.after,
    )
    where = (
        special[:n_before],
        _find_kept(one, 0),
        special[n_before : n_before + n_middle],
        _find_kept(other, n_first + 1),
        special[n_before + n_middle :],
    )
    segments = [
        np.full(len(part), value) for part, value in zip(ids, template.segments, strict=True)
    ]
    return _join(ids), _join(segments), _join(where)


def _find_kept(part: _Part, shift: int) -> IntArray:
    """Find where the vectors of a part go: those outside its core are not used."""
    where = np.arange(part.start, part.end) + shift
    where[: part.core_start - part.start] = -1
    where[part.core_end - part.start :] = -1
    return where


def _join(parts: Iterable[object]) -> IntArray:
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])


def join_pairs(pairs: list[PlacedPair]) -> PairBatch:
    """Join what is read for several pairs, and find which vectors belong to the same piece.

    pairs (list[PlacedPair]): At least one.
    """
    layouts = [pair.layout for pair in pairs]
    lengths = np.concatenate([layout.lengths for layout in layouts])
    end = np.cumsum(lengths)
    where = np.concatenate(
        [np.where(pair.layout.where < 0, -1, pair.layout.where + pair.start) for pair in pairs]
    )
    kept = np.flatnonzero(where >= 0)
    rows = np.full(len(where), -1, dtype=np.int64)
    rows[kept[np.argsort(where[kept], kind="stable")]] = np.arange(len(kept))
    pieces, counts = np.unique(where[kept], return_counts=True)
    return PairBatch(
        ids=np.concatenate([layout.ids for layout in layouts]),
        segments=np.concatenate([layout.segments for layout in layouts]),
        rows=rows,
        windows=Windows(end - lengths, end, end - lengths, end),
        pieces=pieces,
        counts=counts,
    )
