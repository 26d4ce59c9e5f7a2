"""How tools show a text and count its characters, worked out by hand."""

import pytest

from spacy_bioclin.corpora.tools.texts import (
    as_is,
    count_utf16,
    from_utf16,
    hash_text,
    restore_text,
    show_text,
)
from spacy_bioclin.errors import BioclinError


def test_line_ends_become_newlines_and_offsets_follow() -> None:
    shown = show_text("a\r\nb\rc\n")
    assert shown.text == "a\nb\nc\n"
    assert list(shown.starts) == [0, 1, 3, 4, 5, 6, 7]
    # CR LF from 1 to 3 is the newline from 1 to 2; within it, the offset moves behind it.
    assert [shown.to_shown(offset) for offset in range(8)] == [0, 1, 2, 2, 3, 4, 5, 6]
    assert [shown.to_original(offset) for offset in range(7)] == [0, 1, 3, 4, 5, 6, 7]
    assert list(as_is("a\r\n").starts) == [0, 1, 2, 3]


def test_utf16_counts_characters_beyond_the_first_plane_twice() -> None:
    offsets = count_utf16("a😀e\u0301b")
    assert list(offsets) == [0, 1, 3, 4, 5, 6]
    assert [from_utf16(offsets, each) for each in (0, 1, 3, 6)] == [0, 1, 2, 5]
    assert list(count_utf16("añ")) == [0, 1, 2]
    for within in (2, 7):
        with pytest.raises(BioclinError, match="not at the edge of a character"):
            from_utf16(offsets, within)


def test_an_edited_text_is_refused() -> None:
    original = " a\r\nb "
    meta = {"sha256": hash_text(original), "text": original}
    assert restore_text(" a\nb ", meta)[1:] == (original, 0)
    # A tool that strips blanks counts from the first letter.
    assert restore_text("a\nb", meta)[1:] == (original, 1)
    for changed in (" a\nc ", " a b ", "a\nb\nb"):
        with pytest.raises(BioclinError, match="not the one that was exported"):
            restore_text(changed, meta)
    with pytest.raises(BioclinError, match="not the one that was exported"):
        restore_text(" a\nb ", {**meta, "text": " a\r\nX "})
    with pytest.raises(BioclinError, match="not the one that was exported"):
        restore_text("a", {"sha256": hash_text("b")})


def test_a_text_without_metadata_is_taken_as_it_is() -> None:
    shown, original, shift = restore_text("a\r\nb", {})
    assert (original, shift, list(shown.starts)) == ("a\r\nb", 0, [0, 1, 2, 3, 4])
