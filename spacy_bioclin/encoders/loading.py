"""Open a pretrained encoder, and rebuild it from what a pipeline stores."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)
from transformers.modeling_utils import no_init_weights
from transformers.utils import logging

from ..catalog.encoders import load_encoders, match_encoder
from ..errors import BioclinError, first_line
from .hub.local import explain_missing, locate_encoder
from .layers import use_fast_layers

# Longest window if neither the tokenizer nor the encoder has a limit (relative positions).
NO_LIMIT = 1_000_000


def load_pretrained(
    name: str, transformer_config: dict[str, Any]
) -> tuple[PreTrainedTokenizerFast, Any]:
    """Open an encoder of the `transformers` library.

    name (str): Folder with config.json, tokenizer files and weights; a name in the catalogue, see
        `locate_encoder`; or a name on the hub.
    transformer_config (dict): Settings that replace those of config.json.
    RETURNS (tuple): Fast tokenizer and encoder, in fp32, on the CPU.
    RAISES (BioclinError): There is no such folder and no hub, or the tokenizer is not fast.
    """
    name = locate_encoder(name)
    folder = Path(name)
    known = match_encoder(name, load_encoders())
    if known and "/" not in name and not folder.is_dir():  # not a name of the hub
        raise BioclinError(explain_missing(known))
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise BioclinError(f"{name} holds no config.json: not a folder of the transformers library")
    try:
        config = AutoConfig.from_pretrained(name, **transformer_config)
        # A pooler is trained for sentence pairs; our heads do not read it.
        options = {"add_pooling_layer": False} if _has_pooler(config) else {}
        with quiet():
            transformer, loaded = AutoModel.from_pretrained(
                name,
                config=config,
                torch_dtype=torch.float32,
                output_loading_info=True,
                **options,
            )
        tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True)
    except (OSError, ValueError) as error:
        raise BioclinError(_explain(name, error)) from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise BioclinError(
            f"{name} has no fast tokenizer (tokenizer.json): convert it with "
            "transformers.AutoTokenizer.from_pretrained(..., use_fast=True).save_pretrained(...)"
        )
    if loaded["missing_keys"]:
        raise BioclinError(
            f"The weights in {name} lack {len(loaded['missing_keys'])} tensors of a "
            f"{config.model_type} encoder, {loaded['missing_keys'][0]} first: "
            "the file belongs to another model or is incomplete"
        )
    use_fast_layers(transformer)
    return tokenizer, transformer.float()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of `transformers` about weights of heads, which an encoder does not use."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _has_pooler(config: Any) -> bool:
    model_class = MODEL_MAPPING[type(config)]
    return "add_pooling_layer" in model_class.__init__.__code__.co_varnames


def _explain(name: str, error: Exception) -> str:
    reason = first_line(error)
    if Path(name).is_dir():
        return f"The encoder in {name} cannot be opened: {reason}"
    looks_local = name.startswith((".", "/", "~")) or os.sep in name.strip("/").replace("/", "", 1)
    if looks_local:
        return f"The encoder folder {name} does not exist"
    known = match_encoder(name, load_encoders())
    if known:
        return f"The Hugging Face hub cannot be reached. {explain_missing(known)}"
    folder = f"encoders/{name.split('/')[-1]}"
    return (
        f"Encoder {name!r} is not a local folder, and the Hugging Face hub cannot be reached: "
        f"{reason} On a machine with a network run `huggingface-cli download {name} --local-dir "
        f"{folder}`, copy the folder {folder} here, and set "
        f'`name = "{folder}"` in [components.transformer.model] '
        f"(in the project: `--vars.encoder {folder}`)"
    )


def max_window(tokenizer: PreTrainedTokenizerFast, transformer: Any) -> int:
    """Find the largest number of pieces, special ones included, that the encoder can read."""
    positions = getattr(transformer.config, "max_position_embeddings", None) or NO_LIMIT
    padding_id = position_padding_id(transformer)
    if padding_id is not None:
        positions -= padding_id + 1
    return min(positions, tokenizer.model_max_length)


def position_padding_id(transformer: Any) -> int | None:
    """Find the padding id of encoders that count positions from it + 1, as RoBERTa does.

    RETURNS (int | None): None for encoders that count from 0.
    """
    embeddings = getattr(getattr(transformer, "embeddings", None), "position_embeddings", None)
    return getattr(embeddings, "padding_idx", None)


def pack_tokenizer(tokenizer: PreTrainedTokenizerFast) -> dict[str, str]:
    """Collect what is needed to open the tokenizer again.

    RETURNS (dict): File name → content.
    """
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder, legacy_format=False)
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


def unpack_tokenizer(files: dict[str, str]) -> PreTrainedTokenizerFast:
    """Undo `pack_tokenizer`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        return AutoTokenizer.from_pretrained(folder, use_fast=True, local_files_only=True)


def build_empty(config_dict: dict[str, Any]) -> nn.Module:
    """Build an encoder whose weights are allocated but not initialised.

    config_dict (dict): Its config.json.
    """
    config = AutoConfig.for_model(**config_dict)
    options = {"add_pooling_layer": False} if _has_pooler(config) else {}
    with no_init_weights():
        # Not AutoModel, which first imports the config of every architecture and takes a second.
        transformer = MODEL_MAPPING[type(config)]._from_config(config, **options)
    use_fast_layers(transformer)
    return transformer
