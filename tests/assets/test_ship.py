"""An encoder is put into assets, and another machine goes on from its half-precision weights."""

import json
import math
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from scripts import ship_encoder
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.compact import build_compact_encoder
from spacy_bioclin.pretraining.masked_lm import pretrain
from spacy_bioclin.pretraining.settings import PretrainSettings
from spacy_bioclin.pretraining.trainer import make_training_arguments
from tests.pretraining.fixtures import SENTENCES

SETTINGS = PretrainSettings(
    steps=20, batch_pieces=256, length=32, learn_rate=5e-3, every=5, precision="fp32"
)


@pytest.fixture
def built(tmp_path, corpus):
    """What scripts/build_encoder.sh makes before the training."""
    folder = tmp_path / "built"
    texts = [sentence for sentences in SENTENCES.values() for sentence in sentences]
    build_compact_encoder(texts * 3, folder / "start", vocab_size=320, layers=2, width=64, seed=0)
    shutil.copytree(corpus, folder / "clean")
    counts = {"documents": 40, "sentences": 100, "words": 900}
    report = {
        "kept": {"es.train": counts, "es.held-out": counts},
        "dropped": {"test_overlap": counts},
        "files": {"spaccc.txt.xz": {"read": counts}, "casimedicos.txt.xz": {"read": counts}},
    }
    (folder / "clean" / "report.json").write_text(json.dumps(report))
    return folder


def train(built, start, layers=None, **changes):
    return pretrain(
        built / "clean",
        built / "pretraining",
        start_from=str(start),
        tokenizer=None,
        layers=layers,
        settings=replace(SETTINGS, **changes),
        resume=True,
    )


def ship(built, out, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ship_encoder.py", str(built), str(out)])
    ship_encoder.main()
    return json.loads((out / "pretraining.json").read_text()), (out / "README.md").read_text(
        "utf-8"
    )


@pytest.mark.slow
def test_training_goes_on_from_the_half_precision_weights(built, tmp_path, monkeypatch):
    out = tmp_path / "bioclin-sm"
    # Stopped after its first update.
    train(built, built / "start", layers=1, max_seconds=1e-9)
    record, card = ship(built, out, monkeypatch)
    assert not record["finished"] and record["step"] == 1
    assert "1 updates of 20, stopped there" in card
    assert {value.dtype for value in load_file(out / "model.safetensors").values()} == {
        torch.float16
    }
    left_at = record["perplexity"][-1]

    # On another machine there is only what was shipped, and the text.
    for name in ("start", "pretraining"):
        shutil.rmtree(built / name)
    rest = train(built, out, warmup=0.1, learn_rate=4e-3, seed=1)
    went_on_at = rest["perplexity"][0]
    assert went_on_at["es"] == pytest.approx(left_at["es"], rel=0.01)
    assert went_on_at["en"] == pytest.approx(left_at["en"], rel=0.01)
    assert rest["perplexity"][-1]["es"] < 0.9 * left_at["es"]
    joined, card = ship(built, out, monkeypatch)
    assert joined == {**rest, "earlier": [record]}
    assert "stopped there" in card and "; then 20 updates" in card
    first, last = record["perplexity"][0]["es"], rest["perplexity"][-1]["es"]
    assert f"Spanish {first:,.0f} → {last:.1f}" in card


@pytest.mark.slow
def test_the_record_of_the_first_of_two_trainings_is_kept(built, tmp_path, monkeypatch):
    first = train(built, built / "start", steps=4, every=2)
    (built / "pretraining").rename(built / "first")
    second = train(built, built / "first" / "encoder", steps=4, every=2)
    joined, _ = ship(built, tmp_path / "bioclin-sm", monkeypatch)
    assert joined == {**second, "earlier": [first]}


def test_what_is_not_shipped(built, tmp_path, monkeypatch):
    """A training from elsewhere has no earlier ones; from nothing known, or on text without a known
    licence, it is not shipped."""
    out = tmp_path / "bioclin-sm"
    train(built, built / "start", steps=2, every=2)
    for _ in range(2):
        assert "earlier" not in ship(built, out, monkeypatch)[0]
    (built / "start").rename(built / "elsewhere")
    with pytest.raises(SystemExit, match="went on from none of"):
        ship(built, tmp_path / "unknown", monkeypatch)
    (built / "elsewhere").rename(built / "start")
    report = json.loads((built / "clean" / "report.json").read_text())
    report["files"]["mine.txt.xz"] = report["files"]["spaccc.txt.xz"]
    (built / "clean" / "report.json").write_text(json.dumps(report))
    with pytest.raises(KeyError, match="mine"):
        ship(built, tmp_path / "unknown", monkeypatch)
    assert not (tmp_path / "unknown").exists()


@pytest.mark.slow
def test_the_rate_rises_during_the_warm_up(built):
    train(built, built / "start", steps=20, every=20, warmup=0.5)
    path = built / "pretraining" / "checkpoint-20" / "trainer_state.json"
    rates = [
        entry["learning_rate"]
        for entry in json.loads(path.read_text())["log_history"]
        if "learning_rate" in entry
    ]
    assert max(rates) == pytest.approx(SETTINGS.learn_rate, rel=0.2)
    assert math.isclose(rates[4], max(rates), rel_tol=0.2) and rates[0] < 0.3 * max(rates)
    with pytest.raises(BioclinError, match=r"warmup = 1\.5: want a share"):
        make_training_arguments(built, replace(SETTINGS, warmup=1.5), every=1)
