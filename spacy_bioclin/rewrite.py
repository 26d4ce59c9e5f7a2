"""Replace parts of a text, and map offsets between the original and the safe text."""

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple


class Edit(NamedTuple):
    """One replacement: text[start:end] became safe[safe_start:safe_end], in code points."""

    start: int
    end: int
    safe_start: int
    safe_end: int

    def inverse(self) -> "Edit":
        """Make the edit that turns the safe text back."""
        return Edit(self.safe_start, self.safe_end, self.start, self.end)


class OffsetMap:
    """Map the offsets of a text to those of its rewritten form, and back.

    An offset inside a replacement has no counterpart: the start of a span moves to the start of the
    replacement, its end to the end.

    edits (Iterable[Edit]): In order of the text, not overlapping.
    """

    def __init__(self, edits: Iterable[Edit]) -> None:
        self.edits = tuple(edits)

    @cached_property
    def _inverses(self) -> tuple[Edit, ...]:
        return tuple(edit.inverse() for edit in self.edits)

    def to_safe(self, start: int, end: int) -> tuple[int, int]:
        """Move a span of the original text to the safe text."""
        return _move(start, end, self.edits)

    def to_original(self, start: int, end: int) -> tuple[int, int]:
        """Move a span of the safe text to the original text."""
        return _move(start, end, self._inverses)


def _move(start: int, end: int, edits: tuple[Edit, ...]) -> tuple[int, int]:
    moved = _move_offset(start, edits, is_end=False)
    return moved, moved if start == end else _move_offset(end, edits, is_end=True)


def _move_offset(offset: int, edits: tuple[Edit, ...], *, is_end: bool) -> int:
    # An end that touches a replacement from the left lies before it.
    at = bisect_right(edits, offset - is_end, key=attrgetter("start")) - 1
    if at < 0:
        return offset
    edit = edits[at]
    if offset > edit.end or (offset == edit.end and not is_end):
        return offset - edit.end + edit.safe_end
    return edit.safe_end if is_end else edit.safe_start


def rewrite(text: str, replacements: Iterable[tuple[int, int, str]]) -> tuple[str, OffsetMap]:
    """Replace parts of a text.

    replacements (Iterable[tuple[int, int, str]]): (start, end, new text) in code points, sorted,
        not overlapping.
    RETURNS (tuple[str, OffsetMap]): The new text, and the map of offsets in both directions.
    RAISES (ValueError): Two replacements overlap.
    """
    parts: list[str] = []
    edits = []
    done = length = 0
    for start, end, new in replacements:
        if start < done:
            raise ValueError(f"replacement at {start} overlaps the one that ends at {done}")
        parts += (text[done:start], new)
        length += start - done
        edits.append(Edit(start, end, length, length + len(new)))
        length += len(new)
        done = end
    parts.append(text[done:])
    return "".join(parts), OffsetMap(edits)
