"""A head whose encoder did not run says so; it does not find nothing."""

import pytest
import spacy
from spacy.training import Example
from thinc.api import Adam

from spacy_bioclin.errors import BioclinError
from tests.ner.hf.test_component import make_checkpoint, open_pipeline
from tests.ner.test_component import LISTENER, NOTES, ents_of, make_examples
from tests.trained import blank

TEXTS = ["", NOTES[0][0]]
TOK2VEC = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"}


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    open_pipeline(make_checkpoint(folder / "checkpoint", "bert")).to_disk(folder / "nlp")
    return folder / "nlp"


def test_an_encoder_that_is_left_out(tagger, imported):
    for folder, way in ((tagger, "exclude"), (tagger, "disable"), (imported, "exclude")):
        nlp = spacy.load(folder, **{way: ["transformer"]})
        message = (
            r"\[components.ner\] .* the component 'transformer', has not run on the Doc\. .*"
            "excluding or disabling 'transformer' .*exclude 'ner'"
        )
        for run in (nlp, lambda text, nlp=nlp: list(nlp.pipe(TEXTS))):
            with pytest.raises(BioclinError, match=message) as error:
                run(TEXTS[1])
            assert "neumonía" not in str(error.value)
        assert [len(doc.ents) for doc in nlp.pipe(["", ""])] == [0, 0]


def test_an_encoder_that_is_left_out_of_one_call(tagger):
    nlp = spacy.load(tagger)
    with pytest.raises(BioclinError, match="has not run on the Doc"):
        nlp(TEXTS[1], disable=["transformer"])
    assert nlp(TEXTS[1], disable=["ner"]).text == TEXTS[1]
    nlp.add_pipe("bioclin_cleaner")
    doc = nlp(TEXTS[1])
    assert doc._.trf_data is None
    with pytest.raises(BioclinError, match="has not run on the Doc"):  # vectors that were freed
        nlp.get_pipe("ner")(doc)


def test_an_encoder_in_the_head_needs_no_other(tagger):
    nlp = spacy.load(tagger)
    before = ents_of(nlp(TEXTS[1]))
    nlp.replace_listeners("transformer", "ner", ["model.tok2vec"])
    nlp.remove_pipe("transformer")
    assert before and ents_of(nlp(TEXTS[1])) == before


def test_a_frozen_encoder_annotates(tagger):
    nlp = spacy.load(tagger)
    examples = make_examples(nlp)
    optimizer = Adam(1e-3)
    nlp.update(examples, sgd=optimizer, exclude=["transformer"], annotates=["transformer", "ner"])
    with pytest.raises(BioclinError, match="has not run on the Doc"):
        nlp.update(examples, sgd=optimizer, annotates=["ner"])
    plain = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS]
    nlp.update(plain, sgd=optimizer)


def test_a_missing_tok2vec():
    nlp = blank("es")
    nlp.add_pipe("tok2vec")
    model = {"@architectures": "spacy-bioclin.CrfTagger.v1", "tok2vec": TOK2VEC}
    nlp.add_pipe("bioclin_ner", name="ner", config={"model": model | {"learn_rate_scale": 1.0}})
    nlp.initialize(lambda: make_examples(nlp))
    assert nlp(TEXTS[1]).text == TEXTS[1]
    with nlp.select_pipes(disable="tok2vec"), pytest.raises(BioclinError, match="'tok2vec', has"):
        nlp(TEXTS[1])


def test_the_encoder_is_called_by_its_name(tiny_encoder):
    nlp = blank("es")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(tiny_encoder)}
    nlp.add_pipe("transformer", name="encoder", config={"model": model})
    listener = {**LISTENER, "upstream": "encoder"}
    tagger = {"@architectures": "spacy-bioclin.CrfTagger.v1", "tok2vec": listener}
    nlp.add_pipe("bioclin_ner", name="ner", config={"model": tagger})
    nlp.initialize(lambda: make_examples(nlp))
    with pytest.raises(BioclinError, match="disabling 'encoder'"):
        nlp(TEXTS[1], disable=["encoder"])
