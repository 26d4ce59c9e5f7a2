"""Large batches, divided: the division by hand, and the same weights as without it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.architecture import Shape, write_encoder
from spacy_bioclin.pretraining.large.batches import divide_batch
from spacy_bioclin.pretraining.masked_lm import pretrain
from spacy_bioclin.pretraining.settings import PretrainSettings

SETTINGS = PretrainSettings(
    steps=6,
    batch_sequences=16,
    length=32,
    learn_rate=2e-3,
    warmup=2,
    every=6,
    precision="fp32",
    # Passes do not have equally many pieces to predict.
    whole_words=True,
)


def test_division_by_hand() -> None:
    for batch, length, fits, processes, division in (
        # Lewis et al. (2020), section 5.1, on one device that holds 16 inputs
        (8192 * 512, 512, 8192, 1, (16, 512)),
        # ouBioBERT on eight devices that hold 100 inputs: 64 is the largest divisor of 8,192
        (65536 * 128, 128, 12800, 8, (64, 128)),
        (8192, 256, 0, 1, (32, 1)),
        (8192, 256, 10**9, 2, (16, 1)),
        (7 * 32, 32, 3 * 32, 1, (1, 7)),
        (9 * 32, 32, 4 * 32, 3, (3, 1)),
    ):
        found = divide_batch(batch, length, device_pieces=fits, n_processes=processes)
        assert found == division


def test_batches_that_cannot_be_divided_are_refused() -> None:
    with pytest.raises(BioclinError, match=r"batch_pieces = 96: .* 32 x 2"):
        divide_batch(96, 32, device_pieces=0, n_processes=2)
    with pytest.raises(BioclinError, match=r"device_pieces = 31: .* length = 32"):
        divide_batch(64, 32, device_pieces=31, n_processes=1)


def run(corpus: Path, start: Path, out: Path, resume: bool = False, **changes: object) -> dict:
    return pretrain(
        corpus,
        out,
        start_from=str(start),
        tokenizer=None,
        layers=None,
        settings=replace(SETTINGS, **changes),
        resume=resume,
    )


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "encoder" / "model.safetensors")


@pytest.fixture(scope="module")
def starts(tmp_path_factory, vocabulary) -> dict[str, Path]:
    """Encoders of two architectures."""
    folder = tmp_path_factory.mktemp("start")
    for kind in ("roberta", "roberta-prelayernorm"):
        write_encoder(vocabulary, Shape(kind, 1, 64), folder / kind, seed=0)
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("kind", "optimizer"), [("roberta", "adamw"), ("roberta-prelayernorm", "lamb")]
)
@pytest.mark.slow
def test_accumulated_batches_give_the_weights_of_one_large_batch(
    corpus: Path, starts: dict[str, Path], tmp_path: Path, kind: str, optimizer: str
) -> None:
    start = starts[kind]
    whole = run(corpus, start, tmp_path / "whole", optimizer=optimizer)
    expected = weights(tmp_path / "whole")
    for fits in (128, 32):
        out = tmp_path / str(fits)
        record = run(corpus, start, out, optimizer=optimizer, device_pieces=fits)
        found = weights(out)
        assert max(float((found[name] - expected[name]).abs().max()) for name in found) < 1e-5
        assert record["loss"] == whole["loss"]
        # Perplexities do not depend on the size of the batches either.
        for row, other in zip(record["perplexity"], whole["perplexity"], strict=True):
            assert row == pytest.approx(other, abs=0.01)


@pytest.mark.slow
def test_an_accumulated_training_that_is_stopped_goes_on_the_same(
    corpus: Path, starts: dict[str, Path], tmp_path: Path
) -> None:
    start = starts["roberta"]
    changes = {"device_pieces": 128, "dropout": 0.1, "attention_dropout": 0.1}
    whole = run(corpus, start, tmp_path / "whole", **changes)
    stopped = run(corpus, start, tmp_path / "parts", max_seconds=1e-9, **changes)
    assert not stopped["finished"]
    resumed = run(corpus, start, tmp_path / "parts", resume=True, **changes)
    assert resumed["loss"] == whole["loss"]
    first, second = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(first[name], second[name]) for name in first)
    with pytest.raises(BioclinError, match="device_pieces was 128 and is 64"):
        run(corpus, start, tmp_path / "parts", resume=True, **{**changes, "device_pieces": 64})


def test_settings_out_of_range(corpus: Path, starts: dict[str, Path], tmp_path: Path) -> None:
    rows: list[tuple[dict, str]] = [
        ({"optimizer": "adam"}, "optimizer = 'adam': it must be one of adamw, lamb"),
        ({"beta2": 1.0}, "beta2 = 1.0: want 0 up to below 1"),
        ({"clip": -1.0}, "clip = -1.0: want 0 or more"),
        ({"decay_power": 0.0}, "decay_power = 0.0: want a number above 0"),
        ({"warmup": 1.5}, "warmup = 1.5: want a share"),
        ({"warmup": 10_000}, "warmup = 10000 and steps = 6: want fewer"),
        ({"balance": True, "shares": {"es": 1.0}}, "--balance and --share: give only one"),
    ]
    for change, message in rows:
        with pytest.raises(BioclinError, match=message):
            run(corpus, starts["roberta"], tmp_path / "out", **change)
