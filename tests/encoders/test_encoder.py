"""The encoder: every architecture and tokenizer kind, any text, storing and loading."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_bioclin.encoders.pieces import (
    SPACES,
    align_tokens,
    split_into_pieces,
    token_boundaries,
)
from spacy_bioclin.errors import BioclinError
from tests.trained import blank
from tests.util import TEXTS, tiny_tokenizer

ARCHITECTURES = [
    ("bert", "wordpiece"),
    ("roberta", "bytes"),
    ("xlm-roberta", "unigram"),
    ("electra", "wordpiece"),
    ("deberta", "bytes"),
    ("deberta-v2", "unigram"),
    ("longformer", "bytes"),
    ("modernbert", "bytes"),
]
HARD_TEXTS = {
    "empty": "",
    "blanks": " " * 10_000,
    "newlines": "\r\n\r\n\t\n" * 50,
    "base64": "".join(random.Random(0).choices("ABCDEFabcdef0123456789+/", k=5_000)),
    "emoji": "dolor 😀👩‍⚕️ 3/10 🫀🫁",
    "combining": "neumoni\u0301a bilateral, an\u0303os",
    "nul": "tos\x00 y fiebre\x07\x00",
    "long": " ".join(TEXTS) * 60,
}


def make_nlp(encoder: Path, **settings):
    nlp = blank("es")
    model = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(encoder),
        "window": 32,
        "stride": 24,
        "precision": "fp32",
        **settings,
    }
    nlp.add_pipe("transformer", config={"model": model})
    return nlp


def encode(nlp, text):
    return np.array(nlp(text)._.trf_data.model_output.last_hidden_state)


@pytest.mark.parametrize(("model_type", "kind"), ARCHITECTURES)
def test_architectures_encode_store_and_load(encoder_of, tmp_path, model_type, kind):
    nlp = make_nlp(encoder_of(model_type, kind))
    nlp.initialize()
    vectors = [encode(nlp, text) for text in TEXTS]
    from_bytes = make_nlp(tmp_path / "not-there").from_bytes(nlp.to_bytes())
    for text, before in zip(TEXTS, vectors, strict=True):
        np.testing.assert_array_equal(before, encode(from_bytes, text))
    nlp.get_pipe("transformer").model.shim.precision = "int8"
    difference = np.abs(encode(nlp, TEXTS[0]) - vectors[0]).mean() / np.abs(vectors[0]).mean()
    assert 0 < difference < 0.05


def test_a_folder_gives_the_same_vectors(tiny_encoder, tmp_path):
    nlp = make_nlp(tiny_encoder)
    nlp.initialize()
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    np.testing.assert_array_equal(encode(nlp, TEXTS[0]), encode(loaded, TEXTS[0]))


@pytest.mark.parametrize("kind", ["wordpiece", "bytes", "unigram"])
def test_hard_texts_are_covered_once(encoder_of, kind):
    nlp = make_nlp(encoder_of("bert", kind))
    nlp.initialize()
    tokenizer = nlp.get_pipe("transformer").model.tokenizer
    for name, text in HARD_TEXTS.items():
        doc = nlp(text)
        data = doc._.trf_data
        assert doc.text == text, name
        if not len(doc):
            continue
        assert len(data.align.lengths) == len(doc), name
        n_pieces = data.model_output.last_hidden_state.shape[1]
        encoded = tokenizer(text, add_special_tokens=False)
        assert n_pieces == max(1, len(encoded["input_ids"])), name  # each piece once, none dropped
        for token, length in zip(doc, data.align.lengths, strict=True):
            if token.text.isalnum() and token.text.isascii():
                assert length > 0, (name, token.i)


def test_window_vectors_equal_plain_transformers(tiny_encoder):
    """In one window, a piece's vector is what the library itself computes."""
    from transformers import AutoModel, AutoTokenizer

    nlp = make_nlp(tiny_encoder, window=64, stride=64)
    nlp.initialize()
    text = "Paciente con neumonía."
    ours = nlp(text)._.trf_data.model_output.last_hidden_state[0]
    encoded = AutoTokenizer.from_pretrained(tiny_encoder)(text, return_tensors="pt")
    theirs = AutoModel.from_pretrained(tiny_encoder)(**encoded).last_hidden_state[0, 1:-1]
    np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-5)


def test_batches_do_not_change_vectors(tiny_encoder):
    texts = [*TEXTS, "", "   ", TEXTS[0] * 5, "sí"]
    alone = make_nlp(tiny_encoder, max_batch_pieces=1)
    together = make_nlp(tiny_encoder, max_batch_pieces=4096)
    for nlp in (alone, together):
        nlp.initialize()
    for one, other in zip(alone.pipe(texts), together.pipe(texts), strict=True):
        if len(one):
            np.testing.assert_allclose(
                one._.trf_data.model_output.last_hidden_state,
                other._.trf_data.model_output.last_hidden_state,
                atol=1e-5,
            )


def test_alignment_by_characters():
    """Brute force: a token is aligned with exactly the pieces that share a character with it."""
    for kind in ("wordpiece", "bytes", "unigram"):
        tokenizer = tiny_tokenizer(kind, TEXTS * 3)
        nlp = blank("es")
        for text in [*TEXTS, "x  y\n\nz", "años\u00a0de neumonía/tos"]:
            doc = nlp(text)
            (pieces,) = split_into_pieces(tokenizer, [text])
            start = np.array([t.idx for t in doc])
            end = start + np.array([len(t) for t in doc])
            alignment = align_tokens(start, end, pieces)
            for i in range(len(doc)):
                shared = [
                    p
                    for p in range(len(pieces.ids))
                    if max(pieces.start[p], start[i]) < min(pieces.end[p], end[i])
                ]
                first = int(alignment.first[i])
                got = list(range(first, first + int(alignment.length[i])))
                assert set(shared) <= set(got)
                # a piece without characters of its own ("▁") may lie between
                assert all(pieces.start[p] >= pieces.end[p] for p in set(got) - set(shared))
            assert set(token_boundaries(alignment)) <= set(range(len(pieces.ids)))


def test_loaded_weights_are_not_copied_until_training(tiny_encoder, tmp_path):
    nlp = make_nlp(tiny_encoder)
    nlp.initialize()
    data = nlp.get_pipe("transformer").model.to_bytes()
    model = make_nlp(tiny_encoder).get_pipe("transformer").model
    model.from_bytes(data)
    view = np.frombuffer(data, dtype=np.uint8)
    low = view.ctypes.data
    pointers = [p.data_ptr() for p in model.shim.module.parameters()]
    assert all(low <= pointer < low + len(data) for pointer in pointers)
    doc = Doc(nlp.vocab, words=["tos"])
    _batch, _backprop = model.begin_update([doc])
    assert not any(low <= p.data_ptr() < low + len(data) for p in model.shim.module.parameters())


def test_bad_settings_name_value_and_remedy(tiny_encoder):
    for settings, words in (
        ({"window": 512}, ["window = 512", "64"]),
        ({"window": 32, "stride": 8}, ["stride = 8"]),
        ({"precision": "fp8"}, ["'fp8'", "'auto'"]),
    ):
        nlp = make_nlp(tiny_encoder, **settings)
        with pytest.raises(BioclinError) as error:
            nlp.initialize()
            nlp("tos")
        assert [word for word in words if word not in str(error.value)] == []


def test_hub_name_without_network_says_where_files_go(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    nlp = make_nlp(Path("PlanTL-GOB-ES/bsc-bio-ehr-es"))
    with pytest.raises(BioclinError, match="encoders/bsc-bio-ehr-es"):
        nlp.initialize()


def test_folder_without_config(tmp_path):
    with pytest.raises(BioclinError, match=r"config\.json"):
        make_nlp(tmp_path).initialize()


def test_blanks_are_those_of_python():
    assert SPACES.tolist() == [i for i in range(sys.maxunicode + 1) if chr(i).isspace()]
