"""The encoder that is built on the spot."""

import pytest
from transformers import AutoModel, AutoTokenizer

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.compact import build_compact_encoder
from tests.util import TEXTS

SHAPE = {"vocab_size": 400, "layers": 2, "width": 64}


def test_same_seed_same_encoder(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        build_compact_encoder(TEXTS * 3, tmp_path / name, seed=seed, **SHAPE)
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_it_opens_with_transformers_and_keeps_accents_and_case(tmp_path):
    n_weights = build_compact_encoder(TEXTS * 3, tmp_path, seed=0, **SHAPE)
    tokenizer, model = AutoTokenizer.from_pretrained(tmp_path), AutoModel.from_pretrained(tmp_path)
    pieces = tokenizer.tokenize("Paciente con neumonía")
    assert tokenizer.convert_tokens_to_string(pieces) == "Paciente con neumonía"
    output = model(**tokenizer("Paciente con neumonía", return_tensors="pt")).last_hidden_state
    assert output.shape == (1, len(pieces) + 2, 64)
    assert 0 < n_weights <= model.num_parameters()


def test_bad_input(tmp_path):
    for texts, shape, word in (
        (["  ", ""], SHAPE, "no words"),
        (TEXTS, {**SHAPE, "width": 100}, "width = 100"),
        (TEXTS, {**SHAPE, "vocab_size": 100}, "vocab_size = 100"),
    ):
        with pytest.raises(BioclinError, match=word):
            build_compact_encoder(texts, tmp_path, seed=0, **shape)
