"""Names as vectors: those of the library, whatever the order, the batches and the format."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from spacy_bioclin.encoders.names import GROUP, MAX_PIECES, NameEncoder, mean_vectors
from spacy_bioclin.errors import BioclinError

NAMES = ["neumonía", "type 2 diabetes mellitus", "dolor " * 40, "a", "", "Hospital General", "a"]


def open_encoder(folder: Path, **settings: str) -> NameEncoder:
    return NameEncoder(str(folder), **{"precision": "fp32", "device": "cpu", **settings})


@pytest.mark.parametrize(
    ("model_type", "kind", "pooling"),
    [
        ("bert", "wordpiece", "mean"),
        ("bert", "wordpiece", "cls"),
        ("roberta", "bytes", "cls"),
        ("xlm-roberta", "unigram", "mean"),
    ],
)
def test_vectors_are_those_of_the_library_one_by_one(
    encoder_of: Callable[..., Path], model_type: str, kind: str, pooling: str
) -> None:
    folder = encoder_of(model_type, kind)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pretrained = AutoModel.from_pretrained(folder, torch_dtype=torch.float32).eval()
    vectors = open_encoder(folder, pooling=pooling).encode(NAMES)
    assert vectors.shape == (len(NAMES), 16)
    assert vectors.dtype == np.float32
    for name, vector in zip(NAMES, vectors, strict=True):
        lower = name.lower()
        pieces = tokenizer([lower], truncation=True, max_length=MAX_PIECES, return_tensors="pt")
        mask = pieces["attention_mask"]
        with torch.no_grad():
            hidden = pretrained(input_ids=pieces["input_ids"], attention_mask=mask)[0][0].numpy()
        expected = hidden.mean(0) if pooling == "mean" else hidden[0]
        assert np.allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


def test_mean_leaves_out_padding() -> None:
    hidden = torch.tensor([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]]])
    mean = mean_vectors(hidden, torch.tensor([[1, 1, 0]]))
    assert torch.allclose(mean, torch.tensor([[0.6, 0.8]]))


def test_order_and_batches_do_not_matter(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = open_encoder(tiny_encoder)
    names = [f"{'diabetes ' * (i % 7)}{i}" for i in range(50)]
    vectors = encoder.encode(names)
    backwards = encoder.encode(names[::-1])[::-1]
    assert np.allclose(vectors, backwards, atol=1e-6)
    monkeypatch.setattr("spacy_bioclin.encoders.names.CPU_BATCH_PIECES", 30)
    monkeypatch.setattr("spacy_bioclin.encoders.names.GROUP", 13)
    told: list[tuple[float, int]] = []
    assert np.allclose(vectors, encoder.encode(names, lambda *done: told.append(done)), atol=1e-6)
    assert [n for _, n in told] == [13, 26, 39, 50]
    assert told[-1][0] == 1
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert GROUP > 50


def test_no_names_give_no_vectors(tiny_encoder: Path) -> None:
    assert open_encoder(tiny_encoder).encode([]).shape == (0, 16)


def test_other_formats_round(encoder_of: Callable[..., Path]) -> None:
    # In DistilBERT a part of the network is called "transformer", as in our own.
    for model_type, precision in (("bert", "bf16"), ("bert", "int8"), ("distilbert", "int8")):
        folder = encoder_of(model_type)
        exact = open_encoder(folder).encode(NAMES)
        rounded = open_encoder(folder, precision=precision).encode(NAMES)
        assert (exact * rounded).sum(1).min() > 0.98
        assert not np.array_equal(exact, rounded)


def test_hash_is_of_content_not_of_place_or_format(tiny_encoder: Path, tmp_path: Path) -> None:
    first = open_encoder(tiny_encoder)
    pretrained = AutoModel.from_pretrained(tiny_encoder, torch_dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    pretrained.save_pretrained(tmp_path / "other", safe_serialization=False)
    tokenizer.save_pretrained(tmp_path / "other")
    assert open_encoder(tmp_path / "other").hash == first.hash
    assert open_encoder(tmp_path / "other", precision="bf16").hash == first.hash
    with torch.no_grad():
        next(pretrained.parameters())[7, 3] += 1e-3
    pretrained.save_pretrained(tmp_path / "trained")
    tokenizer.save_pretrained(tmp_path / "trained")
    assert open_encoder(tmp_path / "trained").hash != first.hash


def test_unknown_settings_are_refused(tiny_encoder: Path) -> None:
    with pytest.raises(BioclinError, match=r"pooling = 'max'.*cls"):
        open_encoder(tiny_encoder, pooling="max")
    with pytest.raises(BioclinError, match="precision = 'fp8'"):
        open_encoder(tiny_encoder, precision="fp8")
