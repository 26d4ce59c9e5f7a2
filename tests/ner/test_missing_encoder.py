"""A head whose encoder did not run says so; it does not find nothing."""

import pytest
import spacy
from spacy.training import Example
from thinc.api import Adam

from spacy_bioclin.errors import BioclinError
from tests.ner.hf.test_component import make_checkpoint, open_pipeline
from tests.ner.test_component import LISTENER, NOTES, make_examples, make_nlp

TEXTS = ["", NOTES[0][0]]
TOK2VEC = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"}


@pytest.fixture(scope="module")
def folder(tiny_encoder, tmp_path_factory):
    nlp = make_nlp(tiny_encoder)
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path_factory.mktemp("missing") / "nlp")
    return tmp_path_factory.getbasetemp() / "missing0" / "nlp"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    open_pipeline(make_checkpoint(folder / "checkpoint", "bert")).to_disk(folder / "nlp")
    return folder / "nlp"


@pytest.mark.parametrize("way", ["exclude", "disable"])
@pytest.mark.parametrize("kind", ["folder", "imported"])
def test_an_encoder_that_is_left_out(request, kind, way):
    nlp = spacy.load(request.getfixturevalue(kind), **{way: ["transformer"]})
    message = (
        r"\[components.ner\] .* the component 'transformer', has not run on the Doc\. Load the "
        "pipeline without excluding or disabling 'transformer' .* or exclude 'ner' too"
    )
    for run in (nlp, lambda text: list(nlp.pipe(TEXTS)), lambda text: nlp(text, disable=["x"])):
        with pytest.raises(BioclinError, match=message) as error:
            run(TEXTS[1])
        assert "neumonía" not in str(error.value)
    assert [len(doc.ents) for doc in nlp.pipe(["", ""])] == [0, 0]


def test_an_encoder_that_is_left_out_of_one_call(folder):
    nlp = spacy.load(folder)
    with pytest.raises(BioclinError, match="has not run on the Doc"):
        nlp(TEXTS[1], disable=["transformer"])
    assert nlp(TEXTS[1], disable=["ner"]).text == TEXTS[1]


def test_vectors_that_were_freed_before(folder):
    nlp = spacy.load(folder)
    nlp.add_pipe("bioclin_cleaner")
    doc = nlp(TEXTS[1])
    assert doc._.trf_data is None
    with pytest.raises(BioclinError, match="has not run on the Doc"):
        nlp.get_pipe("ner")(doc)


def test_an_encoder_in_the_head_needs_no_other(folder):
    nlp = spacy.load(folder)
    before = [(e.start, e.end) for e in nlp(TEXTS[1]).ents]
    nlp.replace_listeners("transformer", "ner", ["model.tok2vec"])
    nlp.remove_pipe("transformer")
    assert [(e.start, e.end) for e in nlp(TEXTS[1]).ents] == before


def test_a_frozen_encoder_annotates(folder):
    nlp = spacy.load(folder)
    examples = make_examples(nlp)
    optimizer = Adam(1e-3)
    nlp.update(examples, sgd=optimizer, exclude=["transformer"], annotates=["transformer", "ner"])
    with pytest.raises(BioclinError, match="has not run on the Doc"):
        nlp.update(examples, sgd=optimizer, annotates=["ner"])
    plain = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS]
    nlp.update(plain, sgd=optimizer)


def test_a_missing_tok2vec():
    nlp = spacy.blank("es")
    nlp.add_pipe("tok2vec")
    model = {"@architectures": "spacy-bioclin.CrfTagger.v1", "tok2vec": TOK2VEC}
    nlp.add_pipe("bioclin_ner", name="ner", config={"model": model | {"learn_rate_scale": 1.0}})
    nlp.initialize(lambda: make_examples(nlp))
    assert nlp(TEXTS[1]).text == TEXTS[1]
    with nlp.select_pipes(disable="tok2vec"), pytest.raises(BioclinError, match="'tok2vec', has"):
        nlp(TEXTS[1])


def test_the_encoder_is_called_by_its_name(tiny_encoder):
    nlp = spacy.blank("es")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(tiny_encoder)}
    nlp.add_pipe("transformer", name="encoder", config={"model": model})
    listener = {**LISTENER, "upstream": "encoder"}
    tagger = {"@architectures": "spacy-bioclin.CrfTagger.v1", "tok2vec": listener}
    nlp.add_pipe("bioclin_ner", name="ner", config={"model": tagger})
    nlp.initialize(lambda: make_examples(nlp))
    with pytest.raises(BioclinError, match="disabling 'encoder'"):
        nlp(TEXTS[1], disable=["encoder"])
