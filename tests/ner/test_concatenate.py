"""Vectors of an encoder and of word forms, concatenated."""

import numpy as np
import pytest

from tests.ner.test_component import NOTES, make_examples, make_nlp
from tests.ner.test_component import train as train_all
from tests.ner.test_ensemble import LEXICAL

CRF = {"@architectures": "spacy-bioclin.CrfTagger.v1", "dropout": 0.0, "learn_rate_scale": 10.0}


def train(encoder, layer, n_heads=1):
    """Train heads that all learn from each batch.

    RETURNS (tuple): The pipeline, and the emissions of each head for the first note.
    """
    model = {**CRF, "tok2vec": {**LEXICAL, "@layers": layer}}
    nlp = make_nlp(encoder, model=model)
    for number in range(1, n_heads):
        nlp.add_pipe("bioclin_ner", name=f"ner{number}", config={"model": model})
    train_all(nlp, make_examples(nlp), steps=3, rate=2e-3)
    doc = nlp(NOTES[0][0])
    heads = [pipe for name, pipe in nlp.pipeline if name.startswith("ner")]
    return nlp, [head.model.predict([doc]).emissions for head in heads]


def test_it_learns_as_the_layer_of_thinc_and_two_heads_from_one_batch(tiny_encoder):
    """Same vectors and same gradients, so the same weights after some updates."""
    _, [alone] = train(tiny_encoder, "spacy-bioclin.concatenate.v1")
    _, [thinc] = train(tiny_encoder, "concatenate.v1")
    assert np.allclose(alone, thinc, atol=1e-5)
    with pytest.raises(TypeError):
        train(tiny_encoder, "concatenate.v1", 2)
    nlp, [first, second] = train(tiny_encoder, "spacy-bioclin.concatenate.v1", 2)
    assert first.shape == second.shape and not np.allclose(first, second)
    assert not np.allclose(first, alone, atol=1e-3)  # the encoder has learned from both
    assert len(list(nlp.pipe(["", "  ", "tos"]))) == 3
