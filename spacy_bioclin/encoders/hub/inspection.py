"""Inspect the folder of a pretrained encoder: what differs from the catalogue, and whether
`spacy-bioclin.Encoder.v1` can read it. Weights are not loaded."""

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from ...catalog.encoders import Encoder, load_encoders, read_json, recognize_encoder
from ...errors import BioclinError, first_line
from .. import loading
from ..files import open_config, open_tokenizer
from ..network import find_special_pieces

Shape = tuple[int, ...]


class Finding(NamedTuple):
    """One result of an inspection.

    subject (str): What was inspected.
    level (str): "ok", "note", "differs" (from the catalogue) or "unfit" (Encoder.v1 cannot use it).
    text (str): What was found.
    """

    subject: str
    level: str
    text: str


class Inspection(NamedTuple):
    """All results of an inspection.

    name (str | None): Name in the catalogue; None if the encoder was not recognised.
    """

    name: str | None
    findings: list[Finding]

    @property
    def usable(self) -> bool:
        """Whether Encoder.v1 can use the encoder."""
        return all(finding.level != "unfit" for finding in self.findings)


def inspect_encoder(folder: Path, name: str | None = None) -> Inspection:
    """Inspect a folder of the transformers library.

    folder (Path): Has config.json, tokenizer files and weights.
    name (str | None): Name in the catalogue; None to find it from the files of the folder.
    RAISES (BioclinError): There is no such folder.
    """
    if not folder.is_dir():
        raise BioclinError(f"{folder}: no such folder; `bioclin fetch` gets an encoder")
    encoders = load_encoders()
    name = name or recognize_encoder(folder)
    entry = encoders[name] if name else None
    return Inspection(name, list(_inspect(folder, entry)))


def _inspect(folder: Path, entry: Encoder | None) -> Iterator[Finding]:
    if entry and entry.licence_warning:
        yield Finding("licence", "note", entry.licence_warning)
    if not (folder / "config.json").is_file():
        yield Finding("architecture", "unfit", "no config.json: not from the transformers library")
        return
    try:
        config = open_config(str(folder))
    except Exception as error:  # files of other people can raise any error
        yield Finding("architecture", "unfit", f"config.json: {first_line(error)}")
        return
    yield from _inspect_architecture(config, entry)
    tokenizer, why_not = _open_tokenizer(folder)
    if tokenizer is None:
        yield Finding("tokenizer", "unfit", why_not)
    else:
        yield from _inspect_tokenizer(folder, tokenizer, config, entry)
    if config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return
    with torch.device("meta"):  # shapes without memory
        transformer: Any = loading.build_empty(config.to_dict())
    if tokenizer is not None:
        limit = loading.max_window(tokenizer, transformer)
        yield _compare("window", limit, entry, "max_pieces", "pieces at most")
    yield _inspect_weights(folder, transformer)


def _compare(subject: str, found: Any, entry: Encoder | None, field: str, unit: str) -> Finding:
    shown = f"{found:,}" if isinstance(found, int) else str(found)
    text = f"{shown} {unit}".strip()
    if entry is None or found == (wanted := getattr(entry, field)):
        return Finding(subject, "ok", text)
    doubt = ", which no source confirms" if field in entry.unconfirmed else ""
    wanted = f"{wanted:,}" if isinstance(wanted, int) else wanted
    return Finding(subject, "differs", f"{text}; the catalogue has {wanted}{doubt}")


def _inspect_architecture(config: Any, entry: Encoder | None) -> Iterator[Finding]:
    kind = config.model_type
    if kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES or config.is_encoder_decoder:
        why = f"{kind}: not an encoder that predicts masked pieces, like BERT"
        yield Finding("architecture", "unfit", why)
        return
    yield _compare("architecture", kind, entry, "architecture", "")
    yield _compare("layers", config.num_hidden_layers, entry, "layers", "")
    yield _compare("width", config.hidden_size, entry, "width", "")


def _open_tokenizer(folder: Path) -> tuple[PreTrainedTokenizerFast | None, str]:
    """Open the fast tokenizer, or return None and the reason why there is none."""
    try:
        tokenizer = open_tokenizer(str(folder))
    except Exception as error:  # files of other people can raise any error
        return None, f"cannot be opened: {first_line(error)}"
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        return None, (
            f"{type(tokenizer).__name__} has no fast version: convert it, or use another encoder"
        )
    return tokenizer, ""


def _inspect_tokenizer(
    folder: Path, tokenizer: PreTrainedTokenizerFast, config: Any, entry: Encoder | None
) -> Iterator[Finding]:
    made = "" if (folder / "tokenizer.json").is_file() else ", made from its vocabulary files"
    yield _compare("tokenizer", tokenizer_kind(tokenizer), entry, "tokenizer", f"(fast{made})")
    special = find_special_pieces(tokenizer)
    if not special.n:
        yield Finding("tokenizer", "note", "puts no special pieces around a text")
    n_pieces = len(tokenizer)
    if n_pieces > config.vocab_size:
        why = f"{n_pieces:,} pieces, but the encoder has vectors for {config.vocab_size:,} only"
        yield Finding("vocabulary", "unfit", why)
    else:
        yield _inspect_vocabulary(n_pieces, config.vocab_size, entry)
    yield _inspect_casing(tokenizer, entry)


def tokenizer_kind(tokenizer: PreTrainedTokenizerFast) -> str:
    """Find the kind of a tokenizer: one of the catalogue's, or the name of its model."""
    spec = json.loads(tokenizer.backend_tokenizer.to_str())
    model = spec["model"]["type"]
    if model == "BPE" and '"ByteLevel"' in json.dumps([spec["pre_tokenizer"], spec["decoder"]]):
        return "bytes"
    return str(model).lower()


def _inspect_vocabulary(n_pieces: int, n_vectors: int, entry: Encoder | None) -> Finding:
    text = f"{n_pieces:,} pieces"
    if n_vectors != n_pieces:
        text += f", {n_vectors:,} vectors"
    known = entry.vocabulary if entry else {}
    if not known:
        return Finding("vocabulary", "ok", text)
    sources = "; ".join(f"{size:,}: {who}" for size, who in known.items())
    if not known.keys() & {n_pieces, n_vectors}:
        doubt = ", which no source confirms" if entry and "vocabulary" in entry.unconfirmed else ""
        return Finding("vocabulary", "differs", f"{text}; the catalogue has {sources}{doubt}")
    return Finding(
        "vocabulary", "ok", f"{text}; sources differ ({sources})" if len(known) > 1 else text
    )


def lost_letters(tokenizer: PreTrainedTokenizerFast) -> list[str]:
    """List which of "case" and "accents" the normaliser removes."""
    normalizer = tokenizer.backend_tokenizer.normalizer

    def normalize(text: str) -> str:
        return unicodedata.normalize("NFC", normalizer.normalize_str(text) if normalizer else text)

    pairs = {"case": ("Á", "á"), "accents": ("á", "a")}
    return [what for what, (one, other) in pairs.items() if normalize(one) == normalize(other)]


def _inspect_casing(tokenizer: PreTrainedTokenizerFast, entry: Encoder | None) -> Finding:
    lost = lost_letters(tokenizer)
    if not lost:
        if entry and not entry.cased:
            return Finding("letters", "differs", "case and accents kept; the catalogue has uncased")
        return Finding("letters", "ok", "case and accents kept")
    text = f"{' and '.join(lost)} lost before the encoder sees the text"
    if entry and entry.cased:
        remedy = 'put {"do_lower_case": false} into tokenizer_config.json'
        return Finding("letters", "differs", f"{text}, but it was trained with them: {remedy}")
    return Finding("letters", "note", f"{text} (año = ano): names and Spanish are harder")


def _inspect_weights(folder: Path, transformer: Any) -> Finding:
    try:
        file, shapes = read_shapes(folder)
    except BioclinError as error:
        return Finding("weights", "unfit", str(error))
    prefix = f"{transformer.base_model_prefix}."
    found = {_modern_name(name.removeprefix(prefix)): shape for name, shape in shapes.items()}
    wanted = {name: tuple(weight.shape) for name, weight in transformer.state_dict().items()}
    if missing := sorted(wanted.keys() - found.keys()):
        why = f"{file} lacks {len(missing)} of {len(wanted)} weights, {missing[0]} first"
        return Finding("weights", "unfit", why)
    for name, shape in wanted.items():
        if found[name] != shape:
            why = f"{file}: {name} is {found[name]}, but config.json wants {shape}"
            return Finding("weights", "unfit", why)
    n_weights = sum(weight.numel() for weight in transformer.parameters())
    text = f"{n_weights:,} in {file}"
    if not file.endswith(".bin"):
        return Finding("weights", "ok", text)
    return Finding("weights", "note", f"{text}, a pickle, which needs torch 2.6 or later")


def _modern_name(name: str) -> str:
    """Rename the weights of layer norms in files that were converted from TensorFlow."""
    stem, dot, last = name.rpartition(".")
    return stem + dot + {"gamma": "weight", "beta": "bias"}.get(last, last)


def read_shapes(folder: Path) -> tuple[str, dict[str, Shape]]:
    """Read the names and shapes of the weights, without their content.

    RETURNS (tuple): The first file of the weights, and name → shape.
    RAISES (BioclinError): There are no weights, or they cannot be read.
    """
    for file in ("model.safetensors", "pytorch_model.bin"):
        index = read_json(folder / f"{file}.index.json").get("weight_map", {})
        files = sorted({Path(str(name)).name for name in dict(index).values()}) or [file]
        there = [name for name in files if (folder / name).is_file()]
        if not there:
            continue
        if len(there) < len(files):
            raise BioclinError(f"{len(files) - len(there)} of {len(files)} files are missing")
        shapes: dict[str, Shape] = {}
        for name in files:
            try:
                shapes |= _file_shapes(folder / name)
            except Exception as error:  # files of other people can raise any error
                raise BioclinError(f"{name} cannot be read: {first_line(error)}") from error
        return files[0], shapes
    raise BioclinError("no model.safetensors and no pytorch_model.bin")


def _file_shapes(path: Path) -> dict[str, Shape]:
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, framework="pt") as file:
                return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"damaged or cut short ({error})") from error
    weights = torch.load(path, map_location="meta", weights_only=True)
    return {name: tuple(weight.shape) for name, weight in weights.items()}
