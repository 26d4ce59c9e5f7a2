"""The benchmark of hard invented notes: its format, its measures, and the notes themselves."""

import importlib
import json

import pytest

from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.deid.spans import PhiSpan
from spacy_bioclin.spans import annotated_labels

MARKED = """##### letter
Dear Dr [[Ann Lee|staff_name]],
seen [[3 May|date]].

##### list
[[Bo|patient_name]] BP 120, DM
2
"""


@pytest.fixture(scope="module")
def hard_notes():
    return importlib.import_module("benchmarks.deid.hard_notes")


@pytest.fixture
def notes(hard_notes, tmp_path):
    path = tmp_path / "en_dev.txt"
    path.write_text(MARKED, "utf-8")
    return hard_notes.read_notes(path)


def test_notes_are_read(notes):
    assert [note.kind for note in notes] == ["letter", "list"]
    assert notes[0].text == "Dear Dr Ann Lee,\nseen 3 May."
    assert [(g.start, g.end, g.phi_type) for g in notes[1].gold] == [(0, 2, "patient_name")]
    assert notes[1].text == "Bo BP 120, DM\n2"


def test_gold_docs(hard_notes, notes):
    [_, second] = hard_notes.make_phi_docs(notes, "en")
    assert [(span.text, span.label_) for span in second.spans["phi"]] == [("Bo", "patient_name")]
    assert "clinical" not in second.spans and annotated_labels(second, "phi") is None


def test_measures_by_hand(hard_notes, notes):
    # "Lee" and "seen" are hidden of the first note, "Bo" and "BP" of the second.
    first = [PhiSpan(12, 15, "DOCTOR", 1.0, ""), PhiSpan(17, 21, "DATE", 1.0, "")]
    second = [PhiSpan(0, 5, "PERSON", 1.0, "")]
    scores = hard_notes.score(notes, [first, second])
    every = scores["all"]
    assert (every["spans"], every["letters"], every["hidden"]) == (3, 12, 11)
    assert every["span_recall"] == 0.3333 and every["letter_recall"] == round(5 / 12, 4)
    assert every["letter_precision"] == round(5 / 11, 4)
    assert every["notes_wholly_hidden"] == 0.5
    assert every["notes_wholly_hidden_interval"] == [0.0, 1.0]
    assert scores["groups"]["dates"]["span_recall"] == 0.0
    assert scores["groups"]["dates"]["letter_precision"] == 0.0
    assert scores["groups"]["names"]["span_recall"] == 0.5
    assert scores["kinds"]["list"]["notes_wholly_hidden"] == 1.0
    written = json.dumps(scores)
    assert "Ann" not in written and "Bo" not in written


def test_a_wrong_file_is_refused(hard_notes, tmp_path):
    path = tmp_path / "en_dev.txt"
    for text in ("text", "##### a\n[[b|c]]", "##### a\n[[b|date]", "##### A B\nc"):
        path.write_text(text, "utf-8")
        with pytest.raises(SystemExit, match=r"en_dev\.txt"):
            hard_notes.read_notes(path)
    with pytest.raises(SystemExit, match=r"es_test\.txt is missing"):
        hard_notes.read_notes(tmp_path / "es_test.txt")


def test_the_notes_can_be_read(hard_notes):
    assert set(hard_notes.GROUP_OF) == set(load_types())
    read = {path.stem: hard_notes.read_notes(path) for path in hard_notes.FOLDER.glob("*_*.txt")}
    for notes in read.values():
        assert all(note.text.strip() for note in notes)  # some of Spanish have no PHI at all
        assert len({note.text for note in notes}) == len(notes)
    shared = ("age", "date", "profession", "state", "country")
    dev, test = (
        {
            " ".join(note.text[one.start : one.end].lower().split())
            for note in read[f"en_{split}"]
            for one in note.gold
            if one.phi_type not in shared
        }
        for split in ("dev", "test")
    )
    assert dev and test and not dev & test
