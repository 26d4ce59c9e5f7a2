"""Makers of hostile packages: trained pipelines and encoders that were damaged, or changed to harm.

Each maker takes the folder of a good one and changes it in place.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from spacy_bioclin.torch_bridge.weights_io import MAGIC, pack_weights, unpack_weights

MODEL = Path("transformer", "model")
EVIL = "import pathlib; pathlib.Path({mark!r}).write_text('executed')\n"
Change = Callable[[dict[str, Any], dict[str, torch.Tensor]], None]


def change_model(package: Path, change: Change, file: Path = MODEL) -> None:
    """Change header and weights of the stored encoder."""
    header, weights = unpack_weights((package / file).read_bytes())
    weights = {name: weight.clone() for name, weight in weights.items()}
    change(header, weights)
    (package / file).write_bytes(pack_weights(header, weights))


def change_json(path: Path, **values: Any) -> None:
    """Set keys of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def raw_model(package: Path, header: bytes, table: bytes, body: bytes = b"") -> None:
    """Write an encoder of these bytes, whose lengths are right."""
    prefix = MAGIC + len(header).to_bytes(8, "little") + header
    prefix += b" " * (-len(prefix) % 64)
    (package / MODEL).write_bytes(prefix + len(table).to_bytes(8, "little") + table + body)


def named(name: str) -> Callable[[Path], None]:
    """Add a tokenizer file of this name."""

    def add(header: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        header["tokenizer"][name] = "pwned"

    return lambda package: change_model(package, add)


def tokenizer_setting(**values: Any) -> Callable[[Path], None]:
    """Set keys of tokenizer_config.json."""

    def change(header: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        config = json.loads(header["tokenizer"]["tokenizer_config.json"])
        header["tokenizer"]["tokenizer_config.json"] = json.dumps({**config, **values})

    return lambda package: change_model(package, change)


def setting(**values: Any) -> Callable[[Path], None]:
    """Set keys of the encoder's configuration."""
    return lambda package: change_model(package, lambda header, _: header["config"].update(values))


def first_weight(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    """Change the first weight."""

    def apply(header: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        name = next(iter(weights))
        weights[name] = change(weights[name])

    return lambda package: change_model(package, apply)


def table(**spec: Any) -> Callable[[Path], None]:
    """Replace the table of tensors by one entry."""
    row = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **spec}
    content = json.dumps({"x": row}).encode()
    return lambda package: raw_model(package, b"{}", content, b"\0" * 4)


def length(package: Path) -> None:
    """Claim a header of 2**60 bytes."""
    (package / MODEL).write_bytes(MAGIC + (2**60).to_bytes(8, "little") + b"{}")


def nan(weight: torch.Tensor) -> torch.Tensor:
    """Put a NaN into the middle."""
    weight.view(-1)[weight.numel() // 2] = float("nan")
    return weight


# What a package must be refused for, by `spacy.load`, with a word of the message.
REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "absolute name": (named("/tmp/bioclin-hostile-name"), "tokenizer's file"),
    "name of another folder": (named("../../outside.txt"), "tokenizer's file"),
    "name with a folder": (named("a/b.json"), "tokenizer's file"),
    "name of a module": (named("tokenization_x.py"), "tokenizer's file"),
    "empty name": (named(""), "tokenizer's file"),
    "header of 2**60 bytes": (length, "cut short or damaged"),
    "header is a list": (lambda p: raw_model(p, b"[]", b"{}"), "not a JSON object"),
    "header nested deeply": (lambda p: raw_model(p, b"[" * 10**6, b"{}"), "not a JSON object"),
    "header without keys": (lambda p: raw_model(p, b"{}", b"{}"), "settings"),
    "table is a number": (lambda p: raw_model(p, b"{}", b"7"), "not a JSON object"),
    "shape of 10**12": (table(shape=[10**6, 10**6]), "tensor 'x'"),
    "negative shape": (table(shape=[-1, -1]), "tensor 'x'"),
    "shape that overflows": (table(shape=[2**62, 4]), "tensor 'x'"),
    "offsets beyond the end": (table(shape=[10], data_offsets=[0, 40]), "ends at byte 40"),
    "offsets backwards": (table(data_offsets=[4, 0]), "tensor 'x'"),
    "number format unknown": (table(dtype="PICKLE"), "tensor 'x'"),
    "spec is text": (table(shape="1"), "tensor 'x'"),
    "shape of another model": (first_weight(lambda w: w[:1]), "but the settings say"),
    "integers": (first_weight(lambda w: w.to(torch.int32)), "int32"),
    "NaN": (first_weight(nan), "not finite"),
    "infinity": (first_weight(lambda w: w / 0), "not finite"),
    "a million layers": (setting(num_hidden_layers=10**6), "num_hidden_layers"),
    "more layers": (setting(num_hidden_layers=9000), "weights"),
    "wide": (setting(hidden_size=10**9, num_attention_heads=1), "settings say"),
    "many positions": (setting(max_position_embeddings=2**31), "settings say"),
    "a billion labels": (setting(num_labels=10**9), "num_labels"),
    "width is text": (setting(hidden_size="7"), "settings"),
    "architecture unknown": (setting(model_type="evil"), "model_type"),
    "architecture is a list": (setting(model_type=["bert"]), "model_type"),
    "tokenizer class": (tokenizer_setting(tokenizer_class="AutoModel"), "tokenizer_class"),
    "longest text is text": (tokenizer_setting(model_max_length="x"), "model_max_length"),
}
# What is left out: the pipeline annotates as before, and nothing is run, read or downloaded.
IGNORED: dict[str, Callable[[Path], None]] = {
    "code of a configuration": setting(auto_map={"AutoModel": "evil--repo.Model"}),
    "attention kernel of the hub": setting(attn_implementation="evil/repo:attention"),
    "quantization": setting(quantization_config={"quant_method": "gptq"}),
    "other weights": setting(transformers_weights="../../x.bin"),
    "code of a tokenizer": tokenizer_setting(
        auto_map={"AutoTokenizer": [None, "tokenization_x.Evil"]}
    ),
    "tokenizer file elsewhere": tokenizer_setting(tokenizer_file="/dev/zero"),
    "vocabulary elsewhere": tokenizer_setting(vocab_file="/dev/zero", gguf_file="/dev/zero"),
    "method of a configuration": setting(to_dict="x"),
    "chat template of 0.2": named("chat_template.jinja"),
}


def add_code(folder: Path, mark: Path) -> None:
    """Let config.json and tokenizer_config.json of an encoder name code in its folder."""
    (folder / "evil.py").write_text(EVIL.format(mark=str(mark)) + "class Evil: pass\n")
    auto = {
        name: "evil.Evil" for name in ("AutoConfig", "AutoModel", "AutoModelForTokenClassification")
    }
    change_json(
        folder / "config.json", auto_map=auto, custom_pipelines={"x": {"impl": "evil.Evil"}}
    )
    tokenizer = {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}
    change_json(folder / "tokenizer_config.json", auto_map=tokenizer)


def cut_weights(folder: Path) -> None:
    """Cut model.safetensors in the middle."""
    path = folder / "model.safetensors"
    os.truncate(path, path.stat().st_size // 2)


def nan_weights(folder: Path) -> None:
    """Put a NaN into model.safetensors."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = next(iter(weights))
    save_file({**weights, name: nan(weights[name])}, path, metadata={"format": "pt"})


def weights_elsewhere(folder: Path) -> None:
    """Name weights of another folder."""
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"metadata": {}, "weight_map": {"x": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def written(file: str, content: str | bytes) -> Callable[[Path], None]:
    """Replace a file."""
    raw = content.encode() if isinstance(content, str) else content

    def write(folder: Path) -> None:
        (folder / file).write_bytes(raw)

    return write


# What a checkpoint must be refused for, by `bioclin import-hf` and by an encoder's training.
BAD_CHECKPOINTS: dict[str, Callable[[Path], None]] = {
    "cut weights": cut_weights,
    "empty weights": written("model.safetensors", b""),
    "weights of 2**60": written("model.safetensors", (2**60).to_bytes(8, "little") + b"{}"),
    "weights of text": written("model.safetensors", "x" * 5000),
    "NaN": nan_weights,
    "config is a list": written("config.json", "[1]"),
    "config is a number": written("config.json", "7"),
    "config is empty": written("config.json", ""),
    "config nested deeply": written("config.json", "[" * 10**6),
    "config without type": written("config.json", "{}"),
    "config of wrong types": lambda f: change_json(f / "config.json", hidden_size={"a": []}),
    "config with huge numbers": lambda f: change_json(f / "config.json", num_hidden_layers=10**12),
    "config of unknown type": lambda f: change_json(f / "config.json", model_type="evil"),
    "labels are a list": lambda f: change_json(f / "config.json", id2label=[1, 2]),
    "tokenizer is a list": written("tokenizer.json", "[]"),
    "tokenizer is empty": written("tokenizer.json", ""),
    "tokenizer cut": lambda f: os.truncate(f / "tokenizer.json", 3000),
    "tokenizer config is a list": written("tokenizer_config.json", "[]"),
    "weights elsewhere": weights_elsewhere,
    "adapter of an encoder elsewhere": written(
        "adapter_config.json", '{"base_model_name_or_path": "/elsewhere"}'
    ),
}
