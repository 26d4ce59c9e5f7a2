"""The text of a note as an annotation tool shows it, and how the tool counts its characters.

No tool is shown carriage returns that it may drop or count in its own way; where that changes a
text, the original goes along in the metadata of the task, and comes back in its place.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import BioclinError

LINE_END = re.compile("\r\n?")


class ShownText(NamedTuple):
    """A text without carriage returns.

    text (str): The text, in which each line ends in a newline.
    starts (Sequence[int]): Where each of its characters, and its end, is in the original.
    """

    text: str
    starts: Sequence[int]

    def to_shown(self, offset: int) -> int:
        """Convert an offset of the original; one within CR LF becomes the one behind it."""
        return bisect_left(self.starts, offset)

    def to_original(self, offset: int) -> int:
        """Convert an offset of the shown text."""
        return self.starts[offset]


def as_is(original: str) -> ShownText:
    """Show a text without changes."""
    return ShownText(original, range(len(original) + 1))


def show_text(original: str) -> ShownText:
    """Replace CR LF and CR by newlines, and keep where each character was."""
    if "\r" not in original:
        return as_is(original)
    starts: list[int] = []
    done = 0
    for match in LINE_END.finditer(original):
        starts += range(done, match.start() + 1)
        done = match.end()
    starts += range(done, len(original) + 1)
    return ShownText(LINE_END.sub("\n", original), starts)


def count_utf16(text: str) -> Sequence[int]:
    """Find the UTF-16 offset of each character of a text, and of its end.

    Java and JavaScript count characters beyond U+FFFF twice.
    """
    if text.isascii() or max(text) <= "\uffff":
        return range(len(text) + 1)
    offsets = [0]
    for char in text:
        offsets.append(offsets[-1] + (2 if char > "\uffff" else 1))
    return offsets


def from_utf16(offsets: Sequence[int], offset: int) -> int:
    """Convert a UTF-16 offset to code points.

    offsets (Sequence[int]): See `count_utf16`.
    RAISES (BioclinError): It is within a character, or outside of the text.
    """
    at = bisect_left(offsets, offset)
    if at == len(offsets) or offsets[at] != offset:
        raise BioclinError(
            f"offset {offset} is not at the edge of a character when counted in UTF-16 units; was "
            "it counted in another way, or the text changed?"
        )
    return at


def hash_text(text: str) -> str:
    """Compute the hash by which a text is known again."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def restore_text(returned: str, meta: Mapping[str, str]) -> tuple[ShownText, str, int]:
    """Find the original of a text that a tool gives back, and check that it is the one exported.

    returned (str): The text.
    meta (Mapping[str, str]): See `Task`; empty for a text that was imported in another way.
    RETURNS (tuple[ShownText, str, int]): The text as it was shown, the original, and what to add to
        an offset of the tool: not 0 if the tool has removed blanks from the start.
    RAISES (BioclinError): It is another text.
    """
    original = meta.get("text", returned)
    shown = show_text(original) if "text" in meta else as_is(original)
    if "sha256" in meta and (
        hash_text(original) != meta["sha256"] or shown.text.strip() != returned.strip()
    ):
        raise BioclinError(
            "its text is not the one that was exported, so that offsets would be wrong; was it "
            "edited or normalized in the tool? Export and annotate it again"
        )
    shift = 0
    if shown.text != returned and "sha256" in meta:
        shift = _count_blanks(shown.text) - _count_blanks(returned)
    return shown, original, shift


def _count_blanks(text: str) -> int:
    return len(text) - len(text.lstrip())
