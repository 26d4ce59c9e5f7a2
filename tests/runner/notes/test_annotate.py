"""Batches of a limited number of words, and pipelines that fail on a note."""

import pytest
import spacy
from spacy.language import Language

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.notes.annotate import annotate, cut_batches
from spacy_bioclin.runner.records import Record


@Language.component("test_poison")
def fail_on_poison(doc):
    if "veneno" in doc.text:
        raise ValueError(doc.text)
    return doc


def make_records(texts):
    return [Record(n, f"line {n}", {"text": text}) for n, text in enumerate(texts, start=1)]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([3, 3, 4, 1], [[1, 2, 3], [4]]),  # 10, then 1
        ([11, 1, 12, 10], [[1], [2], [3], [4]]),
        ([0, 0, 10, 0], [[1, 2, 3, 4]]),
        ([], []),
    ],
)
def test_batches_hold_ten_words(words, wanted):
    records = make_records([" ".join("x" * n) for n in words])
    batches = cut_batches(records, lambda record: len(record.row["text"].split()), 10)
    assert [[record.number for record in batch] for batch in batches] == wanted


@pytest.mark.parametrize("bad", [set(), {1}, {7}, {2, 3}, {1, 4, 7}, set(range(1, 8))])
def test_a_note_that_fails_does_not_lose_the_others(bad):
    nlp = spacy.blank("es")
    nlp.add_pipe("test_poison")
    records = make_records(["veneno" if n in bad else f"nota {n}" for n in range(1, 8)])
    found = list(
        annotate(
            nlp,
            records,
            lambda record: nlp.make_doc(record.row["text"]),
            lambda doc, record: (record.number, doc.text),
            batch_size=7,
        )
    )
    for number, each in enumerate(found, start=1):
        if number in bad:
            assert isinstance(each, BioclinError)
            message = f"line {number}: the pipeline failed with ValueError (test_annotate.py, line"
            assert str(each).startswith(message) and "veneno" not in str(each)
        else:
            assert each == (number, f"nota {number}")
    assert len(found) == 7


def test_what_cannot_be_written_is_a_failure_of_its_note():
    nlp = spacy.blank("es")

    def read(doc, record):
        if record.number == 2:
            raise BioclinError("a label holds a blank")
        return record.number

    records = make_records(["a", "b", "c"])
    first, second, third = annotate(nlp, records, lambda r: nlp.make_doc(r.row["text"]), read)
    assert (first, third) == (1, 3) and str(second) == "line 2: a label holds a blank"
