"""Scores of tags that agree for the same word of a note."""

import json

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner.model import TagScores
from spacy_bioclin.ner.pipe import GIVEN
from spacy_bioclin.ner.smoothing import number_words, smooth_words
from tests.ner.test_component import NOTES, make_nlp
from tests.trained import blank


def make_docs(*texts, lang="en"):
    vocab = blank(lang).vocab
    return [Doc(vocab, words=text.split()) for text in texts]


def make_scores(emissions, lengths):
    flat = torch.tensor(emissions, dtype=torch.float32)
    return TagScores(flat, torch.zeros(1, 2, 2), torch.zeros(1, 2), torch.zeros(1, 2), lengths)


def same(docs):
    """Which tokens have the number of an earlier one: pairs of texts, first and later."""
    numbers, words = number_words(docs), [token.text for doc in docs for token in doc]
    assert sorted(set(numbers.tolist())) == list(range(len(set(numbers.tolist()))))
    first = {}
    pairs = [(first.setdefault(n, word), word) for n, word in zip(numbers, words, strict=True)]
    return pairs, len(first)


def test_words_by_case_and_plural():
    pairs, n_words = same(make_docs("Tumor and TUMORS , tumor"))
    assert n_words == 3
    assert [one for one in pairs if one[0] != one[1]] == [("Tumor", "TUMORS"), ("Tumor", "tumor")]


def test_tokens_that_are_left_alone():
    texts = [
        "the cough the fever",  # stop words
        "5 mg 5 mg",  # no letters; short
        "2024 2024 --- ---",
        "loss los",  # not a plural
        "gas ga",
        "gas gass",
        "legs leg",  # four letters
    ]
    docs = make_docs(*texts)
    assert [doc.text for doc in docs if len(set(number_words([doc]))) != len(doc)] == []


def test_words_of_other_notes_are_other_words():
    numbers = number_words(make_docs("cough", "", "cough fever", "fever cough cough")).tolist()
    assert len(set(numbers)) == 5 and numbers[4] == numbers[5]
    assert number_words(make_docs("")).tolist() == []
    assert number_words([]).tolist() == []


def test_mean_by_hand():
    """Words 0, 1, 0: 0 and 2 move a quarter of the way to their mean, 1 stays."""
    scores = make_scores([[[4.0, 0.0]], [[7.0, 1.0]], [[0.0, 2.0]]], [3])
    smoothed = smooth_words(scores, np.array([0, 1, 0]), 0.25)
    assert smoothed.emissions.tolist() == [[[3.5, 0.25]], [[7.0, 1.0]], [[0.5, 1.75]]]
    assert scores.emissions.tolist()[0] == [[4.0, 0.0]]  # another tensor
    assert smoothed.transitions is scores.transitions and smoothed.lengths == [3]
    whole = smooth_words(scores, np.array([0, 1, 0]), 1.0).emissions.tolist()
    assert whole == [[[2.0, 1.0]], [[7.0, 1.0]], [[2.0, 1.0]]]


def test_members_of_an_ensemble_have_their_own_means():
    scores = [make_scores([[[4.0, 0.0]], [[0.0, 2.0]]], [2]), make_scores([[[1.0]], [[3.0]]], [2])]
    first, second = smooth_words(scores, np.array([0, 0]), 1.0)
    assert first.emissions.tolist() == [[[2.0, 1.0]]] * 2
    assert second.emissions.tolist() == [[[2.0]]] * 2


def test_a_word_that_occurs_once_keeps_its_scores_to_the_last_digit():
    emissions = np.random.default_rng(0).normal(size=(50, 2, 9)).astype("f")
    scores = make_scores(emissions, [50])
    smoothed = smooth_words(scores, np.arange(50), 0.4)
    assert torch.equal(smoothed.emissions, scores.emissions)


@pytest.fixture
def trained(tagger):
    return spacy.load(tagger, config={"components.ner.word_smoothing": 0.4})


def find(nlp, texts):
    return [
        [(ent.text, ent.label_, round(ent._.probability, 4)) for ent in doc.ents]
        for doc in nlp.pipe(texts)
    ]


def test_in_a_pipeline(trained, tmp_path):
    """Entities depend on the words of their note alone; the setting is stored, and can be given
    when loading."""
    texts = [text for text, _ in NOTES]
    repeated = " ".join(texts * 2).replace("tos", "neumonía")
    smoothed = find(trained, [*texts, repeated])
    assert find(trained, [repeated]) == smoothed[3:]
    trained.to_disk(tmp_path / "model")
    assert find(spacy.load(tmp_path / "model"), [repeated]) == smoothed[3:]
    none = spacy.load(tmp_path / "model", config={"components.ner.word_smoothing": 0.0})
    plain = find(none, [*texts, repeated])
    assert plain[:3] == smoothed[:3]  # no word occurs twice
    assert plain[3] != smoothed[3]
    ner = trained.get_pipe("ner")  # a teacher says what it would find
    docs = list(trained.pipe([repeated]))
    [taught], ner.cfg["word_smoothing"] = ner.get_marginals(docs, temperature=1.0), 0.0
    assert not np.array_equal(taught, ner.get_marginals(docs, temperature=1.0)[0])


def test_pipelines_from_before_can_have_it(trained, tmp_path):
    """Their files state nothing: they annotate as before, unless it is asked for."""
    old = tmp_path / "old"
    trained.to_disk(old)
    config, cfg = old / "config.cfg", old / "ner" / "cfg"
    text = config.read_text("utf-8").replace("word_smoothing = 0.4\n", "")
    config.write_text(text, "utf-8")
    stored = json.loads(cfg.read_text("utf-8"))
    del stored["word_smoothing"]
    stored[GIVEN].pop("word_smoothing", None)
    cfg.write_text(json.dumps(stored), "utf-8")
    assert "word_smoothing" not in text + cfg.read_text("utf-8")
    assert spacy.load(old).get_pipe("ner").cfg["word_smoothing"] == 0.0
    nlp = spacy.load(old, config={"components.ner.word_smoothing": 0.4})
    assert nlp.get_pipe("ner").cfg["word_smoothing"] == 0.4


def test_bad_amounts(tiny_encoder):
    for value in (-0.1, 1.5):
        with pytest.raises(BioclinError, match="word_smoothing"):
            make_nlp(tiny_encoder, word_smoothing=value)
