"""`bioclin_ner` in a pipeline: learning, layers, masking, storing, living beside spaCy's heads."""

import weakref

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner.gold import make_gold_tags
from spacy_bioclin.ner.tags import MISSING
from tests.trained import blank, train_on

NOTES = [
    ("Paciente con neumonía tratado con amoxicilina.", [(13, 21, "PROBLEM"), (34, 45, "DRUG")]),
    ("Sufre tos y diabetes mellitus tipo 2.", [(6, 9, "PROBLEM"), (12, 36, "PROBLEM")]),
    ("Sin fiebre.", []),
]
# In fp32, whatever the processor is good at.
ENCODER = {
    "@architectures": "spacy-bioclin.Encoder.v1",
    "window": 32,
    "stride": 24,
    "precision": "fp32",
}
LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
}


def make_nlp(encoder, **settings):
    nlp = blank("es")
    nlp.add_pipe("transformer", config={"model": {**ENCODER, "name": str(encoder)}})
    nlp.add_pipe("bioclin_ner", name="ner", config=settings)
    return nlp


def make_examples(nlp, spans_key=None):
    examples = []
    for text, spans in NOTES:
        doc = nlp.make_doc(text)
        found = [doc.char_span(start, end, label=label) for start, end, label in spans]
        if spans_key is None:
            doc.set_ents(found, default="outside")
        else:
            doc.spans[spans_key] = found
        examples.append(Example(nlp.make_doc(text), doc))
    return examples


def train(nlp, examples, steps=12, rate=5e-3, seed=0):
    fix_random_seed(seed)
    nlp.initialize(lambda: examples)
    optimizer = Adam(rate)
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)


def ents_of(doc):
    return [(e.start, e.end, e.label_) for e in doc.ents]


@pytest.mark.parametrize(
    ("architecture", "scheme"), [("LinearTagger", "BIO"), ("CrfTagger", "BILUO")]
)
def test_learns_stores_and_loads(tiny_encoder, tmp_path, architecture, scheme):
    model = {
        "@architectures": f"spacy-bioclin.{architecture}.v1",
        "dropout": 0.0,
        "learn_rate_scale": 10.0,
        "tok2vec": LISTENER,
    }
    nlp = make_nlp(tiny_encoder, model=model, scheme=scheme)
    examples = make_examples(nlp)
    train(nlp, examples)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["ents_f"] == 1)
    doc = nlp(NOTES[0][0])
    nlp.to_disk(tmp_path / "pipeline")
    blank = make_nlp(tiny_encoder, model=model, scheme=scheme)
    for again in (spacy.load(tmp_path / "pipeline"), blank.from_bytes(nlp.to_bytes())):
        other = again(NOTES[0][0])
        assert ents_of(other) == ents_of(doc)
        for one, two in zip(doc.ents, other.ents, strict=True):
            assert 0.5 < one._.probability <= 1.0
            assert one._.probability == two._.probability
    kept = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (stored,) = DocBin().from_bytes(kept).get_docs(nlp.vocab)
    assert stored.ents[0]._.probability == doc.ents[0]._.probability


def test_nested_labels_overlap_in_a_span_group(tiny_encoder):
    text = "Carcinoma de mama derecha."
    spans = [(0, 17, "PROBLEM"), (13, 17, "SITE"), (13, 25, "SITE2")]
    nlp = make_nlp(tiny_encoder, spans_key="all", nested=True)
    doc = nlp.make_doc(text)
    doc.spans["all"] = [doc.char_span(s, e, label=label) for s, e, label in spans]
    examples = [Example(nlp.make_doc(text), doc)]
    train(nlp, examples)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["spans_all_f"] == 1)
    found = nlp(text)
    group = found.spans["all"]
    assert sorted((s.start_char, s.end_char, s.label_) for s in group) == sorted(spans)
    assert len(group.attrs["scores"]) == 3
    assert not found.ents


@pytest.fixture(scope="module")
def layered(tiny_encoder):
    """A pipeline whose spans are in doc.spans["phi"]."""
    nlp = make_nlp(tiny_encoder, spans_key="phi")
    train(nlp, make_examples(nlp, "phi"))
    train_on(
        nlp,
        make_examples(nlp, "phi"),
        lambda: nlp.evaluate(make_examples(nlp, "phi"))["spans_phi_f"] == 1,
    )
    nlp.get_pipe("ner").cfg["doubtful_from"] = 0.0
    return nlp


def test_another_layer_is_learned_written_and_scored(layered, monkeypatch):
    monkeypatch.setitem(layered.get_pipe("ner").cfg, "doubtful_from", None)
    assert layered.evaluate(make_examples(layered, "phi"))["spans_phi_f"] == 1.0
    doc = layered(NOTES[0][0])
    assert [span.text for span in doc.spans["phi"]] == ["neumonía", "amoxicilina"]
    assert not doc.ents


def test_what_the_tags_leave_out_is_written_on_request(layered, tmp_path, monkeypatch):
    text = NOTES[0][0]
    layered.to_disk(tmp_path / "nlp")
    doc = spacy.load(tmp_path / "nlp")(text)
    doubtful = [span for span in doc.spans["phi"] if span.id_ == "doubtful"]
    sure = [span for span in doc.spans["phi"] if not span.id_]
    covered = sorted(token.i for span in doubtful + sure for token in span)
    assert doubtful and covered == list(range(len(doc)))  # everything, once
    scores = dict(zip(doc.spans["phi"], doc.spans["phi"].attrs["scores"], strict=True))
    marginals = layered.get_pipe("ner").get_marginals([layered(text)], temperature=1.0)[0]
    for span in doubtful:
        inside = 1 - marginals[span.start : span.end, 0, 0].astype(float)
        assert scores[span] == pytest.approx(inside.max(), abs=2e-3)
    monkeypatch.setitem(layered.get_pipe("ner").cfg, "doubtful_from", None)
    without = layered(text)
    assert [(s.start, s.end) for s in without.spans["phi"]] == [(s.start, s.end) for s in sure]


def test_what_is_not_annotated_is_masked(tiny_encoder):
    """Tokens without annotation, other tasks' Docs and broken boundaries teach nothing."""
    nlp = make_nlp(tiny_encoder)
    nlp.initialize(lambda: make_examples(nlp))
    ner = nlp.get_pipe("ner")
    words = ["tos", "y", "neumonía", "grave"]

    def tags(reference, predicted=None):
        eg = Example(predicted or Doc(nlp.vocab, words=words), reference)
        return make_gold_tags(eg, ner.tag_sets, ner.spans_key)[:, 0].tolist()

    nothing = Doc(nlp.vocab, words=words)
    assert tags(nothing) == [MISSING] * 4
    partly = Doc(nlp.vocab, words=words)
    partly.set_ents([Span(partly, 0, 1, "DRUG")], missing=[partly[2:4]], default="outside")
    unit = ner.tag_sets[0].tags.index("U-DRUG")
    assert tags(partly) == [unit, 0, MISSING, MISSING]
    whole = Doc(nlp.vocab, words=["tos", "y", "neumonía", "grave"])
    whole.set_ents([Span(whole, 2, 3, "PROBLEM")], default="outside")
    coarse = Doc(nlp.vocab, words=["tos", "y", "neumonía grave"])
    assert tags(whole, coarse) == [0, 0, MISSING]

    scores = ner.model.predict([nothing])
    loss, gradient = ner.get_loss([Example(Doc(nlp.vocab, words=words), nothing)], scores)
    assert loss == pytest.approx(0.0, abs=1e-9)
    assert np.abs(gradient.emissions.numpy()).max() <= 1e-9


def test_a_batch_without_tokens_is_no_error(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    train(nlp, examples, steps=1)
    empty = Example(nlp.make_doc(""), nlp.make_doc(""))
    blank = Example(nlp.make_doc("   "), nlp.make_doc("   "))
    nlp.update([empty], sgd=Adam(1e-3))
    nlp.update([blank, empty, examples[0]], sgd=Adam(1e-3))
    assert [len(doc.ents) for doc in nlp.pipe(["", "  ", "\n"])] == [0, 0, 0]


def test_optimizer_step_of_update_uses_the_batch_that_it_saw(tiny_encoder):
    """`nlp.update(sgd=…)` asks for the encoder's step before the head's backward pass."""
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    weights = nlp.get_pipe("transformer").model.shim.module.transformer.encoder.layer[0]
    before = weights.output.dense.weight.detach().clone()
    nlp.update(examples, sgd=Adam(1e-3))
    assert not (before == weights.output.dense.weight).all()
    assert all(p.grad is None for p in weights.parameters())


def test_spacy_components_train_on_the_same_encoder(tiny_encoder, tmp_path):
    nlp = make_nlp(tiny_encoder)
    listener = {"tok2vec": LISTENER}
    nlp.add_pipe(
        "ner",
        name="spacy_ner",
        config={
            "model": {
                "@architectures": "spacy.TransitionBasedParser.v2",
                "state_type": "ner",
                "extra_state_tokens": False,
                "hidden_width": 16,
                "maxout_pieces": 2,
                "use_upper": False,
                **listener,
            }
        },
    )
    spancat = {"@architectures": "spacy.SpanCategorizer.v1", **listener}
    spancat["reducer"] = {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 16}
    spancat["scorer"] = {"@layers": "spacy.LinearLogistic.v1", "nO": None, "nI": None}
    nlp.add_pipe("spancat", config={"model": spancat, "spans_key": "sc"})
    textcat = {
        "@architectures": "spacy.TextCatReduce.v1",
        "exclusive_classes": True,
        "use_reduce_first": False,
        "use_reduce_last": False,
        "use_reduce_max": False,
        "use_reduce_mean": True,
        **listener,
    }
    nlp.add_pipe("textcat", config={"model": textcat})
    examples = make_examples(nlp)
    for i, eg in enumerate(examples):
        eg.reference.spans["sc"] = [
            Span(eg.reference, e.start, e.end, e.label) for e in eg.reference.ents
        ]
        eg.reference.cats = {"sick": float(i < 2), "well": float(i == 2)}
    first, last = {}, {}
    fix_random_seed(0)
    nlp.initialize(lambda: examples)
    optimizer = Adam(2e-3)
    for step in range(8):
        losses = first if step == 0 else last
        losses.clear()
        nlp.update(examples, sgd=optimizer, losses=losses)
    for name in ("ner", "spacy_ner", "spancat", "textcat"):
        assert last[name] < first[name], name
    nlp.to_disk(tmp_path / "pipeline")
    doc = spacy.load(tmp_path / "pipeline")(NOTES[0][0])
    assert doc.cats == pytest.approx(nlp(NOTES[0][0]).cats, abs=1e-4)


def test_dropout_of_training_reaches_thinc_layers():
    """The encoder and the head have rates of their own; a convolution has none."""
    cnn = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 8, "depth": 1, "embed_size": 50}
    cnn |= {
        "window_size": 1,
        "maxout_pieces": 2,
        "subword_features": True,
        "pretrained_vectors": None,
    }
    model = {"@architectures": "spacy-bioclin.CrfTagger.v1", "dropout": 0.0, "tok2vec": cnn}
    nlp = blank("es")
    ner = nlp.add_pipe("bioclin_ner", config={"model": {**model, "learn_rate_scale": 1.0}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=Adam(1e-3), drop=0.3)
    rates = [
        node.attrs["dropout_rate"] for node in ner.model.walk() if "dropout_rate" in node.attrs
    ]
    assert rates and set(rates) == {0.3}


def test_bad_settings(tiny_encoder):
    for settings, word in (
        ({"nested": True}, "spans_key"),
        ({"doubtful_from": 0.1}, "spans_key"),
        ({"scheme": "IOB7"}, "'IOB7'"),
    ):
        with pytest.raises(BioclinError, match=word):
            make_nlp(tiny_encoder, **settings)


def test_a_layer_that_the_corpus_lacks_is_named(tiny_encoder):
    nlp = make_nlp(tiny_encoder, spans_key="phi")
    with pytest.raises(BioclinError, match=r"\[components.ner\].*phi"):
        nlp.initialize(lambda: make_examples(nlp))


def test_stream_keeps_order_batches_and_errors(tagger):
    """Decoding runs a batch behind in a thread: every Doc comes out once, in order, as if alone."""
    nlp = spacy.load(tagger)
    texts = [NOTES[i % 3][0] for i in range(7)] + ["", "   "]
    alone = [ents_of(nlp(text)) for text in texts]
    for batch_size in (1, 4, 64):
        together = list(nlp.pipe(texts, batch_size=batch_size))
        assert [doc.text for doc in together] == texts
        assert [ents_of(doc) for doc in together] == alone
    assert any(alone)
    stream = nlp.pipe(iter(texts), batch_size=2)  # a reader that stops early
    assert next(stream).text == texts[0]
    stream.close()
    broken = nlp.get_pipe("ner")
    failed = []
    broken.set_error_handler(lambda name, proc, docs, error: failed.extend(docs))
    broken._find = lambda docs, scores: 1 / 0
    assert list(nlp.pipe(texts, batch_size=4)) == []
    assert len(failed) == len(texts)


def test_a_long_stream_keeps_the_vectors_of_few_batches(tagger):
    """Those of a batch go when its Docs have gone, without a garbage collection."""
    nlp = spacy.load(tagger)
    nlp.add_pipe("bioclin_cleaner")
    encoder, vectors = nlp.get_pipe("transformer"), []
    predict = encoder.predict

    def watch(docs):
        batch = predict(docs)
        vectors.append(weakref.ref(batch.model_output.last_hidden_state))
        return batch

    encoder.predict = watch
    alive = []
    for doc in nlp.pipe((f"{NOTES[0][0]} {i}" for i in range(24)), batch_size=2):
        assert doc._.trf_data is None
        alive.append(sum(one() is not None for one in vectors))
    assert len(vectors) == 12 and max(alive) <= 4
