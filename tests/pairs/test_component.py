"""`bioclin_pairs` in a pipeline: learning, predicting, storing, mistakes, other components."""

import json
import pickle

import pytest
import spacy
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

from spacy_bioclin.annotations.pairs import PAIR_KEY, Pair, make_pair
from spacy_bioclin.errors import BioclinError, BioclinWarning
from tests.trained import blank, train_on

ENCODER = {"@architectures": "spacy-bioclin.Encoder.v1", "precision": "fp32"}
# Neither text alone says whether a pair is a "yes".
PAIRS = [
    ("The patient was given metformin.", "metformin", "yes"),
    ("The patient was given amoxicilina.", "amoxicilina", "no"),
    ("The patient was given metformin.", "amoxicilina", "no"),
    ("The patient was given amoxicilina.", "metformin", "no"),
]


def make_nlp(encoder, **settings):
    nlp = blank("en")
    nlp.add_pipe("transformer", config={"model": {**ENCODER, "name": str(encoder)}})
    nlp.add_pipe("bioclin_pairs", name="pairs", config=settings)
    return nlp


def make_example(nlp, first, second, cats):
    reference = make_pair(nlp, first, second)
    reference.cats = cats
    return Example(make_pair(nlp, first, second), reference)


def make_examples(nlp):
    return [
        make_example(nlp, first, second, {name: float(name == label) for name in ("no", "yes")})
        for first, second, label in PAIRS
    ]


def make_graded(nlp):
    return [
        make_example(nlp, first, second, {"score": 300.0 if label == "yes" else 100.0})
        for first, second, label in PAIRS
    ]


def train(nlp, examples, steps=24, rate=2e-3):
    fix_random_seed(0)
    nlp.initialize(lambda: examples)
    optimizer = Adam(rate)
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
    return losses


@pytest.fixture(scope="module")
def trained(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    train(nlp, examples)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["pairs_acc"] == 1)
    return nlp


def test_it_learns_what_only_both_texts_show(trained):
    docs = list(trained.pipe(make_pair(trained, first, second) for first, second, _ in PAIRS))
    for doc, (first, second, label) in zip(docs, PAIRS, strict=True):
        found = doc._.pair
        assert isinstance(found, Pair)
        assert (found.first.text, found.second.text) == (first, second)
        assert found.label == label and found.score is None
        assert found.probabilities == doc.cats
        assert sum(doc.cats.values()) == pytest.approx(1.0)
    assert trained.evaluate(make_examples(trained))["pairs_acc"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [False, True])
def test_scores_are_learned_at_any_scale(tiny_encoder, tmp_path, hidden):
    nlp = make_nlp(tiny_encoder, objective="regression")
    model = {**nlp.config["components"]["pairs"]["model"], "hidden": hidden, "dropout": 0.0}
    nlp.remove_pipe("pairs")
    nlp.add_pipe("bioclin_pairs", name="pairs", config={"objective": "regression", "model": model})
    losses = train(nlp, make_graded(nlp), steps=200)
    assert nlp.get_pipe("pairs").scale == pytest.approx((150.0, 7500**0.5))
    assert losses["pairs"] < 0.2
    doc = nlp(make_pair(nlp, *PAIRS[0][:2]))
    assert doc._.pair.score == doc.cats["score"] and 200 < doc.cats["score"] < 400
    assert doc._.pair.label is None and doc._.pair.probabilities == {}
    scores = nlp.evaluate(make_graded(nlp))
    assert scores["pairs_pearson"] > 0.7 and scores["pairs_spearman"] > 0.7
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    assert loaded(make_pair(loaded, *PAIRS[0][:2])).cats == pytest.approx(doc.cats, rel=1e-5)


def test_store_and_load(trained, tmp_path):
    trained.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    again = blank("en").from_config(trained.config).from_bytes(trained.to_bytes())
    expected = trained(make_pair(trained, *PAIRS[0][:2])).cats
    for nlp in (loaded, again):
        doc = nlp(make_pair(nlp, *PAIRS[0][:2]))
        assert doc.cats == expected
        assert nlp.get_pipe("pairs").labels == ("no", "yes")
    copy = pickle.loads(pickle.dumps(doc))
    assert copy._.pair.label == "yes"
    with pytest.raises(BioclinError, match="was trained with another value"):
        spacy.load(tmp_path / "nlp", config={"components": {"pairs": {"objective": "regression"}}})
    cfg = tmp_path / "nlp" / "pairs" / "cfg"
    stored = json.loads(cfg.read_text())
    cfg.write_text(json.dumps({**stored, "labels": ["no", "perhaps", "yes"]}))
    with pytest.raises(BioclinError, match="3 labels, but the weights are for others"):
        again.get_pipe("pairs").from_disk(cfg.parent, exclude=["vocab"])
    cfg.unlink()
    with pytest.raises(BioclinError, match="has no file 'cfg'"):
        again.get_pipe("pairs").from_disk(cfg.parent, exclude=["vocab"])


def test_a_head_gets_an_encoder_of_its_own(trained, tmp_path):
    nlp = blank("en").from_config(trained.config).from_bytes(trained.to_bytes())
    expected = nlp(make_pair(nlp, *PAIRS[0][:2])).cats
    nlp.replace_listeners("transformer", "pairs", ["model.tok2vec"])
    nlp.remove_pipe("transformer")
    nlp.to_disk(tmp_path / "nlp")
    for one in (nlp, spacy.load(tmp_path / "nlp")):
        assert one(make_pair(one, *PAIRS[0][:2])).cats == pytest.approx(expected, rel=1e-4)


def test_a_doc_that_is_no_pair(trained):
    with pytest.raises(BioclinError, match=r"make_pair\(nlp, first, second\)"):
        trained("The patient was given metformin.")
    pairs = trained.get_pipe("pairs")
    pairs.cfg["require_pairs"] = False
    try:
        doc, pair = trained.pipe(["Metformin.", make_pair(trained, "It hurts.", "Pain?")])
    finally:
        pairs.cfg["require_pairs"] = True
    assert doc.cats == {} and doc._.pair is None
    assert pair._.pair.label in ("no", "yes")


def test_without_vectors(trained):
    doc = make_pair(trained, "It hurts.", "Pain?")
    with pytest.raises(BioclinError, match="cannot classify pairs: its encoder"):
        trained.get_pipe("pairs")(doc)


def test_what_is_not_annotated_is_not_learned(tiny_encoder):
    nlp = make_nlp(tiny_encoder, require_pairs=False)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    plain = nlp.make_doc("The patient was given metformin.")
    others = [
        Example(plain, nlp.make_doc(plain.text)),
        make_example(nlp, "It hurts.", "Pain?", {}),
    ]
    pairs = nlp.get_pipe("pairs")
    docs = [eg.predicted for eg in (*examples, *others)]
    for doc in docs:
        nlp.get_pipe("transformer").set_annotations(
            [doc], nlp.get_pipe("transformer").predict([doc])
        )
    scores = pairs.model.predict(docs)
    assert scores.shape == (5, 2)
    loss, gradient = pairs.get_loss([*examples, *others], scores)
    alone, _ = pairs.get_loss(examples, scores[:4])
    assert loss == pytest.approx(alone)
    assert gradient[4].tolist() == [0.0, 0.0] and bool((gradient[:4] != 0).all())
    losses = {}
    nlp.update(others, sgd=Adam(1e-3), losses=losses)  # nothing to learn: no error either
    nlp.update(others[:1], sgd=Adam(1e-3), losses=losses)
    assert losses["pairs"] == 0.0


def refuse(nlp, examples, match):
    with pytest.raises(BioclinError, match=match):
        nlp.initialize(lambda: examples)


def test_corpora_without_something_to_learn(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    plain = nlp.make_doc("The patient was given metformin.")
    refuse(nlp, [Example(plain, plain.copy())], "no training example is a pair of texts")
    bare = [make_example(nlp, "It hurts.", "Pain?", {})]
    refuse(nlp, bare, "no pair of the training corpus has doc.cats")
    half = make_examples(nlp)
    half[0].reference.user_data[PAIR_KEY] = len(half[0].reference) - 1
    refuse(nlp, half, "is no line break")
    one = [make_example(nlp, "It hurts.", "Pain?", {"yes": 1.0})]
    refuse(nlp, one, "needs two classes or more, and the training corpus has yes")
    both = [make_example(nlp, "It hurts.", "Pain?", {"yes": 1.0, "no": 1.0})]
    refuse(nlp, both, "a pair has one class, but in doc.cats are above 0: no, yes")
    refuse(nlp, make_graded(nlp), 'set objective to "regression"')


def test_a_pair_with_one_text(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    doc = spacy.tokens.Doc(nlp.vocab, words=["Pain", "\n"], spaces=[False, False])
    doc.user_data[PAIR_KEY] = 1
    doc.cats = {"yes": 1.0, "no": 0.0}
    refuse(nlp, [*make_examples(nlp), Example(doc.copy(), doc)], "the second text is empty")


def test_graded_corpora_without_something_to_learn(tiny_encoder):
    nlp = make_nlp(tiny_encoder, objective="regression")
    refuse(nlp, make_graded(nlp)[1:], "all pairs of the training corpus have the score 100")
    refuse(nlp, make_examples(nlp), 'set objective to "classification"')
    wrong = [make_example(nlp, "It hurts.", "Pain?", {"score": float("nan")})]
    refuse(nlp, wrong, "the score is nan")


def test_a_class_without_pairs_is_a_warning(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    examples[0].reference.cats["perhaps"] = 0.0
    with pytest.warns(BioclinWarning, match="has the class perhaps"):
        nlp.initialize(lambda: examples)
    assert nlp.get_pipe("pairs").labels == ("no", "perhaps", "yes")


def test_classes_that_were_given(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    pairs = nlp.get_pipe("pairs")
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    with pytest.raises(BioclinError, match="labels lacks no, of which there are pairs"):
        pairs.initialize(lambda: examples, nlp=nlp, labels=["yes", "perhaps"])
    with pytest.warns(BioclinWarning, match="perhaps"):
        pairs.initialize(lambda: examples, nlp=nlp, labels=["yes", "perhaps", "no"])
    assert pairs.label_data == ("no", "perhaps", "yes")


def test_a_class_that_training_lacked(trained):
    new = [make_example(trained, "It hurts.", "Pain?", {"perhaps": 1.0})]
    with pytest.raises(BioclinError, match="has the class 'perhaps', which the training corpus"):
        trained.update(new, sgd=Adam(1e-3))
    with pytest.raises(BioclinError, match="cannot add a label"):
        trained.get_pipe("pairs").add_label("perhaps")


def test_a_predicted_doc_that_is_no_pair(trained):
    reference = make_pair(trained, "It hurts.", "Pain?")
    reference.cats = {"yes": 1.0, "no": 0.0}
    eg = Example(trained.make_doc(reference.text), reference)
    with pytest.raises(BioclinError, match="the predicted Doc is not"):
        trained.update([eg], sgd=Adam(1e-3))


def test_unknown_objective():
    with pytest.raises(BioclinError, match="objective = 'ranking': want one of"):
        blank("en").add_pipe("bioclin_pairs", config={"objective": "ranking"})
