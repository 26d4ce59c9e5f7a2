"""Real notes go through each annotation tool and back: no span is lost or moved."""

from pathlib import Path

import pytest

from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.files import raise_error
from spacy_bioclin.corpora.formats import FORMATS, find_files
from spacy_bioclin.types import AnnotatedText
from tests.corpora.tools.documents import TOOLS

pytestmark = [pytest.mark.corpora, pytest.mark.slow]


@pytest.fixture(scope="module")
def notes(data_dir: Path) -> list[AnnotatedText]:
    task = load_tasks()["meddocan"]
    files = find_files(task.format, [data_dir / path for path in task.splits["dev"]])[:30]
    return [doc for file in files for doc in FORMATS[task.format].read(file, raise_error)]


def test_hard_notes_have_the_same_spans(notes: list[AnnotatedText]) -> None:
    from benchmarks.accuracy.annotation_tools import PREFIX, make_hard

    for note in notes:
        for one, other in zip(spans_of(note), spans_of(make_hard(note)), strict=True):
            # A span over several lines has what was put in before them.
            kept = other.surface.replace(PREFIX, "")
            assert kept.split() == one.surface.split()


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_lost_or_moved(tool: str, notes: list[AnnotatedText]) -> None:
    from benchmarks.accuracy.annotation_tools import count, go_through, make_hard, make_hard_note

    if tool == "inception":
        pytest.importorskip("cassis", reason="dkpro-cassis is not installed")
    documents = [*notes, *map(make_hard, notes), make_hard_note()]
    found = go_through(tool, documents)
    assert found["spans"] == count(documents).total() > 1000
    assert found["lost_or_moved"] == found["new"] == found["texts_changed"] == 0
    assert found["left_out"] == {}
