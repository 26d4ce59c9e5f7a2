"""Which notes are chosen, worked out by hand."""

import numpy as np
import pytest

from spacy_bioclin.suggestions.selection import (
    make_word_vectors,
    select_notes,
    span_entropy,
    token_entropy,
)


def test_entropy_of_tokens_is_summed_over_layers_of_tags() -> None:
    sure, even = [1.0, 0.0], [0.5, 0.5]
    marginals = np.array([[sure, sure], [even, sure], [even, even]])
    log2 = np.log(2)
    assert token_entropy(marginals) == pytest.approx([0.0, log2, 2 * log2])


def test_entropy_of_spans_is_largest_for_one_half() -> None:
    assert span_entropy([]) == 0.0
    assert span_entropy([0.5, 0.5]) == pytest.approx(2 * np.log(2))
    assert span_entropy([1.0, 0.0]) == pytest.approx(0.0, abs=1e-6)


# Two clusters, at (±1, 0) around their mean; the second of the left one is a copy of the first.
VECTORS = np.array([[-1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])


def test_a_copy_of_a_chosen_note_is_worth_nothing() -> None:
    # 0 is the least sure. Its copy 1 is at distance 0; 2 and 3 are opposite, at distance 1, and 3
    # is less sure. After both clusters are covered, all scores are 0 and the first note is taken.
    chosen = select_notes(np.array([9.0, 8.0, 1.0, 2.0]), VECTORS, 3)
    assert [each.number for each in chosen] == [0, 3, 1]
    assert [each.distance for each in chosen] == [1.0, 1.0, 0.0]
    assert [each.uncertainty for each in chosen] == [9.0, 2.0, 8.0]


def test_what_is_like_an_annotated_note_comes_last() -> None:
    chosen = select_notes(np.array([9.0, 1.0]), VECTORS[[0, 2]], 2, annotated=VECTORS[[1]])
    assert [each.number for each in chosen] == [1, 0]


def test_uncertainty_decides_between_notes_at_the_same_distance() -> None:
    chosen = select_notes(np.array([1.0, 3.0, 2.0]), np.eye(3), 3)
    assert [each.number for each in chosen] == [1, 2, 0]
    # Vectors of three axes minus their mean: the cosine of two is -1/2, half the distance 3/4.
    assert [each.distance for each in chosen] == pytest.approx([1.0, 0.75, 0.75])


def test_more_notes_than_there_are() -> None:
    assert len(select_notes(np.array([1.0]), np.ones((1, 2)), 5)) == 1
    assert select_notes(np.zeros(0), np.zeros((0, 2)), 5) == []


def test_notes_of_which_nothing_is_unsure_are_still_chosen_once() -> None:
    chosen = select_notes(np.zeros(3), np.eye(3), 3)
    assert [each.number for each in chosen] == [0, 1, 2]


def test_word_vectors_weigh_rare_words() -> None:
    vectors = make_word_vectors(["tos fiebre", "tos", "tos tos", ""])
    tos, fiebre = np.log(5 / 4), np.log(5 / 2)  # in 3 and in 1 of 4 texts
    assert sorted(vectors[0][vectors[0] > 0]) == pytest.approx([tos, fiebre])
    assert vectors[2].sum() == pytest.approx(tos * (1 + np.log(2)))
    assert vectors[3].sum() == 0.0
