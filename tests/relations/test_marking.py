"""Texts with marked or masked arguments."""

import pytest

from spacy_bioclin.relations.candidates import Mention
from spacy_bioclin.relations.marking import mark_pair, mask_pair
from tests.trained import blank

TEXT = "Low-dose aspirin relieves back pain, not aspirin alone."
DRUG, AGAIN = Mention(3, 4, "DRUG"), Mention(9, 10, "DRUG")
PAIN, BACK = Mention(5, 7, "SIGN_SYMPTOM"), Mention(5, 6, "BODY")


@pytest.fixture(scope="module")
def doc():
    doc = blank("en")(TEXT)
    assert [doc[m.start : m.end].text for m in (DRUG, PAIN, AGAIN)] == [
        "aspirin",
        "back pain",
        "aspirin",
    ]
    return doc


def words(doc, tokens):
    return [doc[i].text for i in tokens]


def test_marks(doc):
    marked = mark_pair(doc, ([DRUG, AGAIN], [PAIN]), (0, len(doc)))
    assert marked.doc.text == (
        "Low-dose @ * DRUG * aspirin @ relieves # ^ SIGN SYMPTOM ^ back pain # , not "
        "@ * DRUG * aspirin @ alone."
    )
    assert words(marked.doc, marked.head) == ["@", "@"]
    assert words(marked.doc, marked.child) == ["#"]


def test_marks_nested_arguments(doc):
    marked = mark_pair(doc, ([BACK], [PAIN]), (4, 7))
    assert marked.doc.text == "relieves # ^ SIGN SYMPTOM ^ @ * BODY * back @ pain # "
    assert words(marked.doc, [*marked.head, *marked.child]) == ["@", "#"]


def test_masks(doc):
    masked = mask_pair(doc, ([DRUG, AGAIN], [PAIN]), (0, len(doc)))
    assert masked.doc.text == "Low-dose @DRUG$ relieves @SIGN_SYMPTOM$ , not @DRUG$ alone."
    assert words(masked.doc, [*masked.head, *masked.child]) == [
        "@DRUG$",
        "@DRUG$",
        "@SIGN_SYMPTOM$",
    ]


def test_masks_overlapping_arguments_as_one(doc):
    masked = mask_pair(doc, ([BACK], [PAIN]), (4, 7))
    assert masked.doc.text == "relieves @BODY-SIGN_SYMPTOM$ "
    assert masked.head == masked.child == [1]
