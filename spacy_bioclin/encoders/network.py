"""The torch side of the encoder: windows of pieces in, one vector per piece out. Knows no spaCy."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from .windows import IntArray, Windows

# A window shorter than this share of the longest in its group goes to the next group: padding costs
# as much as text.
LEAST_FILLED = 0.75


class SpecialPieces(NamedTuple):
    """What the encoder expects around a window ([CLS] … [SEP]) and as padding."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    pad: int

    @property
    def n(self) -> int:
        return len(self.before) + len(self.after)


def batch_windows(windows: Windows, *, max_batch_pieces: int) -> Iterator[IntArray]:
    """Group windows of like length, longest first, so that little is padded.

    max_batch_pieces (int): Largest size of a group, padding included. A single longer window
        makes a group of its own.
    YIELDS (IntArray): Indices of windows.
    """
    lengths = windows.end - windows.start
    order = np.argsort(-lengths, kind="stable")
    ascending = lengths[order][::-1]
    i = 0
    while i < len(order):
        longest = max(1, int(lengths[order[i]]))
        too_short = int(np.searchsorted(ascending, longest * LEAST_FILLED))
        n = min(max(1, max_batch_pieces // longest), len(order) - too_short - i)
        yield order[i : i + n]
        i += n


class WindowedEncoder(nn.Module):
    """Runs a Hugging Face encoder over windows and puts their cores together again.

    transformer (nn.Module): An encoder of the `transformers` library.
    special (SpecialPieces): What stands around each window.
    max_batch_pieces (int): Largest padded batch.
    """

    def __init__(self, transformer: Any, special: SpecialPieces, *, max_batch_pieces: int) -> None:
        super().__init__()
        self.transformer = transformer
        self.special = special
        self.max_batch_pieces = max_batch_pieces

    def forward(self, ids: IntArray, windows: Windows) -> torch.Tensor:
        """Encode the pieces of a batch of texts.

        ids (IntArray): Vocabulary indices of all texts, one after the other, (n_pieces,).
        windows (Windows): Slices of `ids`; their cores partition it.
        RETURNS (torch.Tensor): fp32, (n_pieces, width).
        """
        kept, positions = [], []
        for group in batch_windows(windows, max_batch_pieces=self.max_batch_pieces):
            input_ids, mask = self._pad(ids, windows.start[group], windows.end[group])
            rows, columns, where = _core_indices(windows, group)
            hidden = self._run(input_ids, mask)
            columns += len(self.special.before)
            kept.append(hidden[_tensor(rows, hidden), _tensor(columns, hidden)].float())
            positions.append(where)
        order = np.argsort(np.concatenate(positions), kind="stable")
        vectors = torch.cat(kept)
        return vectors[_tensor(order, vectors)]

    def _run(self, input_ids: IntArray, mask: np.ndarray) -> torch.Tensor:
        device = next(self.transformer.parameters()).device
        return self.transformer(
            input_ids=torch.from_numpy(input_ids).to(device),
            attention_mask=torch.from_numpy(mask).to(device),
        ).last_hidden_state

    def _pad(self, ids: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
        """RETURNS (tuple): input ids and attention mask, both (n_windows, longest + special)."""
        before, after, pad = self.special
        lengths = end - start
        columns = np.arange(int(lengths.max()))
        inside = columns[None, :] < lengths[:, None]
        shape = (len(start), len(columns) + self.special.n)
        input_ids = np.full(shape, pad, dtype=np.int64)
        input_ids[:, : len(before)] = before
        body = input_ids[:, len(before) : len(before) + len(columns)]
        body[inside] = ids[(start[:, None] + columns[None, :])[inside]]
        rows = np.arange(len(start))
        for i, piece in enumerate(after):
            input_ids[rows, len(before) + lengths + i] = piece
        mask = np.arange(shape[1])[None, :] < (lengths + self.special.n)[:, None]
        return input_ids, mask.astype(np.int64)


def _core_indices(windows: Windows, group: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """RETURNS (tuple): For each kept piece of the group its row, its column within the window, and
    its position among all pieces; each (n_kept,)."""
    start = windows.core_start[group]
    lengths = windows.core_end[group] - start
    rows = np.repeat(np.arange(len(group)), lengths)
    ends = np.cumsum(lengths)
    where = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    where += np.repeat(start, lengths)
    return rows, where - windows.start[group][rows], where


def _tensor(indices: IntArray, like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(indices).to(like.device)
