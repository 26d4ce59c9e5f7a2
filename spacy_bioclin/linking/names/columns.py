"""Columns of a knowledge base: many strings in two arrays, and lists of numbers for each row."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

# Strings are copied in blocks: the positions of their bytes take eight times their room.
BLOCK = 100_000


class Strings(Sequence[str]):
    """A column of strings over two arrays: `data` (n_bytes,) uint8, `start` (n + 1,) int64."""

    def __init__(self, data: np.ndarray, start: np.ndarray) -> None:
        self.data, self.start = data, start
        # A slice of a view costs a fraction of a slice of an array.
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
        return str(self._view[self.start[i] : self.start[i + 1]], "utf-8")

    def __iter__(self) -> Iterator[str]:
        for i in range(0, len(self), BLOCK):
            at = self.start[i : i + BLOCK + 1].tolist()
            for begin, end in pairwise(at):
                yield str(self._view[begin:end], "utf-8")

    def find(self, text: str) -> int | None:
        """RETURNS (int | None): Where the text stands, if the column is sorted by bytes."""
        wanted, low, high = text.encode("utf-8", "surrogatepass"), 0, len(self)
        while low < high:
            middle = (low + high) // 2
            found = bytes(self._view[self.start[middle] : self.start[middle + 1]])
            if found == wanted:
                return middle
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return None

    def take(self, rows: np.ndarray) -> "Strings":
        """RETURNS (Strings): A copy of these rows, in this order."""
        lengths = np.diff(self.start)[rows]
        start = starts(lengths)
        data = np.empty(start[-1], np.uint8)
        for i in range(0, len(rows), BLOCK):
            block = slice(i, i + BLOCK)
            begin, end = start[i], start[min(i + BLOCK, len(rows))]
            # Where each byte comes from: so far along in its string, which begins there.
            along = np.arange(end - begin) - np.repeat(start[:-1][block] - begin, lengths[block])
            origin = np.repeat(self.start[rows[block]], lengths[block])
            data[begin:end] = self.data[origin + along]
        return Strings(data, start)


class StringBuffer:
    """Strings that come one after the other."""

    def __init__(self) -> None:
        self.data, self.start = bytearray(), array("q", [0])

    def append(self, text: str) -> None:
        """Add a string."""
        self.data += text.encode("utf-8")
        self.start.append(len(self.data))

    def strings(self) -> Strings:
        """RETURNS (Strings): What was added; nothing can be added any more."""
        return Strings(as_array(self.data, np.uint8), as_array(self.start, np.int64))


def pack_strings(texts: Iterable[str]) -> Strings:
    """RETURNS (Strings): A column of these texts."""
    buffer = StringBuffer()
    for text in texts:
        buffer.append(text)
    return buffer.strings()


def as_array(values: Any, dtype: Any) -> np.ndarray:
    """RETURNS (np.ndarray): The same memory of an `array` or bytearray, also where it is empty."""
    return np.frombuffer(values, dtype) if len(values) else np.empty(0, dtype)


def starts(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """RETURNS (np.ndarray): (n + 1,) int64: where each of n lists begins that lie one after the
    other; the last number is where all end."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found
