"""Layouts: their syntax, and that every included one can be filled."""

from pathlib import Path

import pytest

from spacy_bioclin.deid.invented.layouts import FOLDER, LANGS, read_layouts
from spacy_bioclin.deid.invented.notes import check_layouts
from spacy_bioclin.errors import BioclinError


def check_included(number: int, seeds: range) -> None:
    """Fill the included layouts, beginning with one and leaving out all but each fourth."""
    for path in sorted(FOLDER.rglob("*.txt"))[number::4]:
        lang = path.parent.name
        assert lang in LANGS
        for seed in seeds:
            notes = check_layouts([path], lang, seed=seed)
            # Some are traps.
            assert sum(bool(note.spans) for note in notes) >= 0.9 * len(notes), path
            for note in notes:
                assert "{" not in note.text or "\\{" in path.read_text("utf-8"), path
                for start, end, _ in note.spans:
                    assert note.text[start:end].strip() == note.text[start:end] != "", path


@pytest.mark.parametrize("number", range(4))
def test_every_included_layout_can_be_filled(number: int) -> None:
    check_included(number, range(1))


@pytest.mark.slow
def test_every_included_layout_can_be_filled_with_other_seeds() -> None:
    for number in range(4):
        check_included(number, range(1, 3))


def test_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text, message in (
        ("a {patinet}", "a.txt, layout 1, line 1: {patinet}: no such slot; did you mean patient?"),
        ("a\n=====\n\nb {date.nmeric}", "layout 2, line 4: {date.nmeric}: no such form of {date}"),
        ("a {city.long}", "write {city}"),
        ("[a|b", "'[' without a ']'"),
        ("a]", "']' without a '['"),
        ("a }", "'}' without a '{'"),
        ("a {city", "'{' without a '}'"),
        ("[" * 30 + "]" * 30, "deeper than 20"),
        ("\n=====\n", "has no layout"),
    ):
        path.write_text(text, "utf-8")
        with pytest.raises(BioclinError) as error:
            read_layouts([path], "es")
        assert message in str(error.value)
