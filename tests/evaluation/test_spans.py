"""Scores of spans against counts worked by hand, and the scorer."""

import itertools
import pickle
import random

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.spans import (
    Counts,
    compare,
    make_span_scorer,
    relaxed_match,
    score_spans,
)
from spacy_bioclin.types import GOLD_KEY

DOCS = [
    # exact; wrong label at right offsets; missed; spurious; cut short
    (
        [(0, 4, "A"), (5, 9, "A"), (10, 14, "B"), (20, 30, "B")],
        [(0, 4, "A"), (5, 9, "B"), (16, 18, "A"), (20, 25, "B")],
    ),
    ([], [(3, 6, "A")]),  # nothing to find
    ([(0, 2, "C"), (0, 2, "C")], []),  # a label that is never predicted, annotated twice
    ([], []),
    ([(0, 3, "B"), (0, 3, "B")], [(0, 3, "B"), (0, 3, "B"), (7, 9, "D")]),  # repeats; D: no gold
]


def test_strict_counts_by_hand():
    scores = score_spans(DOCS)
    assert scores.of_docs() == [
        Counts(1, 3, 3),
        Counts(0, 1, 0),
        Counts(0, 0, 1),
        Counts(0, 0, 0),
        Counts(1, 1, 0),
    ]
    assert scores.per_label == {
        "A": Counts(1, 2, 1),
        "B": Counts(1, 2, 2),
        "C": Counts(0, 0, 1),
        "D": Counts(0, 1, 0),
    }
    assert scores.of_docs("C") == [Counts(0, 0, n) for n in (0, 0, 1, 0, 0)]
    assert scores.micro == Counts(2, 5, 4)
    assert scores.micro.prf() == pytest.approx({"p": 2 / 7, "r": 1 / 3, "f": 4 / 13})
    # D is in no reference, so the macro mean runs over A, B and C.
    assert scores.macro == pytest.approx(
        {"p": (1 / 3 + 1 / 3) / 3, "r": (1 / 2 + 1 / 3) / 3, "f": (2 / 5 + 1 / 3) / 3}
    )


def test_relaxed_counts_by_hand():
    scores = score_spans(DOCS, relaxed_match)
    assert scores.of_docs()[0] == Counts(2, 2, 2)  # (20, 25) now finds (20, 30)
    assert scores.micro == Counts(3, 4, 3)


def test_equal_counts_of_two_labels_are_summed_not_merged():
    docs = [([(0, 1, "A"), (2, 3, "B")], [(0, 1, "A"), (2, 3, "B")])]
    assert score_spans(docs).micro == Counts(2, 0, 0)


def test_nothing_at_all():
    scores = score_spans([])
    assert scores.micro == Counts(0, 0, 0)
    assert scores.micro.prf() == scores.macro == {"p": 0.0, "r": 0.0, "f": 0.0}


RELAXED = [
    ([(0, 10)], [(0, 4), (5, 10)], 1),  # one mention split in two: matched once
    ([(0, 4), (5, 10)], [(0, 10)], 1),
    ([(0, 4)], [(4, 8)], 0),  # adjacent is not overlapping
    ([(0, 10), (0, 5)], [(0, 10), (6, 10)], 2),  # exact pairs first would find only one
    ([(0, 10), (2, 4)], [(1, 3), (3, 12)], 2),  # nested
    ([(0, 5), (4, 9)], [(3, 6)], 1),  # tie
    ([], [(0, 1)], 0),
]


def test_relaxed_matching_by_hand():
    def spans(pairs):
        return {(start, end, "A") for start, end in pairs}

    for one, other, expected in RELAXED:
        assert relaxed_match(spans(one), spans(other)) == expected
        assert relaxed_match(spans(other), spans(one)) == expected


def largest_matching(reference, predicted):
    """All one-to-one assignments, tried one by one."""
    fewer, more = sorted((list(reference), list(predicted)), key=len)
    return max(
        sum(a[0] < b[1] and b[0] < a[1] for a, b in zip(fewer, chosen, strict=True))
        for chosen in itertools.permutations(more, len(fewer))
    )


def test_relaxed_matching_is_the_largest_one():
    rng = random.Random(0)

    def draw():
        starts = [rng.randrange(12) for _ in range(rng.randrange(6))]
        return {(start, start + rng.randint(1, 8), "A") for start in starts}

    for _ in range(300):
        reference, predicted = draw(), draw()
        matched = relaxed_match(reference, predicted)
        assert matched == largest_matching(reference, predicted)
        assert matched >= len(reference & predicted)


# -- the scorer ----------------------------------------------------------------------------------

VOCAB = Vocab()
WORDS = ["Fiebre", "y", "dolor", "lumbar", "."]  # 0-6, 7-8, 9-14, 15-21, 22-23


def make_doc(ents=(), missing=(), spans=None, gold=None, annotated=None):
    doc = Doc(VOCAB, words=WORDS)
    if ents is not None:
        doc.set_ents(
            [Span(doc, start, end, label=label) for start, end, label in ents],
            missing=[doc[i : i + 1] for i in missing],
        )
    for key, group in (spans or {}).items():
        doc.spans[key] = [Span(doc, start, end, label=label) for start, end, label in group]
    if gold is not None or annotated is not None:
        doc.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": gold or {}}
    if annotated is not None:
        doc.user_data[GOLD_KEY]["annotated"] = annotated
    return doc


def test_labels_that_were_not_annotated_are_not_scored():
    system = make_doc([(0, 1, "S"), (2, 4, "D"), (4, 5, "S")])
    expected = {"p": 0.5, "r": 1.0, "f": pytest.approx(2 / 3)}
    for reference in (  # with the offsets of a file or without, and with a span that contradicts
        make_doc([(0, 1, "S")], annotated={"ents": ["S", "X"]}),
        make_doc([(0, 1, "S")], gold={"ents": [[0, 6, "S", ""]]}, annotated={"ents": ("S",)}),
        make_doc([(0, 1, "S"), (1, 2, "D")], annotated={"ents": ["S"]}),
    ):
        result = score(reference, system)
        assert result["ents_per_type"] == {"S": expected}
        assert {key: result[f"ents_{key}"] for key in "prf"} == expected
    # A layer that is not listed is complete, and so is a Doc without the list.
    for annotated in ({"phi": ["S"]}, None):
        result = score(make_doc([(0, 1, "S")], annotated=annotated), system)
        assert result["ents_p"] == pytest.approx(1 / 3)
    nothing = score(make_doc([], annotated={"ents": []}), system)
    assert nothing["ents_per_type"] == {} and nothing["ents_f"] == 0


def test_documents_annotated_for_different_labels_count_together():
    """Two documents, one for S and one for D; the pipeline finds both in both."""
    system = [(0, 1, "S"), (2, 4, "D")]
    references = (
        make_doc([(0, 1, "S")], annotated={"ents": ["S"]}),
        make_doc([(2, 4, "D"), (4, 5, "D")], annotated={"ents": ["D"]}),
    )
    result = make_span_scorer()([Example(make_doc(system), doc) for doc in references])
    assert result["ents_per_type"]["S"] == {"p": 1.0, "r": 1.0, "f": 1.0}
    assert (result["ents_p"], result["ents_r"]) == (1.0, pytest.approx(2 / 3))


def score(reference, predicted, spans_key=None):
    scorer = make_span_scorer(spans_key=spans_key)
    return scorer([Example(predicted, reference)])


def test_registered_and_picklable():
    scorer = spacy.registry.resolve({"s": {"@scorers": "spacy-bioclin.span_scorer.v1"}})["s"]
    eg = Example(make_doc([(0, 1, "S")]), make_doc([(0, 1, "S"), (2, 4, "S")]))
    expected = {"p": 1.0, "r": 0.5, "f": pytest.approx(2 / 3)}
    result = pickle.loads(pickle.dumps(scorer))([eg])
    assert result == {
        "ents_p": 1.0,
        "ents_r": 0.5,
        "ents_f": pytest.approx(2 / 3),
        "ents_per_type": {"S": expected},
    }


def test_spans_key_has_spacys_keys():
    result = score(
        make_doc(spans={"phi": [(0, 1, "X"), (0, 3, "Y")]}),
        make_doc(spans={"phi": [(0, 1, "X")]}),
        spans_key="phi",
    )
    assert (result["spans_phi_p"], result["spans_phi_r"]) == (1.0, 0.5)
    assert result["spans_phi_per_type"]["Y"] == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert set(result) == {f"spans_phi_{key}" for key in ("p", "r", "f", "per_type")}


def test_corpus_offsets_come_before_snapped_spans():
    """The gold boundary inside a token was snapped in doc.ents: the score must not forgive it."""
    gold = {"ents": [[0, 5, "S", ""], [9, 21, "S", ""]]}
    snapped = make_doc([(0, 1, "S"), (2, 4, "S")], gold=gold)
    result = score(snapped, make_doc([(0, 1, "S"), (2, 4, "S")]))
    assert (result["ents_p"], result["ents_r"]) == (0.5, 0.5)


def test_unannotated_docs_are_left_out():
    unannotated, predicted = make_doc(ents=None), make_doc([(0, 1, "S")])
    assert score(unannotated, predicted) == dict.fromkeys(
        ("ents_p", "ents_r", "ents_f", "ents_per_type")
    )
    assert score(make_doc(), predicted, spans_key="phi")["spans_phi_f"] is None
    assert score(make_doc([]), predicted)["ents_p"] == 0.0  # annotated as empty: spurious
    pairs = [
        Example(predicted, unannotated),
        Example(make_doc([(0, 1, "S")]), make_doc([(0, 1, "S")])),
    ]
    assert make_span_scorer()(pairs)["ents_p"] == 1.0


def test_predictions_on_unannotated_tokens_do_not_count():
    reference = make_doc([(0, 1, "S")], missing=[3, 4])
    result = score(reference, make_doc([(0, 1, "S"), (2, 4, "S")]))  # touches token 3
    assert (result["ents_p"], result["ents_r"]) == (1.0, 1.0)
    result = score(reference, make_doc([(0, 1, "S"), (2, 3, "S")]))  # does not
    assert result["ents_p"] == 0.5


def test_nothing_is_changed():
    reference = make_doc([(0, 1, "S")], spans={"a": [(0, 1, "S")]}, gold={"ents": []})
    predicted = make_doc([(2, 3, "S")])
    before = reference.to_bytes(), predicted.to_bytes()
    score(reference, predicted)
    score(reference, predicted, spans_key="a")
    score(reference, predicted, spans_key="absent")
    assert (reference.to_bytes(), predicted.to_bytes()) == before


def test_empty_doc():
    nlp = spacy.blank("es")
    assert score(nlp.make_doc(""), nlp.make_doc(""))["ents_f"] == 0.0


def test_different_texts_are_an_error_without_their_text():
    other = Doc(VOCAB, words=["Garcia"])
    with pytest.raises(BioclinError, match=r"document d: .*different texts") as caught:
        compare(Example(other, make_doc([(0, 1, "S")], gold={})), None)
    assert "Fiebre" not in str(caught.value) and "Garcia" not in str(caught.value)
