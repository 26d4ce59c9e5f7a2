"""Open a pretrained encoder, and rebuild it from what a pipeline stores."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, PreTrainedTokenizerFast
from transformers.modeling_utils import no_init_weights
from transformers.utils import logging

from ..catalog.encoders import load_encoders, match_encoder
from ..errors import BioclinError, first_line
from ..torch_bridge.outline import check_finite
from .files import (
    TOKENIZER_FILES,
    check_config,
    make_tokenizer,
    open_config,
    open_tokenizer,
    read_object,
)
from .hub.local import explain_missing, locate_encoder
from .layers import use_fast_layers
from .pieces import whole_text_tokenizer

# Longest window if neither the tokenizer nor the encoder has a limit (relative positions).
NO_LIMIT = 1_000_000
WEIGHTS = ("model.safetensors", "pytorch_model.bin")


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
    with explained(name):
        config = open_config(name, transformer_config)
        # A pooler is trained for sentence pairs; our heads do not read it.
        options = {"add_pooling_layer": False} if _has_pooler(config) else {}
        tokenizer = open_tokenizer(name)
    transformer, loaded = open_model(AutoModel, name, config=config, **options)
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
    check_pieces(tokenizer, transformer, name)
    use_fast_layers(transformer)
    whole_text_tokenizer(tokenizer)
    return tokenizer, transformer.float()


def open_model(kind: Any, name: str, **options: Any) -> tuple[Any, dict[str, list[str]]]:
    """Open the weights of an encoder in fp32, without running code of its folder.

    kind (Any): Class of the transformers library, such as `AutoModel`.
    name (str): Folder, or name on the hub.
    options (Any): More arguments of `from_pretrained`.
    RETURNS (tuple): The model, and which weights are missing or unexpected.
    RAISES (BioclinError): The weights cannot be read, are not finite numbers, or are in files
        outside of the folder.
    """
    with explained(name), quiet():
        options.setdefault("config", open_config(name))
        for file in WEIGHTS:
            _check_index(Path(name, f"{file}.index.json"))
        model, loaded = kind.from_pretrained(
            name,
            torch_dtype=torch.float32,
            output_loading_info=True,
            trust_remote_code=False,
            **options,
        )
        check_finite(model.state_dict())
    return model, loaded


def _check_index(path: Path) -> None:
    """Check that the parts of the weights are in the folder of their table of contents."""
    if not path.is_file():
        return
    parts = read_object(path).get("weight_map")
    names = parts.values() if isinstance(parts, dict) else [parts]
    if bad := [name for name in names if not isinstance(name, str) or Path(name).name != name]:
        raise BioclinError(f"{path.name}: {str(bad[0])[:100]!r} is not a file of this folder")


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Let whatever is wrong with the files of an encoder be one line that names it.

    RAISES (BioclinError): Something is.
    """
    try:
        yield
    except Exception as error:  # files of other people can raise any error
        raise BioclinError(_explain(name, error)) from None


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
        return f"The encoder in {name} cannot be opened: {reason.removeprefix(f'{name}, ')}"
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


def check_pieces(tokenizer: PreTrainedTokenizerFast, transformer: Any, where: str) -> None:
    """Check that the encoder has a vector for every piece of its tokenizer.

    where (str): Their source, for the message.
    RAISES (BioclinError): A piece has a number beyond the encoder's vocabulary.
    """
    rows = getattr(transformer.get_input_embeddings(), "num_embeddings", None)
    # Those around a text are stated apart from the vocabulary.
    ids = [*tokenizer.get_vocab().values(), *tokenizer("")["input_ids"]]
    if rows is not None and (last := max(ids, default=0)) >= rows:
        raise BioclinError(
            f"{where}: the tokenizer has a piece number {last:,}, and the encoder vectors for "
            f"{rows:,}: the files are of two encoders; get both again"
        )


def pack_tokenizer(tokenizer: PreTrainedTokenizerFast) -> dict[str, str]:
    """Collect what is needed to open the tokenizer again.

    RETURNS (dict): File name → content.
    """
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder, legacy_format=False)
        files = [Path(folder, name) for name in sorted(TOKENIZER_FILES)]
        return {path.name: path.read_text(encoding="utf-8") for path in files if path.is_file()}


def unpack_tokenizer(files: dict[str, str]) -> PreTrainedTokenizerFast:
    """Undo `pack_tokenizer`. RAISES (BioclinError): The files are not those of a fast tokenizer."""
    tokenizer = make_tokenizer(files, where="the stored tokenizer")
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise BioclinError("the stored tokenizer is not a fast one: the file was changed")
    whole_text_tokenizer(tokenizer)
    return tokenizer


def build_empty(config_dict: dict[str, Any]) -> nn.Module:
    """Build an encoder whose weights are allocated but not initialised.

    config_dict (dict): Its config.json.
    RAISES (BioclinError): See `check_config`.
    """
    config = AutoConfig.for_model(**check_config(config_dict, "the stored config.json"))
    options = {"add_pooling_layer": False} if _has_pooler(config) else {}
    with no_init_weights():
        # Not AutoModel, which first imports the config of every architecture and takes a second.
        transformer = MODEL_MAPPING[type(config)]._from_config(config, **options)
    use_fast_layers(transformer)
    return transformer
