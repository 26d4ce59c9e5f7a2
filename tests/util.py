"""Makers of what many tests need: tiny tokenizers and encoders, built on the spot."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def tiny_tokenizer(kind: str, texts: list[str], vocab_size: int = 300):  # type: ignore[no-untyped-def]
    """Make a small fast tokenizer of one of the three kinds that pretrained encoders use.

    Only byte-level pieces are learned by the library: its other trainers give each process other
    pieces.

    kind (str): "wordpiece" (BERT), "bytes" (RoBERTa's byte-level BPE) or "unigram" (XLM-R).
    """
    import tokenizers as tk
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bert = {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]"}
    roberta = {"cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>"}
    names = bert if kind == "wordpiece" else roberta
    special = list(names.values())
    if kind == "wordpiece":
        pieces = [*special, *frequent_pieces(texts, "", "##")][:vocab_size]
        vocab = {piece: number for number, piece in enumerate(pieces)}
        tokenizer = tk.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    elif kind == "bytes":
        tokenizer = tk.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=max(vocab_size, 300),
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer.train_from_iterator(texts, trainer)
    else:
        counts = frequent_pieces(texts, "\u2581", "")
        scored = [(piece, math.log(count / 1000)) for piece, count in counts.items()]
        scored = [*((name, 0.0) for name in special), *scored][:vocab_size]
        tokenizer = tk.Tokenizer(models.Unigram(scored, special.index("<unk>")))
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(special)
    pair = [(names[k], tokenizer.token_to_id(names[k])) for k in ("sep_token", "cls_token")]
    tokenizer.post_processor = processors.BertProcessing(*pair)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)


def frequent_pieces(texts: list[str], first: str, later: str) -> dict[str, int]:
    """Count the pieces of words: single characters first, then the most frequent and longest.

    first, later (str): What stands before a piece at the beginning and inside of a word.
    """
    counts: Counter[tuple[bool, str]] = Counter()
    for word in re.findall(r"\w+|[^\w\s]", " ".join(texts)):
        for start in range(len(word)):
            for end in range(start + 1, min(start + 6, len(word)) + 1):
                counts[start > 0, word[start:end]] += 1
    for inside, piece in [key for key in counts if len(key[1]) == 1]:
        counts.setdefault((not inside, piece), 1)
    ordered = sorted(
        counts.items(),
        key=lambda item: (len(item[0][1]) > 1, -item[1] * len(item[0][1]), item[0]),
    )
    found = {first: 1} if first else {}
    return found | {(later if inside else first) + piece: n for (inside, piece), n in ordered}


TEXTS = [
    "Paciente de 54 años con neumonía. Se inicia amoxicilina 500 mg cada 8 horas.",
    "The patient had type 2 diabetes mellitus and was given metformin 850 mg twice a day.",
    "Fue dado de alta el 3 de mayo de 2019; Dr. Pérez, Hospital General.",
]


def make_encoder(folder: Path, model_type: str = "bert", kind: str = "wordpiece") -> Path:
    """Write a tiny random encoder of the given architecture, as `transformers` would."""
    import torch
    from transformers import AutoConfig, AutoModel

    tokenizer = tiny_tokenizer(kind, TEXTS * 3)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "pad_token_id": tokenizer.pad_token_id,
    }
    more = {
        "roberta": {"max_position_embeddings": 64 + tokenizer.pad_token_id + 1},
        "xlm-roberta": {"max_position_embeddings": 64 + tokenizer.pad_token_id + 1},
        "electra": {"embedding_size": 8},
        "longformer": {
            "attention_window": 8,
            "max_position_embeddings": 64 + tokenizer.pad_token_id + 1,
        },
        "modernbert": {"global_attn_every_n_layers": 2, "reference_compile": False},
    }
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **{**shape, **more.get(model_type, {})})
    folder.mkdir(parents=True, exist_ok=True)
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def read_spans(path, tag_set) -> list[tuple[int, int, str]]:  # type: ignore[no-untyped-def]
    """Read the spans of a legal path of tags, tag by tag."""
    spans: list[tuple[int, int, str]] = []
    for i, name in enumerate(tag_set.tags[tag] for tag in path):
        if name[0] in "BU":
            spans.append((i, i + 1, name[2:]))
        elif name != "O":
            spans[-1] = (spans[-1][0], i + 1, name[2:])
    return spans


def make_flagship(folder: Path) -> Path:
    """Write a small pipeline like es_bioclin_sm: it finds the name "Xabina", and has two components
    that de-identification does not need."""
    import spacy

    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    nlp.add_pipe("bioclin_sentences", name="sentences")
    nlp.add_pipe("bioclin_sections", name="sections")
    ruler = nlp.add_pipe("span_ruler", name="ruler", config={"spans_key": "phi"})
    ruler.add_patterns([{"label": "NOMBRE_SUJETO_ASISTENCIA", "pattern": "Xabina"}])  # type: ignore[attr-defined]
    nlp.add_pipe("bioclin_phi_rules", name="rules")
    nlp.add_pipe("bioclin_context", name="context")
    nlp.add_pipe("bioclin_deid", name="deid")
    nlp.to_disk(folder)
    return folder


def install_package(
    pipeline: Path, site: Path, name: str, version: str, requirement: str = ""
) -> None:
    """Install a pipeline in a folder of packages, as pip does with its wheel.

    requirement (str): What the package requires, such as "spacy-bioclin>=0.2.0,<0.3".
    """
    import shutil

    import srsly

    data = site / name / f"{name}-{version}"
    shutil.copytree(pipeline, data)
    meta = srsly.read_json(data / "meta.json")
    meta |= {"name": name.partition("_")[2], "version": version}
    meta["requirements"] = [requirement] if requirement else []
    for folder in (data, data.parent):
        srsly.write_json(folder / "meta.json", meta)
    (site / name / "__init__.py").write_text(
        "from pathlib import Path\n"
        "from spacy.util import load_model_from_init_py\n\n\n"
        "def load(**overrides):\n"
        "    return load_model_from_init_py(__file__, **overrides)\n"
    )
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def use_packages(monkeypatch, site: Path) -> None:  # type: ignore[no-untyped-def]
    """Let Python find the packages of a folder, those of `install_package`, until the test ends."""
    import sys

    monkeypatch.syspath_prepend(site)
    for info in site.glob("*.dist-info"):
        name = info.name.partition("-")[0]
        monkeypatch.setitem(sys.modules, name, None)  # so that it is forgotten in the end
        del sys.modules[name]


@contextmanager
def replaced_extension(kind: Any, name: str, default: Any) -> Iterator[None]:
    """Give `Doc`, `Span` or `Token` an extension that can be set; afterwards it is as it was."""
    before = kind.get_extension(name) if kind.has_extension(name) else None
    kind.set_extension(name, default=default, force=True)
    try:
        yield
    finally:
        kind.remove_extension(name)
        if before is not None:
            value, method, getter, setter = before
            if method is None and getter is None:
                kind.set_extension(name, default=value)
            elif method is not None:
                kind.set_extension(name, method=method)
            else:
                kind.set_extension(name, getter=getter, setter=setter)
