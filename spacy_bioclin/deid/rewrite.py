"""Replace stretches of a text, and know afterwards what stands where."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Edit(NamedTuple):
    """One replacement: text[start:end] became safe[safe_start:safe_end], in code points."""

    start: int
    end: int
    safe_start: int
    safe_end: int


class OffsetMap:
    """Offsets of a text to those of its rewritten form, and back.

    edits (Iterable[Edit]): In order of the text, not overlapping.

    An offset inside a replacement has no counterpart: the start of a span moves to the start of the
    replacement, its end to the end.
    """

    def __init__(self, edits: Iterable[Edit]) -> None:
        self.edits = tuple(Edit(*edit) for edit in edits)
        self._starts = [edit.start for edit in self.edits]
        self._safe_starts = [edit.safe_start for edit in self.edits]

    def to_safe(self, start: int, end: int) -> tuple[int, int]:
        """RETURNS (tuple[int, int]): Where a span of the text stands in the safe text."""
        return self._move(start, end, self._starts, (1, 2, 3))

    def to_original(self, start: int, end: int) -> tuple[int, int]:
        """RETURNS (tuple[int, int]): Where a span of the safe text stands in the text."""
        return self._move(start, end, self._safe_starts, (3, 0, 1))

    def _move(
        self, start: int, end: int, starts: list[int], columns: tuple[int, int, int]
    ) -> tuple[int, int]:
        here_end, there_start, there_end = columns

        def move(offset: int, *, is_end: bool) -> int:
            # An end that touches a replacement from the left lies before it.
            at = bisect_right(starts, offset - 1 if is_end else offset) - 1
            if at < 0:
                return offset
            edit = self.edits[at]
            if offset > edit[here_end] or (offset == edit[here_end] and not is_end):
                return offset - edit[here_end] + edit[there_end]
            if is_end:
                return edit[there_end]
            return edit[there_start]

        if start == end:
            moved = move(start, is_end=False)
            return moved, moved
        return move(start, is_end=False), move(end, is_end=True)


def rewrite(text: str, replacements: Iterable[tuple[int, int, str]]) -> tuple[str, OffsetMap]:
    """Replace spans of a text.

    replacements (Iterable[tuple[int, int, str]]): (start, end, new text) in code points, sorted,
        not overlapping.
    RETURNS (tuple[str, OffsetMap]): The new text, and the offsets both ways.
    """
    parts: list[str] = []
    edits = []
    done = length = 0
    for start, end, new in replacements:
        if start < done:
            raise ValueError(
                f"replacement at {start} overlaps the one before, which ends at {done}"
            )
        parts += (text[done:start], new)
        length += start - done
        edits.append(Edit(start, end, length, length + len(new)))
        length += len(new)
        done = end
    parts.append(text[done:])
    return "".join(parts), OffsetMap(edits)
