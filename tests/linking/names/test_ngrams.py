"""The index of similar names beside a TF-IDF cosine that is written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.names.ngrams import NgramIndex, build_arrays, word_grams

KEYS = ["cancer mama", "cancer pulmon", "mama", "cancer mama metastasico", "insuficiencia renal"]
WORDS = st.sampled_from(["cancer", "cancers", "canal", "renal", "mama", "mami", "a", "ab", "b12"])
NAMES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


def vectors(texts, grams, idf, unknown):
    """(n_texts, n_grams + rest): idf of each trigram, once for each word that holds it; trigrams
    that no name holds lengthen a vector, in columns of their own."""
    others = sorted({g for t in texts for w in t.split(" ") for g in word_grams(w)} - set(grams))
    column = {gram: i for i, gram in enumerate([*grams, *others])}
    found = np.zeros((len(texts), len(column)))
    for i, text in enumerate(texts):
        for word in text.split(" "):
            for gram in word_grams(word):
                j = column[gram]
                found[i, j] += idf[j] if j < len(grams) else unknown
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def cosines(keys, texts):
    """Weights as the index has them; a trigram's rarity counts the words of names that hold it."""
    held = [[g for word in key.split(" ") for g in word_grams(word)] for key in keys]
    grams = sorted({g for found in held for g in found})
    counts = [sum(found.count(gram) for found in held) for gram in grams]
    idf = [np.log(max(len(keys) / n, 1)) + 1 for n in counts]
    unknown = np.log(len(keys)) + 1
    names, asked = (vectors(t, grams, idf, unknown)[:, : len(grams)] for t in (keys, texts))
    return asked @ names.T


def exact_index(keys):
    return NgramIndex(build_arrays(keys), n_similar=10**6, min_similar=0)


@settings(max_examples=30, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=12, unique=True), st.lists(NAMES, min_size=1))
def test_exact_cosines(keys, texts):
    found, scores = exact_index(keys).search(texts, len(keys))
    wanted = cosines(keys, texts)
    for i in range(len(texts)):
        there = found[i] >= 0
        assert len(set(found[i][there])) == there.sum()
        np.testing.assert_allclose(scores[i][there], wanted[i][found[i][there]], atol=1e-5)
        missing = np.setdiff1d(np.arange(len(keys)), found[i][there])
        assert (wanted[i][missing] < 1e-6).all()
        assert (np.diff(scores[i][there]) <= 0).all()


def test_the_default_index_finds_a_name_by_itself_and_by_a_slip():
    index = NgramIndex(build_arrays(KEYS))
    found, scores = index.search([*KEYS, "canser mama", "insuficiensia renal"], 1)
    assert found[:, 0].tolist() == [0, 1, 2, 3, 4, 0, 4]
    np.testing.assert_allclose(scores[:5, 0], 1, atol=1e-6)
    assert (scores[5:, 0] < 1).all()


def test_order_of_words_does_not_count():
    found, scores = NgramIndex(build_arrays(KEYS)).search(["mama cancer"], 1)
    assert found[0, 0] == 0 and scores[0, 0] == pytest.approx(1)


def test_ties_go_to_the_lower_number():
    keys = ["zeta alfa", "alfa beta", "beta alfa", "alfa zeta"]
    found, scores = NgramIndex(build_arrays(keys)).search(["beta alfa", "zeta alfa"], 2)
    assert found.tolist() == [[1, 2], [0, 3]]
    np.testing.assert_allclose(scores, 1, atol=1e-6)


def test_unknown_words_and_no_words():
    index = NgramIndex(build_arrays(KEYS))
    found, scores = index.search(["xyzzy", "", "mama xyzzy"], 3)
    assert (found[:2] == -1).all() and (scores[:2] == 0).all()
    assert found[2, 0] == 2 and 0.3 < scores[2, 0] < 0.9
    assert index.search([], 3)[0].shape == (0, 3)


def test_more_results_than_names_are_padded():
    found, scores = NgramIndex(build_arrays(["mama"])).search(["mama"], 4)
    assert found.tolist() == [[0, -1, -1, -1]]
    np.testing.assert_allclose(scores, [[1, 0, 0, 0]], atol=1e-6)


def test_batches_do_not_matter(monkeypatch):
    texts = [*KEYS, "cancer renal", "mama", "pulmones", "nada"]
    whole = NgramIndex(build_arrays(KEYS)).search(texts, 3)
    monkeypatch.setattr("spacy_bioclin.linking.names.ngrams.BATCH", 2)
    monkeypatch.setattr("spacy_bioclin.linking.names.ngrams.MAX_REMEMBERED", 3)
    parts = NgramIndex(build_arrays(KEYS)).search(texts, 3)
    reverse = NgramIndex(build_arrays(KEYS)).search(texts[::-1], 3)
    for a, b, c in zip(whole, parts, reverse, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c[::-1])


def test_no_names():
    with pytest.raises(BioclinError, match="no name"):
        build_arrays([])
