"""Two processes of `torchrun` give the weights of one with the same batch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from spacy_bioclin.pretraining.architecture import Shape, write_encoder
from spacy_bioclin.pretraining.masked_lm import pretrain
from spacy_bioclin.pretraining.settings import PretrainSettings

SETTINGS = PretrainSettings(
    steps=6,
    every=3,
    batch_sequences=16,
    length=32,
    learn_rate=2e-3,
    precision="fp32",
    whole_words=True,
)
OPTIONS = {
    "--steps": SETTINGS.steps,
    "--every": SETTINGS.every,
    "--batch-sequences": SETTINGS.batch_sequences,
    "--length": SETTINGS.length,
    "--learn-rate": SETTINGS.learn_rate,
    "--precision": SETTINGS.precision,
    "--device-pieces": 64,  # so that each process divides its part, too
}
TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def run_two(corpus: Path, start: Path, out: Path) -> None:
    flat = [str(part) for pair in OPTIONS.items() for part in pair]
    command = [sys.executable, "-W", "ignore", "-m", *TORCHRUN, "-m", "spacy_bioclin", "pretrain"]
    command += [str(corpus), "-o", str(out), "--start-from", str(start), "--whole-words", *flat]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-20_000:]


@pytest.mark.slow
def test_two_processes_equal_one(corpus: Path, tmp_path: Path, vocabulary) -> None:
    start = tmp_path / "start"
    write_encoder(vocabulary, Shape("roberta", 1, 64), start, seed=0)
    one = pretrain(
        corpus,
        tmp_path / "one",
        start_from=str(start),
        tokenizer=None,
        layers=None,
        settings=SETTINGS,
        resume=False,
    )
    run_two(corpus, start, tmp_path / "two")
    expected, found = (
        load_file(tmp_path / name / "encoder" / "model.safetensors") for name in ("one", "two")
    )
    assert max(float((found[k] - expected[k]).abs().max()) for k in found) < 1e-5
    record = json.loads((tmp_path / "two" / "pretraining.json").read_text())
    assert record["loss"] == json.loads(json.dumps(one["loss"]))
    for row, other in zip(record["perplexity"], one["perplexity"], strict=True):
        assert row == pytest.approx(other, abs=0.01)
    # A checkpoint counts as whole with the parts of both processes.
    whole = json.loads((tmp_path / "two" / "checkpoint-6" / "whole.json").read_text())
    assert {"rng_state_0.pth", "rng_state_1.pth"} <= whole.keys()
