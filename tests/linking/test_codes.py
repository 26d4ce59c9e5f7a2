"""Codes that are composed of a stem and a qualifier."""

import numpy as np
import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.codes import (
    NO_QUALIFIER,
    NO_STEM,
    CodeClassifier,
    CodeFinder,
    are_codes,
    hash_parts,
    split_code,
)
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept

STEMS, QUALIFIERS = ["8140", "8500"], ["3", "6"]
# Rows 0 to 5 of the knowledge base; 8720 and 1 are in no training mention.
CODES = ("8140/3", "8140/6", "8500/3", "8500/6", "8720/1", "8720/3")


def make_kb(folder, *ids):
    return build_kb([Concept(id, f"name {id}", "es") for id in ids], folder)


@pytest.fixture
def kb(tmp_path):
    return make_kb(tmp_path / "kb", *CODES)


def make_classifier(words=(), **changes):
    """The first number of a word says whether it means 8140, the second whether it means 6."""
    vectors = {hash_parts(word)[0]: vector for word, vector in words}
    weights = {
        "words": np.array([vectors[part] for part in sorted(vectors)]).reshape(-1, 2),
        "stems": np.array([[4.0, 0.0], [-4.0, 0.0]]),
        "stem_bias": np.zeros(2),
        "qualifiers": np.array([[0.0, -4.0], [0.0, 4.0]]),
        "qualifier_bias": np.zeros(2),
        "usual": np.zeros((2, 2)),
    }
    parts = changes.pop("parts", sorted(vectors))
    return CodeClassifier(STEMS, QUALIFIERS, parts, {**weights, **changes})


WORDS = (("adenocarcinoma", (1, 0)), ("ductal", (-1, 0)), ("metastasis", (0, 1)), ("in", (0, -1)))


SPLIT = [
    ("8140/32", ("8140", "32")),
    ("8120/34/H", ("8120", "34/H")),
    ("D003920", ("D003920", "")),
    ("DOID:10763", ("DOID:10763", "")),
    ("http://purl.org/x/D1", ("http://purl.org/x/D1", "")),
    ("8140/", ("8140/", "")),
    ("/3", ("/3", "")),
    ("a b/3", ("a b/3", "")),
]


def test_split():
    assert {id: split_code(id) for id, _ in SPLIT} == dict(SPLIT)


def test_only_shared_qualifiers_are_qualifiers(tmp_path):
    """A hospital's "LAB/1", "LAB/2" have one stem, and MeSH's ids none."""
    assert not are_codes(make_kb(tmp_path / "even", "8140/3", "8500/6"))
    assert not are_codes(make_kb(tmp_path / "own", "LAB/1", "LAB/2", "LAB/3"))
    assert not are_codes(make_kb(tmp_path / "mesh", "D1", "D2"))
    assert are_codes(make_kb(tmp_path / "three", *CODES, "8000/3", "8000/6"))


def test_parts_of_a_text():
    one, two = hash_parts("Metástasis de melanoma"), hash_parts("metastasis  de MELANOMA")
    assert one == two and all(0 <= part < 2**32 for part in one)
    assert len(one) == 3 + 2 + len("<metastasis>") - 3 + len("<de>") - 3 + len("<melanoma>") - 3
    assert hash_parts("") == ()


def test_a_classifier_reads_both_parts():
    classifier = make_classifier(WORDS)
    for text, stem, qualifier in [
        ("adenocarcinoma in", 0, 0),
        ("metástasis: ductal", 1, 1),
        ("metástasis: adenocarcinoma", 0, 1),
    ]:
        reading = classifier(text)
        assert reading.stems.argmax() == stem and reading.qualifiers.argmax() == qualifier
        assert np.isclose(np.exp(reading.stems).sum(), 1)
    assert np.allclose(classifier("").stems, np.log(0.5))


def test_a_finder_proposes_codes_that_no_mention_had(kb):
    finder = CodeFinder(kb, {None: make_classifier(WORDS)})
    readings = finder.read(["metástasis ductal", "adenocarcinoma in", ""], [None] * 3)
    rows, concepts = np.array([0, 2]), np.array([0, 4])  # found otherwise: 8140/3, and 8720/1
    texts, codes = finder.propose(readings, rows, concepts, np.array([0.9, 0.2], np.float32))
    found = {i: {CODES[c] for c in codes[texts == i]} for i in range(3)}
    known = {"8140/3", "8140/6", "8500/3", "8500/6"}
    # A qualifier that no mention had is not proposed, a stem that none had is.
    assert found == {0: known, 1: known, 2: {"8720/3"}}


def test_a_text_of_unknown_words_has_no_stems_of_words(kb):
    """Bias alone would propose the same stems for every such text."""
    finder = CodeFinder(kb, {None: make_classifier(WORDS)})
    readings = finder.read(["HTA", "🙂", "", "HTA ductal"], [None] * 4)
    assert [reading.is_known for reading in readings] == [False, False, False, True]
    none = np.zeros(0, np.int64)
    texts, codes = finder.propose(readings, none, none, np.zeros(0, np.float32))
    assert set(texts.tolist()) == {3}
    assert {CODES[c] for c in codes} == {"8140/3", "8140/6", "8500/3", "8500/6"}
    texts, codes = finder.propose(readings[:3], none, none, np.zeros(0, np.float32))
    assert texts.tolist() == codes.tolist() == []


def test_how_well_codes_fit(kb):
    finder = CodeFinder(kb, {None: make_classifier(WORDS)})
    readings = finder.read(["nothing", "metástasis ductal"], [None] * 2)
    rows, concepts = np.ones(6, np.int64), np.arange(6)
    similar = np.array([[0.1], [0.9], [0.2], [0.0], [0.3], [0.4]], np.float32)
    out = finder.describe(readings, rows, concepts, similar)
    stem, stem_gap, qualifier, qualifier_gap, highest = out.T
    assert stem.argmax() == 2 and np.allclose(stem[4:], NO_STEM)
    assert np.allclose(stem_gap, stem.max() - stem)
    assert qualifier[3] == qualifier[1] > qualifier[0] and qualifier[4] == NO_QUALIFIER
    assert np.allclose(qualifier_gap[[1, 3]], 0) and (qualifier_gap[[0, 2, 4]] > 1).all()
    assert np.allclose(highest, [0.9, 0.9, 0.2, 0.2, 0.4, 0.4])


def test_a_stem_has_its_usual_qualifiers(kb):
    usual = np.array([[0.0, 3.0], [3.0, 0.0]])
    finder = CodeFinder(kb, {None: make_classifier(WORDS, usual=usual)})
    (reading,) = finder.read(["x"], [None])
    out = finder.describe([reading], np.zeros(6, np.int64), np.arange(6), np.zeros((6, 0)))
    assert out[1, 2] > out[0, 2] and out[2, 2] > out[3, 2]
    assert np.isclose(out[5, 2], np.log(0.5))  # an unknown stem


def test_folds_have_their_own_classifiers(kb):
    finder = CodeFinder(kb, {None: make_classifier(WORDS), 3: make_classifier()})
    all_seen, without = finder.read(["adenocarcinoma"] * 2, [None, 3])
    assert all_seen.stems.argmax() == 0 and np.allclose(without.stems, np.log(0.5))


def test_bytes_are_the_same_classifier(kb):
    classifier = make_classifier(WORDS)
    again = CodeClassifier.from_bytes(classifier.to_bytes())
    assert (again.stems, again.qualifiers) == (STEMS, QUALIFIERS)
    assert again.to_bytes() == classifier.to_bytes()
    assert (again("metástasis ductal").stems == classifier("metástasis ductal").stems).all()


DAMAGE = [
    lambda data: b"",
    lambda data: data[:100],
    lambda data: data[:-1],
    lambda data: b"\xff" * 8 + data[8:],
    lambda data: data.replace(b'[\\"3\\", \\"6\\"]', b'[\\"3\\",      6 ]'),
    lambda data: data.replace(b'[\\"3\\", \\"6\\"]', b'[\\"3\\"       ]'),
    lambda data: data.replace(b'[\\"3\\", \\"6\\"]', b"              "),
    lambda data: data.replace(b"__metadata__", b"__mettadata_"),
    lambda data: make_classifier(stems=np.full((2, 2), np.nan)).to_bytes(),
    lambda data: make_classifier(stems=np.zeros((2, 3))).to_bytes(),
    lambda data: make_classifier(usual=np.zeros((2, 3))).to_bytes(),
    lambda data: make_classifier(WORDS, parts=[1, 2, 3]).to_bytes(),
    lambda data: make_classifier(WORDS, parts=[1, 3, 2, 4]).to_bytes(),
]


def test_damaged_bytes():
    whole = make_classifier(WORDS).to_bytes()
    for damage in DAMAGE:
        damaged = damage(whole)
        assert damaged != whole
        with pytest.raises(BioclinError, match=r"codes\.safetensors is damaged"):
            CodeClassifier.from_bytes(damaged)
