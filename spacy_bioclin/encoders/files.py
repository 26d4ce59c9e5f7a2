"""Open configuration and tokenizer of an encoder whose files other people made: they are data.

No file decides what is imported, which other file is read or written, or what is downloaded. All of
`from_pretrained` that opens a folder for annotation or training goes through this module.
"""

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerFast,
)

from ..errors import BioclinError, first_line

# Settings of config.json that would import code, load other files or download: code of the folder's
# own, attention kernels from the hub, quantization libraries, other names of the weights.
IGNORED_SETTINGS = (
    "auto_map",
    "custom_pipelines",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_internal",
    "_attn_implementation_autoset",
    "quantization_config",
    "transformers_weights",
)
# The files of fast tokenizers, and of those that can be made into one. No other name is written.
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "bpe.codes",
    "dict.txt",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
# All files of an encoder that are copied with a pipeline: those above, weights, terms of use.
WEIGHT_FILE = r"(pytorch_)?model(-\d+-of-\d+)?\.(safetensors|bin)(\.index\.json)?"
ENCODER_FILE = re.compile(
    "|".join((*map(re.escape, TOKENIZER_FILES), r"config\.json", WEIGHT_FILE))
    + r"|README(\.\w+)?|LICEN[CS]E(\.\w+)?"
)
TOKENIZER_CONFIG = "tokenizer_config.json"
CHAT_TEMPLATE = "chat_template.jinja"  # up to 0.2 it was stored too; no encoder needs it
# Settings of tokenizer_config.json that name code or files: where these lie is known.
IGNORED_KEYS = re.compile(r"auto_map|custom_pipelines|tokenizer_object|.*_files?")
TOKENIZER_CLASS = re.compile(r"\w+Tokenizer(Fast)?")
# Numbers in config.json beyond which no encoder is built, by the end of the setting's name.
LIMITS = {
    re.compile(r".*(layers?|blocks?|groups?|group_num|heads|experts|depth)"): 10_000,
    re.compile(r"num_labels"): 1_000_000,
    re.compile(r".*"): 2**31,
}
MAX_JSON = 256 * 2**20  # bytes; the largest tokenizer.json of the hub has 35 MB


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file.

    RAISES (BioclinError): The file cannot be read, is far too large or something else than an
        object.
    """
    try:
        if path.stat().st_size > MAX_JSON:
            raise BioclinError(f"{path}: larger than any such file ({MAX_JSON:,} bytes)")
        return _parse(path.read_bytes(), str(path))
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None


def _parse(content: bytes | str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except RecursionError:
        raise BioclinError(f"{where}: is nested too deeply; get the file again") from None
    except ValueError:
        raise BioclinError(f"{where}: is not JSON, or was cut short; get the file again") from None
    if not isinstance(found, dict):
        raise BioclinError(f"{where}: is a JSON {type(found).__name__}, want an object {{…}}")
    return found


def check_config(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check the settings of an encoder, and leave out those that could run or load something else.

    config (Mapping): The content of config.json.
    where (str): Its source, for messages.
    RETURNS (dict): The settings that may be used.
    RAISES (BioclinError): A number is beyond all encoders, or the architecture is not a name.
    """
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise BioclinError(f"{where}: model_type is not a name")
    if kind is not None and kind not in CONFIG_MAPPING:
        raise BioclinError(
            f"{where}: model_type {kind[:100]!r} is not an architecture of the transformers "
            "library, and code in the folder is not run"
        )
    for key, value in config.items():
        limit = next(limit for form, limit in LIMITS.items() if form.fullmatch(key))
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int) and abs(number) > limit:
                raise BioclinError(f"{where}: {key} is {number}, want {limit:,} at most")
    return {
        key: value
        for key, value in config.items()
        # The configuration keeps every setting as an attribute: none may replace a method.
        if key not in IGNORED_SETTINGS and not callable(getattr(PretrainedConfig, key, None))
    }


def open_config(name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Open config.json.

    name (str): Folder, or name on the hub.
    settings (Mapping | None): Settings of the user, which replace those of the file.
    RETURNS (PretrainedConfig): The configuration.
    RAISES (BioclinError): The file is not one of an encoder.
    """
    folder = Path(name)
    if (folder / "adapter_config.json").is_file():
        raise BioclinError(
            f"{name} holds adapter_config.json, a PEFT adapter whose encoder is elsewhere: merge "
            "the adapter into the encoder (merge_and_unload), and give the folder of the result"
        )
    if folder.is_dir():
        stored = check_config(read_object(folder / "config.json"), f"{name}, config.json")
        if kind := stored.get("model_type"):
            config = CONFIG_MAPPING[kind].from_dict(stored, **(settings or {}))
            config._name_or_path = name
            return config
    config = AutoConfig.from_pretrained(name, trust_remote_code=False, **(settings or {}))
    for key in IGNORED_SETTINGS:
        if key in config.__dict__ and key not in (settings or {}):
            setattr(config, key, None)
    return config


def open_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Open the tokenizer of an encoder.

    name (str): Folder, or name on the hub.
    RETURNS (PreTrainedTokenizerFast): The tokenizer; another class if there is no fast one.
    RAISES (BioclinError): The files are damaged, or no tokenizer can be made of them.
    """
    folder = Path(name)
    if not folder.is_dir():
        return AutoTokenizer.from_pretrained(name, use_fast=True, trust_remote_code=False)
    there = [file for file in (*TOKENIZER_FILES, "config.json") if (folder / file).is_file()]
    files = {}
    for file in there:
        if (folder / file).stat().st_size > MAX_JSON:
            raise BioclinError(f"{folder / file}: larger than any such file ({MAX_JSON:,} bytes)")
        files[file] = (folder / file).read_bytes()
    return make_tokenizer(files, where=name)


def make_tokenizer(files: Mapping[str, bytes | str], where: str) -> PreTrainedTokenizerFast:
    """Make a tokenizer of the content of its files, which are written nowhere but in a new folder.

    files (Mapping): File name → content. Names other than `TOKENIZER_FILES` and config.json are
        errors.
    where (str): Their source, for messages.
    RETURNS (PreTrainedTokenizerFast): The tokenizer; another class if there is no fast one.
    RAISES (BioclinError): No tokenizer can be made of them.
    """
    contents: dict[str, bytes] = {}
    for name, content in files.items():
        if name == CHAT_TEMPLATE:
            continue
        if name not in (*TOKENIZER_FILES, "config.json"):
            raise BioclinError(
                f"{where}: {name[:100]!r} is not the name of a tokenizer's file; nothing is written"
            )
        raw = content.encode("utf-8") if isinstance(content, str) else content
        if name == "config.json":
            raw = json.dumps(check_config(_parse(raw, f"{where}, {name}"), where)).encode("utf-8")
        elif name == TOKENIZER_CONFIG:
            raw = json.dumps(_check_tokenizer(_parse(raw, f"{where}, {name}"), where)).encode()
        contents[name] = raw
    with tempfile.TemporaryDirectory(prefix="bioclin-tokenizer-") as folder:
        for name, raw in contents.items():
            (Path(folder) / name).write_bytes(raw)
        try:
            return AutoTokenizer.from_pretrained(
                folder, use_fast=True, local_files_only=True, trust_remote_code=False
            )
        except BaseException as error:
            # The Rust library panics on some damaged files, which is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            reason = first_line(error).replace(folder, where)
            raise BioclinError(f"{where}: no tokenizer can be made: {reason}") from None


def _check_tokenizer(config: dict[str, Any], where: str) -> dict[str, Any]:
    """Leave out settings of a tokenizer that name code or files."""
    kind = config.get("tokenizer_class")
    if kind is not None and not (isinstance(kind, str) and TOKENIZER_CLASS.fullmatch(kind)):
        raise BioclinError(f"{where}: tokenizer_class is {str(kind)[:100]!r}, not a tokenizer")
    length = config.get("model_max_length", 0)
    if not isinstance(length, int | float) or not length >= 0:
        raise BioclinError(f"{where}: model_max_length is not a number of pieces")
    return {key: value for key, value in config.items() if not IGNORED_KEYS.fullmatch(key)}
