"""Training of masked language models: loss, resuming, what is refused, the command."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.encoders.loading import load_pretrained
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.compact import build_compact_encoder
from spacy_bioclin.pretraining.masked_lm import MaskedLM, open_model, pretrain
from spacy_bioclin.pretraining.masking import NO_LOSS
from spacy_bioclin.pretraining.settings import PretrainSettings
from tests.pretraining.fixtures import SENTENCES
from tests.util import make_encoder

SETTINGS = PretrainSettings(
    steps=12,
    batch_pieces=256,
    length=32,
    learn_rate=5e-3,
    whole_words=True,
    dropout=0.1,
    every=4,
    precision="fp32",
)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start") / "random"
    texts = [sentence for sentences in SENTENCES.values() for sentence in sentences]
    build_compact_encoder(texts * 3, folder, vocab_size=320, layers=1, width=64, seed=0)
    return folder


def run(corpus: Path, out: Path, start: Path, resume: bool = False, **changes: object) -> dict:
    return pretrain(
        corpus,
        out,
        start_from=str(start),
        tokenizer=None,
        layers=None,
        settings=replace(SETTINGS, **changes),
        resume=resume,
    )


@pytest.mark.parametrize(
    ("model_type", "kind"),
    [
        ("bert", "wordpiece"),
        ("roberta", "bytes"),
        ("electra", "wordpiece"),
        ("deberta-v2", "unigram"),
        ("longformer", "bytes"),
    ],
)
def test_loss_equals_that_of_the_library_which_computes_all_logits(
    tmp_path: Path, model_type: str, kind: str
) -> None:
    folder = make_encoder(tmp_path / "encoder", model_type, kind)
    torch.manual_seed(0)
    model = MaskedLM(open_model(str(folder), None, None, 0.0)).eval()
    ids = torch.randint(5, 50, (3, 16))
    mask = torch.ones_like(ids)
    mask[1, 10:] = 0
    labels = torch.where(torch.rand(3, 16) < 0.3, ids, NO_LOSS)
    labels[1, 10:] = NO_LOSS
    with torch.no_grad():
        logits = model.pretrained(input_ids=ids, attention_mask=mask).logits
        expected = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=NO_LOSS)
        assert torch.allclose(model(ids, mask, labels)["loss"], expected, atol=1e-5)


def test_training_lowers_perplexity_and_gives_an_encoder(
    corpus: Path, start: Path, tmp_path: Path
) -> None:
    record = run(corpus, tmp_path / "out", start, steps=20, every=20, learn_rate=1e-2)
    first, *_, last = record["perplexity"]
    assert last["es"] < 0.8 * first["es"]
    assert last["en"] < 0.8 * first["en"]
    assert record["pieces_per_second"] > 0
    assert 0 < record["share_of_matrix_rate"] < 2
    assert json.loads((tmp_path / "out" / "pretraining.json").read_text()) == record
    assert "<polyline" in (tmp_path / "out" / "perplexity.svg").read_text()
    with pytest.raises(BioclinError, match="--resume"):  # checkpoints are not overwritten unasked
        run(corpus, tmp_path / "out", start, steps=20)
    tokenizer, encoder = load_pretrained(str(tmp_path / "out" / "encoder"), {})
    assert encoder.config.num_hidden_layers == 1
    assert encoder.config.hidden_dropout_prob == 0.1
    assert len(tokenizer) == encoder.config.vocab_size


@pytest.mark.slow
def test_resume_gives_the_losses_of_a_run_that_never_stopped(
    corpus: Path, start: Path, tmp_path: Path
) -> None:
    whole = run(corpus, tmp_path / "whole", start)
    stopped = run(corpus, tmp_path / "parts", start, max_seconds=1e-9)
    assert not stopped["finished"]
    assert not (tmp_path / "parts" / "encoder").exists()
    resumed = run(corpus, tmp_path / "parts", start, resume=True)
    assert resumed["finished"]
    losses = [dict(record["loss"]) for record in (whole, resumed)]
    assert losses[1] == losses[0]
    # The first part may have been evaluated where the whole run was not.
    after = [row for row in resumed["perplexity"] if row["step"] % SETTINGS.every == 0]
    assert after == whole["perplexity"]


def test_what_cannot_be_trained(corpus: Path, start: Path, tmp_path: Path) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"batch_pieces": 100}, "batch_pieces = 100"),
        ({"length": 1024, "batch_pieces": 1024}, "length = 1024: the encoder reads 512 pieces"),
        ({"shares": {"es": 1.0}}, r"each language of the corpus, \['en', 'es'\]"),
    ]
    for changes, message in rows:
        with pytest.raises(BioclinError, match=message):
            run(corpus, tmp_path, start, **changes)


@pytest.mark.slow
def test_command_line_with_a_new_vocabulary(
    corpus: Path, tiny_encoder: Path, vocabulary: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    vocabulary.save_pretrained(tmp_path / "vocabulary")
    options = {
        "-o": tmp_path / "out",
        "--start-from": tiny_encoder,
        "--tokenizer": tmp_path / "vocabulary",
        "--layers": 1,
        "--steps": 2,
        "--every": 2,
        "--length": 32,
        "--batch-pieces": 128,
        "--share": "es=0.7",
    }
    flat = [str(part) for pair in options.items() for part in pair]
    result = CliRunner().invoke(app, ["pretrain", str(corpus), *flat, "--share", "en=0.3"])
    assert result.exit_code == 0, result.output
    assert "million weights" in result.output
    tokenizer, encoder = load_pretrained(str(tmp_path / "out" / "encoder"), {})
    assert (len(tokenizer), encoder.config.num_hidden_layers) == (len(vocabulary), 1)
    wrong = CliRunner().invoke(app, ["pretrain", str(corpus), *flat, "--share", "en"])
    assert wrong.exit_code == 1
    assert "LANG=SHARE" in wrong.output
