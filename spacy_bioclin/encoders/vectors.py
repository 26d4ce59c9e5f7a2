"""Remember the vectors of an encoder that does not learn, so that they are computed once."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..types import IntArray
from .pairs.windows import PairLayout, PlacedPair
from .windows import Windows

MAX_BYTES = 2**30


class VectorMemory:
    """A least recently used cache of the vectors of windows. Its keys are hashes: no text is kept.

    max_bytes (int): Size of all vectors together; they are in main memory.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._vectors: OrderedDict[bytes, torch.Tensor] = OrderedDict()
        self.n_bytes = 0

    def recall(
        self,
        encode: Callable[..., torch.Tensor],
        ids: IntArray,
        windows: Windows,
        pairs: Sequence[PlacedPair] = (),
        *,
        kind: str,
    ) -> torch.Tensor:
        """Look up the vectors of windows and pairs, and encode those that are not known.

        encode (Callable): `WindowedEncoder.forward`.
        ids (IntArray), windows (Windows), pairs (Sequence[PlacedPair]): Its arguments.
        kind (str): The precision, on which vectors depend too.
        RETURNS (torch.Tensor): fp32, in main memory, (n_pieces, width).
        """
        n_windows = len(windows.start)
        keys = [_hash(kind, ids, windows, i) for i in range(n_windows)]
        keys += [_hash_pair(kind, pair.layout) for pair in pairs]
        # The pieces whose vectors each key has.
        slices = list(zip(windows.core_start.tolist(), windows.core_end.tolist(), strict=True))
        slices += [(pair.start, pair.end) for pair in pairs]
        known = {key: self._vectors[key] for key in keys if key in self._vectors}
        new = np.array([i for i, key in enumerate(keys) if key not in known], dtype=np.int64)
        if len(new):
            new_windows = Windows(*(field[new[new < n_windows]] for field in windows))
            new_pairs = [pairs[i - n_windows] for i in new if i >= n_windows]
            arguments: tuple[Any, ...] = (new_pairs,) if new_pairs else ()
            encoded = encode(ids, new_windows, *arguments).cpu()
            for i in new:
                start, end = slices[i]
                known[keys[i]] = encoded[start:end].clone()
        for key in keys:
            self._keep(key, known[key])
        in_order = sorted(range(len(keys)), key=slices.__getitem__)
        return torch.cat([known[keys[i]] for i in in_order])

    def _keep(self, key: bytes, vectors: torch.Tensor) -> None:
        if key not in self._vectors:
            self.n_bytes += vectors.nbytes
        self._vectors[key] = vectors
        self._vectors.move_to_end(key)
        while self.n_bytes > self._max_bytes:
            _, oldest = self._vectors.popitem(last=False)
            self.n_bytes -= oldest.nbytes

    def get_state(self) -> dict[bytes, torch.Tensor]:
        """Collect all vectors, the least recently used first, for a run that resumes.

        If they were computed again, in other batches, they would differ in their last bits.
        """
        return dict(self._vectors)

    def set_state(self, state: dict[bytes, torch.Tensor]) -> None:
        """Undo `get_state`."""
        for key, vectors in state.items():
            self._keep(key, vectors)


def _hash(kind: str, ids: IntArray, windows: Windows, i: int) -> bytes:
    """Hash the pieces of a window and the position of its core."""
    start = windows.start[i]
    core = np.array([windows.core_start[i] - start, windows.core_end[i] - start])
    value = hashlib.blake2b(kind.encode(), digest_size=16)
    value.update(core.tobytes())
    value.update(ids[start : windows.end[i]].tobytes())
    return value.digest()


def _hash_pair(kind: str, layout: PairLayout) -> bytes:
    """Hash what is read for a pair. No window has the same hash, even of the same pieces."""
    value = hashlib.blake2b(kind.encode(), digest_size=16, person=b"pair")
    value.update(np.array([len(layout.lengths), *layout.lengths]).tobytes())
    for field in (layout.ids, layout.segments, layout.where):
        value.update(field.tobytes())
    return value.digest()
