"""The corpus of notes in assets/notes: its form, and that the tokenizer can represent it."""

import lzma
from pathlib import Path

import pytest

from scripts.notes import NOTES, Mark, NoteError, list_files, read_marks, read_notes
from spacy_bioclin.corpora.convert import make_nlp
from spacy_bioclin.corpora.formats import FORMATS
from spacy_bioclin.errors import BioclinError


def test_marks_may_be_nested_and_asserted() -> None:
    text, marks = read_marks("no [[alergia a [[AAS|DRUG]]|DISEASE!negated!family]]")
    assert text == "no alergia a AAS"
    assert marks == (Mark(13, 16, "DRUG"), Mark(3, 16, "DISEASE", ("negated", "family")))


@pytest.mark.parametrize(
    ("marked", "named"),
    [
        ("[[tos|SYMPTON]]", "SYMPTON"),
        ("[[tos|SYMPTOM!maybe]]", "maybe"),
        ("[[40 mg|DOSE!negated]]", "DOSE"),
        ("[[tos |SYMPTOM]]", "blank"),
        ("[[tos", "not closed"),
        ("tos|SYMPTOM]]", "not open"),
    ],
)
def test_malformed_marks_are_named(marked: str, named: str) -> None:
    with pytest.raises(NoteError, match=named):
        read_marks(marked)


@pytest.mark.parametrize("lang", ["es", "en"])
def test_every_note_can_be_read_and_tokenized(lang: str) -> None:
    nlp, names, spans, within = make_nlp(lang), set(), 0, []
    for _, _, path in list_files([lang]):
        for note in read_notes(path):
            assert note.name not in names, note.name
            names.add(note.name)
            doc = nlp.make_doc(note.text)
            edges = {token.idx for token in doc} | {token.idx + len(token) for token in doc}
            spans += len(note.marks)
            within += [
                (note.name, note.text[mark.start : mark.end])
                for mark in note.marks
                if not {mark.start, mark.end} <= edges
            ]
    assert NOTES.is_dir() and len(names) > 500
    assert len(within) <= 0.001 * spans, within


def test_multiclin_says_what_a_case_was_annotated_for(tmp_path: Path) -> None:

    cases = [
        "had\tO\n(fever)\tB-SYM\nand\tO\ncough.\tB-SYM",
        "nothing\tO\nhere\tO",
        "more\tO\npain,\tB-SYM",
        "unknown\tO",
        "an\tO\nold\tB-DIS\nstroke.\tI-DIS",
        "cut\t",
    ]
    path = tmp_path / "dev.conll.xz"
    path.write_bytes(lzma.compress("\n\n".join(cases).encode()))
    found = {
        kind: [
            (document.text, [span.surface for span in document.annotations])
            for document in FORMATS[f"multiclin-{kind}"].read(path)  # type: ignore[call-arg]
        ]
        for kind in ("dis", "sym", "pro")
    }
    assert found["sym"] == [
        ("had (fever) and cough.", ["(fever)", "cough"]),
        ("nothing here", []),
        ("more pain,", ["pain"]),
    ]
    assert found["dis"] == [("an old stroke.", ["old stroke"])] and found["pro"] == []
    path.write_bytes(b"no archive")
    with pytest.raises(BioclinError, match=r"dev\.conll\.xz"):
        FORMATS["multiclin-dis"].read(path)  # type: ignore[call-arg]
