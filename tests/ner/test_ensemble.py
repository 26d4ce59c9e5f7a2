"""Ensembles: averages worked out anew, storing, what they refuse."""

import zipfile

import numpy as np
import pytest
import spacy
from spacy.training import Example
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.cli.loading import find_encoders, load_pipeline
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner.ensemble import join_pipelines
from spacy_bioclin.packaging.build import build_wheel
from spacy_bioclin.packaging.card import Provenance
from spacy_bioclin.vocab import save_pipeline
from tests.ner.test_component import ENCODER, LISTENER, NOTES, make_examples, make_nlp, train

TEXTS = [text for text, _ in NOTES] + ["Neumonía por  covid.", "", "\n"]
LEXICAL = {
    "@layers": "spacy-bioclin.concatenate.v1",
    "*": {
        "encoder": LISTENER,
        "form": {
            "@architectures": "spacy.HashEmbedCNN.v2",
            "pretrained_vectors": None,
            "width": 8,
            "depth": 1,
            "embed_size": 50,
            "window_size": 1,
            "maxout_pieces": 2,
            "subword_features": True,
        },
    },
}


def make_member(encoder, seed, folder=None, steps=4, **settings):
    """Train a member for a few steps, and load it if it is stored."""
    spacy.util.fix_random_seed(seed)
    nlp = make_nlp(encoder, **settings)
    train(nlp, make_examples(nlp, settings.get("spans_key")), steps=steps + 3 * seed)
    nlp.add_pipe("bioclin_cleaner", name="cleaner")
    if folder is None:
        return nlp
    save_pipeline(nlp, folder)
    return spacy.load(folder)


def join(*members):
    return join_pipelines((f"member {i}", nlp) for i, nlp in enumerate(members))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param(
            {"nested": True, "spans_key": "sc", "scheme": "BIO", "doubtful_from": 0.2},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {
                "model": {
                    "@architectures": "spacy-bioclin.LinearTagger.v1",
                    "dropout": 0.1,
                    "learn_rate_scale": 10.0,
                    "tok2vec": LEXICAL,
                }
            },
            marks=pytest.mark.slow,
        ),
    ],
    ids=["flat", "nested", "lexical"],
)
def test_averages_stores_and_loads(tiny_encoder, tmp_path, settings):
    folders = [tmp_path / f"member{seed}" for seed in range(3)]
    for seed, folder in enumerate(folders):
        make_member(tiny_encoder, seed, folder, steps=20, **settings)  # enough to find all entities
    expected = []
    for folder in folders:
        nlp = spacy.load(folder)
        docs = [nlp.make_doc(text) for text in TEXTS]
        nlp.get_pipe("transformer").set_annotations(docs, nlp.get_pipe("transformer").predict(docs))
        expected.append(nlp.get_pipe("ner").get_marginals(docs, temperature=1.0))
    joined = join(*map(spacy.load, folders))
    assert joined.pipe_names == ["ner", "cleaner"]
    save_pipeline(joined, tmp_path / "joined")
    for nlp in (joined, spacy.load(tmp_path / "joined")):
        ner = nlp.get_pipe("ner")
        assert ner.labels == ("DRUG", "PROBLEM")
        docs = [nlp.make_doc(text) for text in TEXTS]
        found = ner.get_marginals(docs, temperature=1.0)
        for i, marginals in enumerate(found):
            mean = np.mean([each[i].astype(float) for each in expected], axis=0)
            assert np.abs(marginals - mean).max(initial=0) < 2e-3
        written = list(nlp.pipe(TEXTS))
    assert joined.to_bytes() == nlp.to_bytes()
    key = settings.get("spans_key")
    for doc, marginals in zip(written, found, strict=True):
        spans = doc.spans[key] if key else doc.ents
        for span in spans:
            inside = 1 - marginals[span.start : span.end, :, 0]
            assert 0 < (span._.probability or max(doc.spans[key].attrs["scores"])) <= 1
            assert span.id_ == "doubtful" or inside.max() > 0.3
    assert sum(len(doc.spans[key] if key else doc.ents) for doc in written)


def test_the_encoder_of_an_ensemble_is_not_exported(tiny_encoder, tmp_path):
    nlp = make_member(tiny_encoder, 0)
    save_pipeline(join(nlp, nlp), tmp_path / "joined")
    command = ["encoders", "export", str(tmp_path / "joined"), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and "ner has 2 encoders, of an ensemble" in done.output
    assert not (tmp_path / "out").exists()


def test_an_ensemble_of_twins_is_the_twin(tiny_encoder, tmp_path):
    nlp = make_member(tiny_encoder, 2, tmp_path / "one")
    expected = [[(e.start, e.end, e.label_) for e in doc.ents] for doc in nlp.pipe(TEXTS)]
    probabilities = [ent._.probability for doc in nlp.pipe(TEXTS) for ent in doc.ents]
    twins = join(spacy.load(tmp_path / "one"), spacy.load(tmp_path / "one"))
    docs = list(twins.pipe(TEXTS))
    assert [[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs] == expected
    assert [e._.probability for doc in docs for e in doc.ents] == pytest.approx(probabilities)


def test_commands_know_the_encoders(tiny_encoder, tmp_path):
    save_pipeline(join(make_member(tiny_encoder, 0), make_member(tiny_encoder, 1)), tmp_path / "p")
    nlp = load_pipeline(str(tmp_path / "p"), precision="fp32")
    [encoders] = find_encoders(nlp).values()
    assert [encoder.shim.precision for encoder in encoders] == ["fp32", "fp32"]
    assert encoders[0].shim is not encoders[1].shim
    shown = CliRunner().invoke(app, ["info", str(tmp_path / "p")])
    assert shown.exit_code == 0, shown.output
    assert "2, each bert" in shown.output


@pytest.mark.slow
def test_a_package_loads(tiny_encoder, tmp_path):
    nlp = join(make_member(tiny_encoder, 0), make_member(tiny_encoder, 1))
    save_pipeline(nlp, tmp_path / "pipeline")
    wheel = build_wheel(
        tmp_path / "pipeline", tmp_path, name="x", version="1", provenance=Provenance()
    )
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "installed")
    again = spacy.load(tmp_path / "installed" / "es_bioclin_x" / "es_bioclin_x-1")
    for one, other in zip(nlp.pipe(TEXTS), again.pipe(TEXTS), strict=True):
        assert [(e.start, e.end) for e in one.ents] == [(e.start, e.end) for e in other.ents]


def test_refuses_to_train(tiny_encoder):
    nlp = join(make_member(tiny_encoder, 0), make_member(tiny_encoder, 1))
    examples = make_examples(nlp)
    for call in (
        lambda: nlp.update(examples),
        lambda: nlp.initialize(lambda: examples),
    ):
        with pytest.raises(BioclinError, match=r"bioclin ensemble.*bioclin distill-ner"):
            call()
    labels = nlp.get_pipe("ner").labels
    assert labels == ("DRUG", "PROBLEM")


def test_members_must_agree(tiny_encoder):
    first = make_member(tiny_encoder, 0)
    with pytest.raises(BioclinError, match="two or more members"):
        join(first)
    with pytest.raises(BioclinError, match=r"member 1: has another .*scheme"):
        join(make_member(tiny_encoder, 0), make_member(tiny_encoder, 0, scheme="BIO"))
    other = make_nlp(tiny_encoder)
    doc = other.make_doc("Tos y fiebre.")
    doc.set_ents([doc.char_span(0, 3, label="SIGN")])
    other.initialize(lambda: [Example(other.make_doc(doc.text), doc)])
    other.add_pipe("bioclin_cleaner", name="cleaner")
    with pytest.raises(BioclinError, match=r"member 1: has another .*labels"):
        join(make_member(tiny_encoder, 0), other)
    shortened = make_member(tiny_encoder, 0)
    shortened.remove_pipe("cleaner")
    with pytest.raises(BioclinError, match="member 1: has another list of components"):
        join(make_member(tiny_encoder, 0), shortened)
    tokens = make_member(tiny_encoder, 0)
    tokens.tokenizer.add_special_case("neumonía", [{"ORTH": "neu"}, {"ORTH": "monía"}])
    with pytest.raises(BioclinError, match="member 1: has another tokenizer"):
        join(make_member(tiny_encoder, 0), tokens)


def test_pipelines_that_cannot_be_members(tiny_encoder):
    blank = spacy.blank("es")
    with pytest.raises(BioclinError, match="member 0: has no bioclin_ner"):
        join(blank)
    nlp = make_member(tiny_encoder, 0)
    nlp.add_pipe("textcat", config={"model": {"tok2vec": LISTENER}}, before="cleaner")
    with pytest.raises(BioclinError, match="member 0: textcat uses the encoder of ner"):
        join(nlp)
    ensemble = join(make_member(tiny_encoder, 0), make_member(tiny_encoder, 1))
    with pytest.raises(BioclinError, match="member 0: is an ensemble itself"):
        join(ensemble)
    nlp = make_nlp(tiny_encoder)
    nlp.add_pipe("bioclin_ner", name="phi", config={"spans_key": "phi"})
    with pytest.raises(BioclinError, match="member 0: has several bioclin_ner"):
        join(nlp)


def test_a_model_of_one_member_is_refused(tiny_encoder):
    tok2vec = {
        "@architectures": "spacy-bioclin.Tok2VecEncoder.v1",
        "name": str(tiny_encoder),
        "window": ENCODER["window"],
        "pooling": {"@layers": "reduce_mean.v1"},
    }
    member = {
        "@architectures": "spacy-bioclin.CrfTagger.v1",
        "dropout": 0.1,
        "learn_rate_scale": 10.0,
        "tok2vec": tok2vec,
    }
    model = {"@architectures": "spacy-bioclin.Ensemble.v1", "*": {"0": member}}
    with pytest.raises(BioclinError, match="has 1 members"):
        spacy.blank("es").add_pipe("bioclin_ner", config={"model": model})
