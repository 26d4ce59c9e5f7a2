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
from tests.ner.test_component import (
    ENCODER,
    LISTENER,
    NOTES,
    ents_of,
    make_examples,
    make_nlp,
    train,
)
from tests.trained import blank

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


def make_member(encoder, steps=0, seed=0, **settings):
    """Make a member that can be joined; it need not find anything for that."""
    nlp = make_nlp(encoder, **settings)
    train(nlp, make_examples(nlp, settings.get("spans_key")), steps=steps, seed=seed)
    nlp.add_pipe("bioclin_cleaner", name="cleaner")
    return nlp


@pytest.fixture(scope="module")
def members(tiny_encoder, tmp_path_factory):
    """Folders of two members, the second trained a little more."""
    return store_members(tiny_encoder, tmp_path_factory.mktemp("members"))


def store_members(encoder, folder, **settings):
    folders = [folder / f"member{seed}" for seed in range(2)]
    for seed, path in enumerate(folders):
        save_pipeline(make_member(encoder, 9 + seed, seed, **settings), path)
    return folders


def join(*members):
    return join_pipelines((f"member {i}", nlp) for i, nlp in enumerate(members))


def test_averages_stores_and_loads(members, tmp_path):
    check_averages(members, tmp_path / "joined")


LINEAR = {
    "@architectures": "spacy-bioclin.LinearTagger.v1",
    "dropout": 0.1,
    "learn_rate_scale": 10.0,
    "tok2vec": LEXICAL,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"nested": True, "spans_key": "sc", "scheme": "BIO", "doubtful_from": 0.2},
        {"model": LINEAR},
    ],
    ids=["nested", "lexical"],
)
def test_averages_of_other_heads(tiny_encoder, tmp_path, settings):
    folders = store_members(tiny_encoder, tmp_path, **settings)
    check_averages(folders, tmp_path / "joined", settings.get("spans_key"))


def check_averages(folders, out, key=None):
    expected = []
    pipelines = [spacy.load(folder) for folder in folders]
    for nlp in pipelines:
        docs = [nlp.make_doc(text) for text in TEXTS]
        nlp.get_pipe("transformer").set_annotations(docs, nlp.get_pipe("transformer").predict(docs))
        expected.append(nlp.get_pipe("ner").get_marginals(docs, temperature=1.0))
    joined = join(*pipelines)
    assert joined.pipe_names == ["ner", "cleaner"]
    save_pipeline(joined, out)
    for nlp in (joined, spacy.load(out)):
        ner = nlp.get_pipe("ner")
        assert ner.labels == ("DRUG", "PROBLEM")
        docs = [nlp.make_doc(text) for text in TEXTS]
        found = ner.get_marginals(docs, temperature=1.0)
        for i, marginals in enumerate(found):
            mean = np.mean([each[i].astype(float) for each in expected], axis=0)
            assert np.abs(marginals - mean).max(initial=0) < 2e-3
        written = list(nlp.pipe(TEXTS))
    assert joined.to_bytes() == nlp.to_bytes()
    for doc, marginals in zip(written, found, strict=True):
        spans = doc.spans[key] if key else doc.ents
        for span in spans:
            inside = 1 - marginals[span.start : span.end, :, 0]
            assert 0 < (span._.probability or max(doc.spans[key].attrs["scores"])) <= 1
            assert span.id_ == "doubtful" or inside.max() > 0.3
    assert sum(len(doc.spans[key] if key else doc.ents) for doc in written)


def test_an_ensemble_of_twins_is_the_twin(members):
    nlp = spacy.load(members[1])
    alone = list(nlp.pipe(TEXTS))
    together = list(join(spacy.load(members[1]), spacy.load(members[1])).pipe(TEXTS))
    assert [ents_of(doc) for doc in together] == [ents_of(doc) for doc in alone]
    probabilities = [
        [e._.probability for doc in docs for e in doc.ents] for docs in (together, alone)
    ]
    assert probabilities[0] and probabilities[0] == pytest.approx(probabilities[1])


def test_commands_know_the_encoders(tiny_encoder, tmp_path):
    save_pipeline(join(make_member(tiny_encoder), make_member(tiny_encoder)), tmp_path / "p")
    nlp = load_pipeline(str(tmp_path / "p"), precision="fp32")
    [encoders] = find_encoders(nlp).values()
    assert [encoder.shim.precision for encoder in encoders] == ["fp32", "fp32"]
    assert encoders[0].shim is not encoders[1].shim
    shown = CliRunner().invoke(app, ["info", str(tmp_path / "p")])
    assert shown.exit_code == 0, shown.output
    assert "2, each bert" in shown.output
    command = ["encoders", "export", str(tmp_path / "p"), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and "ner has 2 encoders" in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_package_loads(members, tmp_path):
    nlp = join(*map(spacy.load, members))
    save_pipeline(nlp, tmp_path / "pipeline")
    wheel = build_wheel(
        tmp_path / "pipeline", tmp_path, name="x", version="1", provenance=Provenance()
    )
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "installed")
    again = spacy.load(tmp_path / "installed" / "es_bioclin_x" / "es_bioclin_x-1")
    for one, other in zip(nlp.pipe(TEXTS), again.pipe(TEXTS), strict=True):
        assert ents_of(one) == ents_of(other)


def test_refuses_to_train(tiny_encoder):
    nlp = join(make_member(tiny_encoder), make_member(tiny_encoder))
    examples = make_examples(nlp)
    for call in (lambda: nlp.update(examples), lambda: nlp.initialize(lambda: examples)):
        with pytest.raises(BioclinError, match=r"bioclin ensemble.*bioclin distill-ner"):
            call()
    assert nlp.get_pipe("ner").labels == ("DRUG", "PROBLEM")


def test_members_must_agree(tiny_encoder):
    with pytest.raises(BioclinError, match="two or more members"):
        join(make_member(tiny_encoder))
    signs = make_nlp(tiny_encoder)
    doc = signs.make_doc("Tos y fiebre.")
    doc.set_ents([doc.char_span(0, 3, label="SIGN")])
    signs.initialize(lambda: [Example(signs.make_doc(doc.text), doc)])
    signs.add_pipe("bioclin_cleaner", name="cleaner")
    shortened = make_member(tiny_encoder)
    shortened.remove_pipe("cleaner")
    tokens = make_member(tiny_encoder)
    tokens.tokenizer.add_special_case("neumonía", [{"ORTH": "neu"}, {"ORTH": "monía"}])
    for other, part in (
        (make_member(tiny_encoder, scheme="BIO"), "scheme"),
        (signs, "labels"),
        (shortened, "list of components"),
        (tokens, "tokenizer"),
    ):
        with pytest.raises(BioclinError, match=f"member 1: has another .*{part}"):
            join(make_member(tiny_encoder), other)


def test_pipelines_that_cannot_be_members(tiny_encoder):
    shared = make_member(tiny_encoder)
    shared.add_pipe("textcat", config={"model": {"tok2vec": LISTENER}}, before="cleaner")
    several = make_nlp(tiny_encoder)
    several.add_pipe("bioclin_ner", name="phi", config={"spans_key": "phi"})
    for nlp, message in (
        (blank("es"), "has no bioclin_ner"),
        (shared, "textcat uses the encoder of ner"),
        (join(make_member(tiny_encoder), make_member(tiny_encoder)), "is an ensemble itself"),
        (several, "has several bioclin_ner"),
    ):
        with pytest.raises(BioclinError, match=f"member 0: {message}"):
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
        blank("es").add_pipe("bioclin_ner", config={"model": model})
