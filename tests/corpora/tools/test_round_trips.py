"""A note goes through each annotation tool and back: no span is lost or moved."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.export import write_corpus
from spacy_bioclin.corpora.formats import FORMATS, find_files
from spacy_bioclin.types import AnnotatedText, RelationAnnotation
from tests.corpora.tools.documents import HARD, PLAIN, TOOLS

NAMES = {"label-studio": "out", "doccano": "out.jsonl", "prodigy": "out.jsonl"}
# What doccano has no place for: three concept ids, two attributes and a note.
LOST = {"doccano": Counter({"concept ids": 3, "attributes": 2, "notes": 1})}


def read_again(tool: str, path: Path) -> list[AnnotatedText]:
    form = FORMATS[tool]
    read = form.read_again or form.read
    return [doc for file in find_files(tool, [path]) for doc in read(file, _raise)]


def _raise(name: str, error: Exception) -> None:
    raise error


def list_spans(document: AnnotatedText) -> list[tuple[Any, ...]]:
    return sorted((each.fragments, each.label, each.surface) for each in spans_of(document))


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_lost_or_moved(tool: str, tmp_path: Path) -> None:
    if tool == "inception":
        pytest.importorskip("cassis", reason="dkpro-cassis is not installed")
    out = tmp_path / NAMES.get(tool, "out")
    n_docs, lost = write_corpus([HARD, PLAIN], out, tool)
    assert (n_docs, lost) == (2, LOST.get(tool, Counter()))
    by_id = {document.id: document for document in read_again(tool, out)}
    assert by_id.keys() == {"nota/1", "nota 2"}
    assert by_id["nota 2"].text == PLAIN.text
    assert spans_of(by_id["nota 2"]) == []
    again = by_id["nota/1"]
    assert again.text == HARD.text
    assert list_spans(again) == list_spans(HARD)
    (relation,) = (a for a in again.annotations if isinstance(a, RelationAnnotation))
    labels = {each.id: each.surface for each in spans_of(again)}
    ends = [labels[target] for _, target in relation.args]
    assert (relation.label, ends) == ("with", ["Dolor en brazo", "disne\u0301a"])
