"""Cut the pieces of a text into windows that an encoder can read. Pure functions on indices."""

import itertools
from typing import NamedTuple

import numpy as np

from ..types import IntArray


class Windows(NamedTuple):
    """Slices of a sequence of pieces, in order; each array is (n_windows,).

    The encoder reads `start:end`; only `core_start:core_end` of its output is kept. The cores
    partition the sequence: every piece is in exactly one core.

          sentence 1   sentence 2   sentence 3
        |------------------------|                 window 0
                     |--------------------------|  window 1
        [ core of 0       ][ core of 1          ]

    A token in the overlap belongs to the window in which it is further from the edge.
    """

    start: IntArray
    end: IntArray
    core_start: IntArray
    core_end: IntArray


def _last_in(values: IntArray, low: int, high: int) -> int | None:
    """Find the largest of the sorted values in (low, high]."""
    i = int(np.searchsorted(values, high, side="right")) - 1
    return int(values[i]) if i >= 0 and values[i] > low else None


def _first_in(values: IntArray, low: int, high: int) -> int | None:
    """Find the smallest of the sorted values in [low, high)."""
    i = int(np.searchsorted(values, low, side="left"))
    return int(values[i]) if i < len(values) and values[i] < high else None


def _nearest_in(values: IntArray, wanted: int, low: int, high: int) -> int | None:
    """Find the value in [low, high] that is nearest to the wanted one."""
    i = int(np.searchsorted(values, wanted))
    near = [int(v) for v in values[max(i - 1, 0) : i + 1] if low <= v <= high]
    return min(near, key=lambda value: abs(value - wanted), default=None)


def cut_windows(
    n_pieces: int, sentence_starts: IntArray, token_starts: IntArray, *, size: int, overlap: int
) -> Windows:
    """Cut a sequence of pieces into windows.

    Windows end at a sentence end if their second half has one, otherwise between tokens, and inside
    a token only if it is longer than a window.

    n_pieces (int): Length of the sequence.
    sentence_starts (IntArray): Sorted piece indices where a sentence starts.
    token_starts (IntArray): Sorted piece indices where a cut separates two tokens.
    size (int): Largest number of pieces in a window, special pieces not counted.
    overlap (int): Largest number of pieces that neighbouring windows share, below half the size.
    RETURNS (Windows): At least one window if there is a piece.
    """
    bounds: list[tuple[int, int]] = []
    start = 0
    while start < n_pieces:
        end = start + size
        if end >= n_pieces:
            bounds.append((start, n_pieces))
            break
        end = (
            _last_in(sentence_starts, start + size // 2, end)
            or _last_in(token_starts, start, end)
            or end
        )
        bounds.append((start, end))
        wanted = end - overlap
        if wanted <= start:
            start = end
        else:
            start = (
                _first_in(sentence_starts, wanted, end)
                or _first_in(token_starts, wanted, end)
                or end
            )
    # The piece in the middle of an overlap is equally far from both edges; the cores meet at the
    # token boundary next to it.
    cuts = [0]
    for (_, end), (next_start, _) in itertools.pairwise(bounds):
        middle = (next_start + end) // 2
        cuts.append(_nearest_in(token_starts, middle, next_start, end) or middle)
    return Windows(
        start=np.array([start for start, _ in bounds], dtype=np.int64),
        end=np.array([end for _, end in bounds], dtype=np.int64),
        core_start=np.array(cuts[: len(bounds)], dtype=np.int64),
        core_end=np.array([*cuts[1:], n_pieces][: len(bounds)], dtype=np.int64),
    )


def concat_windows(windows: list[Windows], lengths: list[int]) -> Windows:
    """Join the windows of several texts whose pieces are concatenated.

    windows (list[Windows]): One per text, with indices of that text's pieces.
    lengths (list[int]): Number of pieces of each text.
    """
    shifts = np.cumsum([0, *lengths[:-1]])
    return Windows(
        *(
            np.concatenate([values + shift for values, shift in zip(field, shifts, strict=True)])
            for field in zip(*windows, strict=True)
        )
    )
