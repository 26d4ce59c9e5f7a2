"""Draw the order in which a training reads its blocks, also of billions of them."""

import itertools
from collections.abc import Sequence

import numpy as np

# More blocks than this have no order in memory as a whole: 500,000 updates of 8,192 are 4 billion.
MAX_WHOLE = 2**24
CHUNK = 2**20


def draw_order(
    sizes: Sequence[int], shares: Sequence[float], n_blocks: int, seed: int
) -> "np.ndarray | ChunkedOrder":
    """Draw an order of blocks of several parts of the text.

    sizes (Sequence[int]): Number of blocks of each part.
    shares (Sequence[float]): Share of each part. Blocks of a part with too few are repeated, in a
        new random order.
    n_blocks (int): Number of blocks to read.
    RETURNS (np.ndarray | ChunkedOrder): (n_blocks, 2), part and block.
    """
    if n_blocks > MAX_WHOLE:
        return ChunkedOrder(sizes, shares, n_blocks, seed)
    rng = np.random.default_rng(seed)
    counts = split_by_share(n_blocks, shares)
    order = [
        np.stack([np.full(count, i), _repeat_shuffled(size, count, rng)], axis=1)
        for i, (size, count) in enumerate(zip(sizes, counts, strict=True))
    ]
    return rng.permutation(np.concatenate(order))


class ChunkedOrder:
    """Order of more blocks than memory should hold: chunks of a million, drawn when they are read.

    Each chunk has its shares of the parts. Within a part, no block is read twice before all have
    been read once, whatever the chunks.

    sizes, shares, n_blocks, seed: See `draw_order`.
    """

    def __init__(
        self, sizes: Sequence[int], shares: Sequence[float], n_blocks: int, seed: int
    ) -> None:
        self.sizes, self.shares, self.n_blocks, self.seed = sizes, list(shares), n_blocks, seed
        self._chunk, self._rows = -1, np.zeros((0, 2), int)
        self._rounds: dict[int, tuple[int, np.ndarray]] = {}

    def __len__(self) -> int:
        return self.n_blocks

    def __getitem__(self, index: int) -> np.ndarray:
        """Look up part and block of one position, (2,)."""
        if not 0 <= index < self.n_blocks:
            raise IndexError(index)
        chunk, row = divmod(index, CHUNK)
        if chunk != self._chunk:
            self._chunk, self._rows = chunk, self._draw(chunk)
        return self._rows[row]

    def _draw(self, chunk: int) -> np.ndarray:
        n_rows = min(CHUNK, self.n_blocks - chunk * CHUNK)
        starts = [chunk * count for count in split_by_share(CHUNK, self.shares)]
        parts = [
            np.stack([np.full(count, i), self._read(i, start, count)], axis=1)
            for i, (start, count) in enumerate(
                zip(starts, split_by_share(n_rows, self.shares), strict=True)
            )
        ]
        return np.random.default_rng((self.seed, chunk)).permutation(np.concatenate(parts))

    def _read(self, part: int, start: int, count: int) -> np.ndarray:
        """Read positions of the endless sequence of a part: its blocks, shuffled for each pass."""
        found, end = [np.zeros(0, int)], start + count
        while start < end:
            number, first = divmod(start, self.sizes[part])
            last = min(self.sizes[part], first + end - start)
            found.append(self._shuffle(part, number)[first:last])
            start += last - first
        return np.concatenate(found)

    def _shuffle(self, part: int, number: int) -> np.ndarray:
        if self._rounds.get(part, (-1,))[0] != number:
            rng = np.random.default_rng((self.seed, part, number, 1))
            self._rounds[part] = number, rng.permutation(self.sizes[part])
        return self._rounds[part][1]


def split_by_share(total: int, shares: Sequence[float]) -> list[int]:
    """Split a number into whole numbers in proportion to some shares."""
    edges = [round(total * part / sum(shares)) for part in itertools.accumulate(shares, initial=0)]
    return [end - start for start, end in itertools.pairwise(edges)]


def _repeat_shuffled(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    rounds = [rng.permutation(n) for _ in range(-(-count // n))]
    return np.concatenate(rounds)[:count] if rounds else np.zeros(0, int)
