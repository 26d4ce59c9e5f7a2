"""Store many strings in two arrays, and find where lists of numbers begin."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BioclinError
from ...types import IntArray

# Strings are copied in blocks, because the positions of their bytes need eight times their memory.
BLOCK = 100_000


class Strings(Sequence[str]):
    """A column of strings over two arrays.

    data (np.ndarray): (n_bytes,) uint8, the UTF-8 bytes of all strings.
    start (np.ndarray): (n + 1,) int64, where each begins, increasing.
    place (str): Where the strings are, for errors.
    """

    def __init__(self, data: np.ndarray, start: np.ndarray, place: str = "strings") -> None:
        self.data, self.start, self.place = data, start, place
        # Slicing a view is several times faster than slicing an array.
        self._view = data.data

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i} of {len(self)}")
        if i < 0:
            i += len(self)
        try:
            return str(self._view[self.start[i] : self.start[i + 1]], "utf-8")
        except UnicodeDecodeError:
            raise self._error(i) from None

    def __iter__(self) -> Iterator[str]:
        for i in range(0, len(self), BLOCK):
            at = self.start[i : i + BLOCK + 1].tolist()
            for row, (begin, end) in enumerate(pairwise(at), i):
                try:
                    yield str(self._view[begin:end], "utf-8")
                except UnicodeDecodeError:
                    raise self._error(row) from None

    def _error(self, row: int) -> BioclinError:
        return BioclinError(f"{self.place}: row {row:,} is not UTF-8, so it is damaged")

    def find(self, text: str) -> int | None:
        """Find the row of a text in a column that is sorted by bytes, or None."""
        wanted, low, high = text.encode("utf-8", "surrogatepass"), 0, len(self)
        while low < high:
            middle = (low + high) // 2
            found = bytes(self._view[self.start[middle] : self.start[middle + 1]])
            if found == wanted:
                return middle
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return None

    def take(self, rows: np.ndarray) -> "Strings":
        """Copy these rows, in this order."""
        lengths = np.diff(self.start)[rows]
        start = starts(lengths)
        data = np.empty(start[-1], np.uint8)
        for i in range(0, len(rows), BLOCK):
            block = slice(i, i + BLOCK)
            begin, end = start[i], start[min(i + BLOCK, len(rows))]
            # The source of each byte: where its string begins, and how far along it is.
            along = np.arange(end - begin) - np.repeat(start[:-1][block] - begin, lengths[block])
            origin = np.repeat(self.start[rows[block]], lengths[block])
            data[begin:end] = self.data[origin + along]
        return Strings(data, start)


class StringBuffer:
    """Collect strings one after the other."""

    def __init__(self) -> None:
        self.data, self.start = bytearray(), array("q", [0])

    def append(self, text: str) -> None:
        """Add a string."""
        self.data += text.encode("utf-8")
        self.start.append(len(self.data))

    def strings(self) -> Strings:
        """Get the column of all strings; nothing can be added afterwards."""
        return Strings(as_array(self.data, np.uint8), as_array(self.start, np.int64))


def pack_strings(texts: Iterable[str]) -> Strings:
    """Make a column of texts."""
    buffer = StringBuffer()
    for text in texts:
        buffer.append(text)
    return buffer.strings()


def as_array(values: Any, dtype: Any) -> np.ndarray:
    """View the memory of an `array` or bytearray as NumPy array, also if it is empty."""
    return np.frombuffer(values, dtype) if len(values) else np.empty(0, dtype)


def starts(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Compute where each of n lists begins if they are stored one after the other.

    RETURNS (np.ndarray): (n + 1,) int64; the last number is where the last list ends.
    """
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def ranges(start: IntArray, lengths: IntArray) -> NDArray[np.int64]:
    """Concatenate the ranges from start[i] to start[i] + lengths[i]."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(start - (ends - lengths), lengths)


def ranks(groups: IntArray) -> IntArray:
    """Count from 0 within each group of equal numbers, which are sorted."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def number_groups(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number groups of equal hashes in the order of their first members.

    hashes (np.ndarray): (n,) any sortable values.
    RETURNS (tuple[np.ndarray, np.ndarray]): (n,) int32 group of each, and (n_groups,) position of
        the first member of each group.
    """
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return number[group], np.sort(first)
