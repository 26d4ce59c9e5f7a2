"""Scores of pairs of texts, by hand."""

import spacy
from pytest import approx
from spacy.training import Example

from spacy_bioclin.annotations.pairs import make_pair
from spacy_bioclin.evaluation.pairs import make_pair_scorer

NLP = spacy.blank("en")
SCORE = make_pair_scorer()


def make_example(gold, found, pair=True):
    docs = []
    for cats in (found, gold):
        doc = make_pair(NLP, "It hurts.", "Pain?") if pair else NLP.make_doc("It hurts.")
        doc.cats = cats
        docs.append(doc)
    return Example(*docs)


def one(label):
    return {name: float(name == label) for name in ("no", "yes")}


def test_classes_by_hand():
    examples = [
        make_example(one("yes"), {"no": 0.2, "yes": 0.8}),
        make_example(one("yes"), {"no": 0.6, "yes": 0.4}),
        make_example(one("yes"), {"no": 0.3, "yes": 0.7}),
        make_example(one("no"), {"no": 0.9, "yes": 0.1}),
        make_example({}, {"no": 0.9, "yes": 0.1}),  # not annotated
        make_example(one("no"), {"no": 0.0, "yes": 1.0}, pair=False),
    ]
    scores = SCORE(examples)
    assert scores["pairs_acc"] == scores["pairs_micro_f"] == 3 / 4
    # no: tp 1, fp 1, fn 0; yes: tp 2, fp 0, fn 1.
    assert scores["pairs_per_type"] == {
        "no": {"p": 1 / 2, "r": 1.0, "f": 2 / 3},
        "yes": {"p": 1.0, "r": 2 / 3, "f": 4 / 5},
    }
    assert scores["pairs_macro_f"] == approx((2 / 3 + 4 / 5) / 2)


def test_categories_of_other_components_are_left_out():
    found = {"no": 0.2, "yes": 0.3, "urgent": 0.9}
    assert SCORE([make_example(one("yes"), found)], labels=["no", "yes"])["pairs_acc"] == 1.0
    assert SCORE([make_example(one("yes"), found)])["pairs_acc"] == 0.0


def test_a_component_that_has_not_run_scores_nothing():
    assert SCORE([make_example(one("yes"), {})])["pairs_acc"] == 0.0


def grade(pairs):
    examples = [make_example({"score": gold}, {"score": found}) for gold, found in pairs]
    return SCORE(examples, objective="regression")


def test_scores_by_hand():
    # Deviations: -1.5 -0.5 0.5 1.5 and -1 -1 0 2; covariance 5, squares 5 and 6.
    scores = grade([(0, 1), (1, 1), (2, 2), (3, 4)])
    assert scores["pairs_pearson"] == approx(5 / (5 * 6) ** 0.5)
    # Ranks 1 2 3 4 and 1.5 1.5 3 4.
    assert scores["pairs_spearman"] == approx(4.5 / (5 * 4.5) ** 0.5)


def test_correlations_that_are_not_defined_are_zero():
    zero = {"pairs_pearson": 0.0, "pairs_spearman": 0.0}
    assert grade([(0, 1), (1, 1)]) == zero
    assert grade([(1, 0), (1, 1)]) == zero
    assert grade([(1, 0)]) == zero
    assert SCORE([make_example({"score": 1.0}, {})] * 2, objective="regression") == zero


def test_nothing_annotated():
    assert set(SCORE([make_example({}, one("no"))]).values()) == {None}
    assert set(SCORE([], objective="regression").values()) == {None}
    # Graded pairs have no classes.
    assert set(SCORE([make_example({"score": 1.0}, one("no"))]).values()) == {None}
