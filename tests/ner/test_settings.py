"""`bioclin_ner` by spaCy's contract: settings, initialization, an encoder of its own."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Span
from thinc.api import Adam

from spacy_bioclin.errors import BioclinError
from tests.ner.test_component import LISTENER, NOTES, make_examples, make_nlp, train


@pytest.mark.parametrize("lexical", [False, True])
def test_a_head_gets_an_encoder_of_its_own(tiny_encoder, tmp_path, lexical):
    """`nlp.replace_listeners` changes no score; the head is trained and stored with its encoder."""
    cnn = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 8, "depth": 1, "embed_size": 50}
    cnn |= {"window_size": 1, "maxout_pieces": 2, "subword_features": True}
    both = {
        "@layers": "spacy-bioclin.concatenate.v1",
        "*": {"encoder": LISTENER, "form": {**cnn, "pretrained_vectors": None}},
    }
    model = {"@architectures": "spacy-bioclin.CrfTagger.v1", "dropout": 0.0}
    model |= {"learn_rate_scale": 10.0, "tok2vec": both if lexical else LISTENER}
    nlp = make_nlp(tiny_encoder, model=model)
    examples = make_examples(nlp)
    train(nlp, examples, steps=3)
    ner = nlp.get_pipe("ner")
    doc = nlp(NOTES[0][0])
    before = ner.model.predict([doc]).emissions
    path = "model.tok2vec.*.encoder" if lexical else "model.tok2vec"
    nlp.replace_listeners("transformer", "ner", [path])
    nlp.remove_pipe("transformer")
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    assert loaded.pipe_names == ["ner"]
    for pipeline in (nlp, loaded):
        after = pipeline.get_pipe("ner").model.predict([nlp.make_doc(NOTES[0][0])]).emissions
        assert np.allclose(before, after, atol=1e-5)
    [encoder] = [
        shim
        for node in loaded.get_pipe("ner").model.walk()
        for shim in node.shims
        if type(shim).__name__ == "EncoderShim"
    ]
    weights = next(encoder.module.parameters()).detach().clone()
    loaded.update(make_examples(loaded), sgd=Adam(1e-3))
    assert not np.allclose(weights, next(encoder.module.parameters()).detach())


def test_a_threshold_drops_what_is_less_probable(tagger):
    nlp = spacy.load(tagger)
    found = {ent.text: ent._.probability for ent in nlp(NOTES[0][0]).ents}
    limit = sorted(found.values())[-1]
    given = spacy.load(tagger, config={"components": {"ner": {"threshold": limit}}})
    kept = {ent.text: ent._.probability for ent in given(NOTES[0][0]).ents}
    assert kept == {name: p for name, p in found.items() if p >= limit}
    assert 0 < len(kept) < len(found)


def test_settings_given_when_loading_win(tiny_encoder, tmp_path):
    """Settings of the component's own file win only over the config that was saved with it."""
    nlp = make_nlp(tiny_encoder, spans_key="phi")
    train(nlp, make_examples(nlp, "phi"), steps=1)
    nlp.get_pipe("ner").cfg["doubtful_from"] = 0.002  # as `bioclin calibrate` does
    nlp.to_disk(tmp_path / "nlp")

    def load(**settings):
        return spacy.load(tmp_path / "nlp", config={"components": {"ner": settings}}).get_pipe(
            "ner"
        )

    assert load().cfg["doubtful_from"] == 0.002
    assert load(doubtful_from=0.3).cfg["doubtful_from"] == 0.3
    assert load(spans_key="other").spans_key == "other"
    with pytest.raises(BioclinError, match="above doubtful_from"):
        load(threshold=0.5)
    with pytest.raises(BioclinError, match="was trained with another value"):
        load(scheme="BIO")


def test_initialize_starts_anew(tiny_encoder):
    """As in spaCy: other labels make another head, and no labels keep those that there are."""
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    train(nlp, examples, steps=2)
    nlp.initialize()
    assert nlp.get_pipe("ner").labels == ("DRUG", "PROBLEM")
    for eg in examples:
        eg.reference.set_ents([Span(eg.reference, 0, 1, "OTHER")], default="outside")
    train(nlp, examples, steps=2)
    assert nlp.get_pipe("ner").labels == ("OTHER",)
    nlp(NOTES[0][0])


def test_rehearse_says_that_it_does_nothing(tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    train(nlp, examples, steps=1)
    nlp.resume_training()
    with pytest.warns(UserWarning, match=r"\[components.ner\] does not rehearse"):
        assert nlp.rehearse(examples) == {}
