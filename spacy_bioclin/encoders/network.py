"""The torch part of the encoder: windows of pieces in, one vector per piece out."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedTokenizerFast

from ..torch_bridge.memory import free_memory, is_out_of_memory
from ..types import IntArray
from .packing import can_pack, run_packed
from .pairs.template import PairTemplate, find_pair_template
from .pairs.windows import PairBatch, PlacedPair, join_pairs
from .windows import Windows

logger = logging.getLogger(__name__)

# A window shorter than this share of the longest in its group goes to the next group, since padding
# costs as much as text …
LEAST_FILLED = 0.75
# … unless all padding of the group is less than this: one more group costs about as much.
MIN_PADDING = 256
# Pieces in a batch, padding included: what fits the caches of a CPU, and what keeps a GPU busy.
CPU_BATCH_PIECES = 2048
GPU_BATCH_PIECES = 65_536
# Fewer pieces than this are not worth a second thread of their own.
LEAST_BATCH_PIECES = 512
# Smallest batch when memory runs out, about one window.
MIN_BATCH_PIECES = 128

# Indices of pieces, (n_kept,), and their vectors, (n_kept, width).
Encoded = tuple[torch.Tensor, torch.Tensor]


class SpecialPieces(NamedTuple):
    """Pieces that the encoder expects around a window ([CLS] … [SEP]) and as padding."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    pad: int

    @property
    def n(self) -> int:
        """Number of special pieces in a window."""
        return len(self.before) + len(self.after)


def find_special_pieces(tokenizer: PreTrainedTokenizerFast) -> SpecialPieces:
    """Find the special pieces that a tokenizer puts around a text, and its padding."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
    first = special.index(0)
    last = len(special) - special[::-1].index(0)
    pad = tokenizer.pad_token_id
    return SpecialPieces(tuple(ids[:first]), tuple(ids[last:]), 0 if pad is None else pad)


def batch_windows(windows: Windows, *, max_batch_pieces: int) -> Iterator[IntArray]:
    """Group windows of similar length, longest first, so that there is little padding.

    max_batch_pieces (int): Largest size of a group, padding included. A longer window is a group of
        its own.
    YIELDS (IntArray): Indices of windows.
    """
    lengths = windows.end - windows.start
    order = np.argsort(-lengths, kind="stable")
    i = 0
    while i < len(order):
        longest = max(1, int(lengths[order[i]]))
        group = order[i : i + max(1, max_batch_pieces // longest)]
        padding = np.cumsum(longest - lengths[group])
        too_short = (lengths[group] < longest * LEAST_FILLED) & (padding > MIN_PADDING)
        group = group[: int(too_short.argmax()) or len(group)]
        yield group
        i += len(group)


def split_windows(windows: Windows, *, n_parts: int) -> list[IntArray]:
    """Divide windows, longest first, into parts of about as many pieces.

    RETURNS (list[IntArray]): Indices of windows; at most `n_parts` parts, none empty.
    """
    lengths = windows.end - windows.start
    order = np.argsort(-lengths, kind="stable")
    middle = np.cumsum(lengths[order]) - lengths[order] / 2
    part = (middle * n_parts / max(1, int(lengths.sum()))).astype(np.int64)
    return np.split(order, np.flatnonzero(np.diff(part)) + 1)


class WindowedEncoder(nn.Module):
    """Run a Hugging Face encoder over windows and join their cores.

    If memory runs out, training continues with gradient checkpointing, and then batches are halved;
    a warning is logged once.

    transformer (nn.Module): An encoder of the `transformers` library.
    tokenizer (PreTrainedTokenizerFast): Its tokenizer, which has the special pieces.
    max_batch_pieces (int | None): Largest padded batch; None for `CPU_BATCH_PIECES` or
        `GPU_BATCH_PIECES`.
    """

    def __init__(
        self,
        transformer: Any,
        tokenizer: PreTrainedTokenizerFast,
        *,
        max_batch_pieces: int | None,
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.tokenizer = tokenizer
        self.special = find_special_pieces(tokenizer)
        self.max_batch_pieces = max_batch_pieces
        self.recompute = False
        self._halved = False

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.transformer.parameters()).device

    @cached_property
    def pair_template(self) -> PairTemplate:
        """How the encoder reads a pair of texts. RAISES (BioclinError): It cannot."""
        return find_pair_template(self.tokenizer, self.transformer)

    def forward(
        self, ids: IntArray, windows: Windows, pairs: Sequence[PlacedPair] = ()
    ) -> torch.Tensor:
        """Encode the pieces of a batch of texts.

        ids (IntArray): Vocabulary indices of all texts, concatenated, (n_pieces,).
        windows (Windows): Slices of `ids`; their cores, and the pairs, partition it.
        pairs (Sequence[PlacedPair]): The texts that are read as pairs.
        RETURNS (torch.Tensor): fp32, (n_pieces, width).
        """
        while True:
            try:
                return self._encode(ids, windows, pairs)
            except RuntimeError as error:
                if not is_out_of_memory(error) or not self.save_memory():
                    raise
            free_memory()

    def save_memory(self) -> bool:
        """Use less memory from now on. RETURNS (bool): False if that is not possible."""
        if self.training and not self.recompute:
            self.recompute = True
            logger.warning(
                "Out of memory: training continues with gradient checkpointing, which takes "
                "longer. A smaller [training.batcher] size needs less memory"
            )
            return True
        budget = self._budget() // 2
        if budget < MIN_BATCH_PIECES:
            return False
        if not self._halved:
            logger.warning(
                "Out of memory: batches of at most %d pieces from now on, and fewer if necessary. "
                "To start with that, set max_batch_pieces in [components.transformer.model]",
                budget,
            )
        self.max_batch_pieces, self._halved = budget, True
        return True

    def _budget(self) -> int:
        default = CPU_BATCH_PIECES if self.device.type == "cpu" else GPU_BATCH_PIECES
        return self.max_batch_pieces or default

    def _encode(self, ids: IntArray, windows: Windows, pairs: Sequence[PlacedPair]) -> torch.Tensor:
        width = self.transformer.config.hidden_size
        vectors = torch.zeros((len(ids), width), device=self.device)
        groups = self._group(windows, self.special.n)
        runs = [partial(self._encode_group, ids, windows, group) for group in groups]
        if not pairs:
            for where, cores in self._run_all(runs):
                vectors.index_copy_(0, where, cores)
            return vectors
        batch = join_pairs(list(pairs))
        table = torch.zeros((int(batch.counts.sum()), width), device=self.device)
        targets = [vectors] * len(runs)
        groups = self._group(batch.windows, 0)
        runs += [partial(self._encode_pairs, batch, group) for group in groups]
        targets += [table] * len(groups)
        for target, (where, cores) in zip(targets, self._run_all(runs), strict=True):
            target.index_copy_(0, where, cores)
        if (batch.counts > 1).any():
            table = torch.segment_reduce(table, "mean", lengths=_tensor(batch.counts, self.device))
        return vectors.index_copy_(0, _tensor(batch.pieces, self.device), table)

    def _group(self, windows: Windows, n_special: int) -> list[IntArray]:
        """Divide windows into groups that run at once.

        n_special (int): Pieces that are added to each window.
        """
        if not len(windows.start):
            return []
        if self._packs():
            return split_windows(windows, n_parts=self._count_parts(windows, n_special))
        return list(batch_windows(windows, max_batch_pieces=self._budget()))

    def _is_parallel(self) -> bool:
        return self.device.type == "cpu" and not torch.is_grad_enabled()

    def _packs(self) -> bool:
        return self._is_parallel() and can_pack(self.transformer)

    def _count_parts(self, windows: Windows, n_special: int) -> int:
        """Choose how many parts run without padding: as many as the caches need, and the same
        number in each thread."""
        n_pieces = int((windows.end - windows.start + n_special).sum())
        n_parts = -(-n_pieces // self._budget())
        if n_pieces < LEAST_BATCH_PIECES:
            return n_parts
        threads = torch.get_num_threads()
        return -(-n_parts // threads) * threads

    def _run_all(self, runs: Sequence[Callable[[], Encoded]]) -> Iterator[Encoded]:
        """Run batches, in order. On a CPU, batches without gradients run in parallel, each on its
        share of the threads, since cores that do not wait for each other after every operation do
        more."""
        workers = min(torch.get_num_threads(), len(runs))
        if workers < 2 or not self._is_parallel():
            for encode in runs:
                yield encode()
            return
        threads = torch.get_num_threads() // workers
        dtype = torch.get_autocast_dtype("cpu")
        autocast = torch.is_autocast_enabled("cpu")

        def run(encode: Callable[[], Encoded]) -> Encoded:
            torch.set_num_threads(threads)  # of this thread; so are the two modes
            with torch.no_grad(), torch.autocast("cpu", dtype, enabled=autocast):
                return encode()

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(run, runs)

    def _encode_group(self, ids: IntArray, windows: Windows, group: IntArray) -> Encoded:
        input_ids, mask = self._pad(ids, windows.start[group], windows.end[group])
        hidden, first = self._run_group(input_ids, mask)
        rows, columns, where = _core_indices(windows, group)
        kept = first[rows] + columns + len(self.special.before)
        return _tensor(where, hidden.device), hidden[_tensor(kept, hidden.device)].float()

    def _encode_pairs(self, batch: PairBatch, group: IntArray) -> Encoded:
        start = batch.windows.start[group]
        lengths = batch.windows.end[group] - start
        columns = np.arange(int(lengths.max()))[None, :]
        mask = columns < lengths[:, None]
        read = (start[:, None] + columns)[mask]
        input_ids = np.full(mask.shape, self.special.pad, dtype=np.int64)
        input_ids[mask] = batch.ids[read]
        segments = None
        if self.pair_template.has_segments:
            segments = np.zeros_like(input_ids)
            segments[mask] = batch.segments[read]
        hidden, first = self._run_group(input_ids, mask, segments)
        rows = batch.rows[read]
        kept = (first[:, None] + columns)[mask][rows >= 0]
        where = _tensor(rows[rows >= 0], hidden.device)
        return where, hidden[_tensor(kept, hidden.device)].float()

    def _run_group(
        self, input_ids: IntArray, mask: NDArray[np.bool_], segments: IntArray | None = None
    ) -> tuple[torch.Tensor, IntArray]:
        """Run a group of windows, without their padding if the encoder can.

        input_ids (IntArray), mask (NDArray), segments (IntArray | None): See `_pad`; (n_windows,
            longest).
        RETURNS (tuple): Vectors of all windows, (n, width), and the row of each window's first
            piece, (n_windows,).
        """
        if not self._packs():
            hidden = self._run(input_ids, mask.astype(np.int64), segments).flatten(0, 1)
            return hidden, np.arange(len(mask)) * mask.shape[1]
        lengths = mask.sum(1)
        pieces = torch.from_numpy(input_ids[mask])
        types = None if segments is None else torch.from_numpy(segments[mask])
        hidden = run_packed(self.transformer, pieces, lengths.tolist(), types)
        return hidden, np.cumsum(lengths) - lengths

    def _run(
        self, input_ids: IntArray, mask: IntArray, segments: IntArray | None = None
    ) -> torch.Tensor:
        arrays = (input_ids, mask) if segments is None else (input_ids, mask, segments)
        tensors = [_tensor(array, self.device) for array in arrays]
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(self._last_hidden_state, *tensors, use_reentrant=False)
        return self._last_hidden_state(*tensors)

    def _last_hidden_state(
        self, input_ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor | None = None
    ) -> torch.Tensor:
        # Not every encoder takes token_type_ids.
        more = {} if segments is None else {"token_type_ids": segments}
        return self.transformer(input_ids=input_ids, attention_mask=mask, **more).last_hidden_state

    def _pad(
        self, ids: IntArray, start: IntArray, end: IntArray
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """Make input ids, and a mask of those that are not padding, both
        (n_windows, longest + special)."""
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
        return input_ids, mask


def _core_indices(windows: Windows, group: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Find for each piece in a core of the group its row, its column within the window, and its
    index among all pieces; each (n_kept,)."""
    start = windows.core_start[group]
    lengths = windows.core_end[group] - start
    rows = np.repeat(np.arange(len(group)), lengths)
    ends = np.cumsum(lengths)
    where = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    where += np.repeat(start, lengths)
    return rows, where - windows.start[group][rows], where


def _tensor(array: IntArray, device: torch.device) -> torch.Tensor:
    """Convert an array; a GPU copies it from pinned memory without waiting."""
    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)
