"""Two processes of `torchrun` give the weights of one with the same batch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from spacy_bioclin.pretraining.architecture import Shape, write_encoder

OPTIONS = {
    "--steps": 6,
    "--every": 3,
    "--batch-sequences": 16,
    "--length": 32,
    "--learn-rate": 2e-3,
    "--precision": "fp32",
}
TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def run(corpus: Path, start: Path, out: Path, *launcher: str, more: tuple[str, ...] = ()) -> None:
    flat = [str(part) for pair in OPTIONS.items() for part in pair]
    command = [sys.executable, "-W", "ignore", "-m", *launcher]
    command += ["-m"] * bool(launcher) + ["spacy_bioclin", "pretrain", str(corpus), "-o", str(out)]
    done = subprocess.run(
        [*command, "--start-from", str(start), "--whole-words", *flat, *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-20_000:]


@pytest.mark.slow
def test_two_processes_equal_one(corpus: Path, tmp_path: Path, vocabulary) -> None:
    start = tmp_path / "start"
    write_encoder(vocabulary, Shape("roberta", 1, 64), start, seed=0)
    run(corpus, start, tmp_path / "one")
    run(corpus, start, tmp_path / "two", *TORCHRUN)
    run(corpus, start, tmp_path / "more", *TORCHRUN, more=("--device-pieces", "64"))
    expected = load_file(tmp_path / "one" / "encoder" / "model.safetensors")
    one = json.loads((tmp_path / "one" / "pretraining.json").read_text())
    for name in ("two", "more"):
        found = load_file(tmp_path / name / "encoder" / "model.safetensors")
        assert max(float((found[k] - expected[k]).abs().max()) for k in found) < 1e-5
        record = json.loads((tmp_path / name / "pretraining.json").read_text())
        assert record["loss"] == one["loss"]
        for row, other in zip(record["perplexity"], one["perplexity"], strict=True):
            assert row == pytest.approx(other, abs=0.01)
    # A checkpoint counts as whole with the parts of both processes.
    whole = json.loads((tmp_path / "two" / "checkpoint-6" / "whole.json").read_text())
    assert {"rng_state_0.pth", "rng_state_1.pth"} <= whole.keys()
