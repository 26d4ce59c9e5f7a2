"""Scores of categories, by hand and against spaCy's."""

import math

import pytest
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.categories import (
    accuracy,
    choose_labels,
    correlate,
    count_labels,
    example_based,
    score_categories,
    unite_labels,
)
from spacy_bioclin.evaluation.spans import Counts

# right; one of two found; one missed and one too many; nothing to find; nothing found; both empty
GOLD = [{"A"}, {"A", "B"}, {"B", "C"}, set(), {"C"}, set()]
FOUND = [{"A"}, {"A"}, {"B", "D"}, {"A"}, set(), set()]


def test_counts_by_hand() -> None:
    scores = count_labels(GOLD, FOUND)
    assert scores.per_label == {
        "A": Counts(2, 1, 0),
        "B": Counts(1, 0, 1),
        "C": Counts(0, 0, 2),
        "D": Counts(0, 1, 0),
    }
    assert scores.micro == Counts(3, 2, 3)
    assert scores.micro.prf() == pytest.approx({"p": 3 / 5, "r": 3 / 6, "f": 6 / 11})
    # D is in no reference: F1 of A is 4/5, of B 2/3, of C 0
    assert scores.macro == pytest.approx(
        {"p": (2 / 3 + 1 + 0) / 3, "r": (1 + 1 / 2 + 0) / 3, "f": (4 / 5 + 2 / 3) / 3}
    )
    assert accuracy(GOLD, FOUND) == 2 / 6
    assert accuracy([], []) == 0.0
    assert count_labels([], []).micro.f1 == 0.0
    with pytest.raises(ValueError):
        count_labels(GOLD, FOUND[:-1])


def test_example_based_by_hand() -> None:
    # precision 1, 1, 1/2, 0, 0, 1; recall 1, 1/2, 1/2, 0, 0, 1
    p, r = 3.5 / 6, 3 / 6
    expected = {"p": p, "r": r, "f": 2 * p * r / (p + r)}
    assert example_based(GOLD, FOUND) == pytest.approx(expected)
    assert example_based([{"A"}], [{"B"}]) == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert example_based([], []) == {"p": 0.0, "r": 0.0, "f": 0.0}
    # F1 of the means, 0.8, not the mean of F1, (1 + 2/3) / 2
    assert example_based([{"A"}, {"A", "B", "C"}], [{"A"}, {"A"}])["f"] == pytest.approx(0.8)


def test_labels_of_documents_are_those_of_their_sentences() -> None:
    documents = ["7", "7", "9", "7", "4"]
    sentences = [{"A"}, set(), {"B"}, {"A", "C"}, set()]
    united = unite_labels(documents, sentences)
    assert united == {"7": {"A", "C"}, "9": {"B"}, "4": set()}
    assert list(united) == ["7", "9", "4"]


def test_labels_are_chosen() -> None:
    cats = {"A": 0.4, "B": 0.5, "C": 0.5}
    assert choose_labels(cats, exclusive=False) == {"B", "C"}
    assert choose_labels(cats, threshold=0.6, exclusive=False) == set()
    assert choose_labels(cats, exclusive=True) == {"B"}  # a tie: the first
    assert choose_labels({"A": 0.1, "B": 0.0}, exclusive=True) == {"A"}  # no threshold
    assert choose_labels({}, exclusive=True) == choose_labels({}, exclusive=False) == set()


def test_exclusive_categories() -> None:
    gold = [{"A": 1.0, "B": 0.0}, {"A": 1.0, "B": 0.0}, {"A": 0.0, "B": 1.0}, {}]
    found = [{"A": 0.5, "B": 0.5}, {"A": 0.2, "B": 0.3}, {"A": 0.1, "B": 0.9}, {"A": 1.0}]
    scores = score_categories(gold, found, exclusive=True)
    assert scores["docs"] == 3  # the last was not annotated
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["micro"]["f"] == pytest.approx(2 / 3)
    assert scores["per_type"]["A"]["f"] == pytest.approx(2 / 3)
    assert scores["per_type"]["B"]["p"] == pytest.approx(1 / 2)
    assert scores["macro"]["f"] == pytest.approx(2 / 3)


def test_labels_that_were_not_annotated_are_left_out() -> None:
    gold = [{"A": 1.0}, {"A": 0.0, "B": 1.0}, {"C": 1.0}]
    found = [{"A": 0.9, "B": 0.9}, {"A": 0.9, "B": 0.1}, {"A": 0.9, "B": 0.9}]
    scores = score_categories(gold, found, exclusive=False)
    counts = {label: (s["tp"], s["fp"], s["fn"]) for label, s in scores["per_type"].items()}
    # C is annotated, but the pipeline does not have it
    assert counts == {"A": (1, 1, 0), "B": (0, 0, 1), "C": (0, 0, 1)}
    assert score_categories([], [], exclusive=False)["micro"]["f"] == 0.0


def test_micro_scores_are_those_of_spacy() -> None:
    gold = [{"A": 1.0, "B": 0.0, "C": 1.0}, {"A": 0.0, "B": 1.0, "C": 0.0}, {"A": 1.0, "B": 1.0}]
    found = [{"A": 0.7, "B": 0.5, "C": 0.4}, {"A": 0.1, "B": 0.9, "C": 0.6}, {"B": 0.8, "C": 0.9}]
    vocab = Vocab()
    examples = []
    for reference, prediction in zip(gold, found, strict=True):
        docs = Doc(vocab, words=["x"]), Doc(vocab, words=["x"])
        docs[0].cats, docs[1].cats = prediction, reference
        examples.append(Example(*docs))
    spacy_scores = Scorer.score_cats(examples, "cats", labels=["A", "B", "C"], multi_label=True)
    scores = score_categories(gold, found, exclusive=False)
    for key in "prf":
        assert scores["micro"][key] == pytest.approx(spacy_scores[f"cats_micro_{key}"])
        assert scores["macro"][key] == pytest.approx(spacy_scores[f"cats_macro_{key}"])


def test_correlations_by_hand() -> None:
    # deviations -1, 0, 1 and -3, 1, 2: 5 / sqrt(2 * 14); ranks 1, 2, 3 and 1, 2, 3
    found = correlate([1.0, 2.0, 3.0], [0.0, 4.0, 5.0])
    assert found["pearson"] == pytest.approx(5 / math.sqrt(28))
    assert found["spearman"] == pytest.approx(1.0)
    # Ranks with a tie are 1, 2.5, 2.5 and 1, 2, 3: deviations -1, .5, .5 and -1, 0, 1.
    tied = correlate([0.0, 4.0, 4.0], [1.0, 2.0, 9.0])
    assert tied["spearman"] == pytest.approx(1.5 / math.sqrt(1.5 * 2))
    assert correlate([1.0, 2.0], [5.0, 4.0]) == pytest.approx({"pearson": -1.0, "spearman": -1.0})


UNDEFINED = [([], []), ([1.0], [2.0]), ([1.0, 1.0], [1.0, 2.0]), ([1.0, 2.0], [3.0, 3.0])]


def test_correlations_that_are_not_defined() -> None:
    none = {"pearson": None, "spearman": None}
    assert [correlate(gold, found) for gold, found in UNDEFINED] == [none] * len(UNDEFINED)
    assert correlate([1.0, 2.0], [math.nan, 3.0]) == none
    with pytest.raises(BioclinError, match="3 scores to compare with, but 2"):
        correlate([1.0, 2.0, 3.0], [1.0, 2.0])
