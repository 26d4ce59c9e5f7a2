"""Encoders from scratch: plain RoBERTa and BERT, their dropout, and the command."""

from pathlib import Path

import pytest
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.architecture import Shape, check_shape, write_encoder
from spacy_bioclin.pretraining.masked_lm import open_model
from spacy_bioclin.pretraining.vocabulary import learn_vocabulary
from tests.util import TEXTS, make_encoder


@pytest.mark.parametrize(
    ("kind", "vocabulary_kind"),
    [("roberta-prelayernorm", "bpe"), ("roberta", "wordpiece"), ("bert", "bpe")],
)
def test_each_kind_reads_512_pieces(tmp_path: Path, kind: str, vocabulary_kind: str) -> None:
    pieces = learn_vocabulary(TEXTS * 3, size=420, kind=vocabulary_kind)
    shape = Shape(kind, layers=1, width=64, heads=2, inner=96)
    n_weights = write_encoder(pieces, shape, tmp_path, seed=0)
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert model.config.model_type == kind
    assert model.config.intermediate_size == 96
    assert n_weights <= model.num_parameters()
    text = " ".join(["neumonía"] * 600)
    encoded = tokenizer(text, truncation=True, max_length=512, return_tensors="pt")
    assert model(**encoded).last_hidden_state.shape == (1, 512, 64)


def test_the_papers_sizes(tmp_path: Path) -> None:
    pieces = learn_vocabulary(TEXTS * 3, size=420, kind="bpe")
    write_encoder(pieces, Shape("roberta", 1, 64), tmp_path / "roberta", seed=0)
    config = AutoConfig.from_pretrained(tmp_path / "roberta")
    # As roberta-base: positions for 512 pieces after that of padding, one segment.
    assert (config.max_position_embeddings, config.type_vocab_size) == (514, 1)
    assert (config.layer_norm_eps, config.initializer_range) == (1e-5, 0.02)


def test_impossible_shapes() -> None:
    for shape, message in (
        (Shape("xlm", 1, 64), "kind = 'xlm': it must be one of roberta-prelayernorm"),
        (Shape("bert", 0, 64), "layers = 0"),
        (Shape("bert", 1, 100), "width = 100"),
        (Shape("bert", 1, 100, heads=3), "heads = 3: want a number that divides the width, 100"),
    ):
        with pytest.raises(BioclinError, match=message):
            check_shape(shape)


@pytest.mark.parametrize("model_type", ["bert", "roberta", "roberta-prelayernorm", "electra"])
def test_dropout_of_layers_and_of_attention_are_set_apart(tmp_path: Path, model_type: str) -> None:
    folder = make_encoder(tmp_path / "encoder", model_type, "bytes")
    model = open_model(str(folder), None, None, 0.2, 0.3)
    of_attention = {id(module.dropout) for module in model.modules() if hasattr(module, "query")}
    drops = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert {module.p for module in drops if id(module) in of_attention} == {0.3}
    assert {module.p for module in drops if id(module) not in of_attention} == {0.2}
    assert {getattr(m, "dropout_prob", 0.3) for m in model.modules()} == {0.3}


def test_command_with_a_vocabulary_and_a_recipe(tmp_path: Path) -> None:
    learn_vocabulary(TEXTS * 3, size=420, kind="bpe").save_pretrained(tmp_path / "vocabulary")
    command = ["init-encoder", "--tokenizer", str(tmp_path / "vocabulary")]
    recipe = ["--recipe", "carrino-2022", "--layers", "2", "--width", "128"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "a"), *recipe])
    assert done.exit_code == 0, done.output
    config = AutoConfig.from_pretrained(tmp_path / "a")
    assert (config.model_type, config.num_hidden_layers) == ("roberta", 2)
    assert (config.num_attention_heads, config.intermediate_size) == (2, 512)
    plain = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "b"), "--kind", "bert"])
    assert plain.exit_code == 0, plain.output
    config = AutoConfig.from_pretrained(tmp_path / "b")
    assert (config.model_type, config.num_hidden_layers, config.hidden_size) == ("bert", 4, 256)


def test_command_wants_one_vocabulary(tmp_path: Path) -> None:
    for arguments in ([], ["c.spacy", "--tokenizer", "v"]):
        done = CliRunner().invoke(app, ["init-encoder", "-o", str(tmp_path / "a"), *arguments])
        assert done.exit_code == 1
        assert "needs a vocabulary" in " ".join(done.output.split())
