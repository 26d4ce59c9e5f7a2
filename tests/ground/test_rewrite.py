"""Replaced parts of a text, and offsets that go both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_bioclin.rewrite import rewrite


def test_offsets_go_both_ways() -> None:
    safe, offsets = rewrite("Ana Ruiz vive en Lugo.", [(0, 8, "X"), (17, 21, "Cartagena")])
    assert safe == "X vive en Cartagena."
    assert offsets.to_safe(9, 13) == (2, 6)
    assert offsets.to_original(2, 6) == (9, 13)
    assert offsets.to_safe(17, 21) == (10, 19)
    assert offsets.to_safe(4, 13) == (0, 6)  # begins inside a replacement
    assert offsets.to_safe(14, 19) == (7, 19)  # ends inside one
    assert offsets.to_original(12, 13) == (17, 21)


def test_a_redacted_span_has_no_place() -> None:
    safe, offsets = rewrite("Ana Ruiz vive", [(0, 8, "")])
    assert safe == " vive"
    assert offsets.to_safe(0, 3) == (0, 0)
    assert offsets.to_safe(9, 13) == (1, 5)


def test_overlaps_are_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        rewrite("abcdef", [(0, 3, "x"), (2, 4, "y")])


@given(
    st.text("abc ", max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.text("XYZ", max_size=6))),
)
def test_what_is_not_replaced_keeps_its_text(text: str, wanted: list[tuple[int, int, str]]) -> None:
    replacements: list[tuple[int, int, str]] = []
    for start, length, new in sorted(wanted):
        end = min(start + length, len(text))
        if start < end and (not replacements or start >= replacements[-1][1]):
            replacements.append((start, end, new))
    safe, offsets = rewrite(text, replacements)
    replaced = {i for start, end, _ in replacements for i in range(start, end)}
    for i in range(len(text)):
        if i not in replaced:
            start, end = offsets.to_safe(i, i + 1)
            assert safe[start:end] == text[i]
            assert offsets.to_original(start, end) == (i, i + 1)
    for start, end, new in replacements:
        left, right = offsets.to_safe(start, end)
        assert safe[left:right] == new
        if new:
            assert offsets.to_original(left, right) == (start, end)
