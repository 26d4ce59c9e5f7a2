"""Make encoders with random weights: plain RoBERTa and BERT, and RoBERTa with early layer norms."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, PreTrainedTokenizerFast

from ..errors import BioclinError
from .vocabulary import MAX_PIECES

KINDS = ("roberta-prelayernorm", "roberta", "bert")
HEAD_WIDTH = 64
BERT_RANGE = 0.02  # of the random weights (Devlin et al. 2019), for a width of 768 and more


class Shape(NamedTuple):
    """Size of an encoder.

    kind (str): "roberta" and "bert" have the layer norms after the sublayers, as in the papers;
        "roberta-prelayernorm" before them. This order learns from random weights, while the other
        needs a long warm-up (Xiong et al. 2020).
    layers (int): Number of layers.
    width (int): Vector size.
    heads (int | None): Attention heads; None for one per 64.
    inner (int | None): Width between the two matrices of a layer; None for four times the width.
    """

    kind: str = KINDS[0]
    layers: int = 4
    width: int = 256
    heads: int | None = None
    inner: int | None = None


def check_shape(shape: Shape) -> int:
    """Check the size of an encoder.

    RETURNS (int): Number of attention heads.
    RAISES (BioclinError): The kind is unknown, there is no layer, or the width is not a multiple of
        the heads.
    """
    kind, layers, width = shape.kind, shape.layers, shape.width
    if kind not in KINDS:
        raise BioclinError(f"kind = {kind!r}: it must be one of {', '.join(KINDS)}")
    if layers < 1 or width < 1 or (shape.heads is None and width % HEAD_WIDTH):
        raise BioclinError(
            f"layers = {layers}, width = {width}: at least one layer, and a width that is a "
            f"multiple of {HEAD_WIDTH}"
        )
    heads = width // HEAD_WIDTH if shape.heads is None else shape.heads
    if heads < 1 or width % heads:
        raise BioclinError(f"heads = {heads}: want a number that divides the width, {width}")
    return heads


class SpecialIds(NamedTuple):
    """Ids of the special pieces of a vocabulary: padding, first and last of a text."""

    pad: int
    first: int
    last: int


def make_config(shape: Shape, vocab_size: int, ids: SpecialIds) -> Any:
    """Describe an encoder.

    RETURNS (transformers.PretrainedConfig): The config.
    RAISES (BioclinError): See `check_shape`.
    """
    heads, kind, width = check_shape(shape), shape.kind, shape.width
    more: dict[str, Any] = {
        "roberta-prelayernorm": {
            "type_vocab_size": 2,
            # Keeps the scale of the activations at this width.
            "initializer_range": width**-0.5,
        },
        "roberta": {
            "type_vocab_size": 1,
            "layer_norm_eps": 1e-5,
            "initializer_range": BERT_RANGE,
        },
        "bert": {"type_vocab_size": 2, "initializer_range": BERT_RANGE},
    }[kind]
    positions, named = MAX_PIECES, {"pad_token_id": ids.pad}
    if kind != "bert":
        positions += ids.pad + 1  # positions are counted from that of padding
        named |= {"bos_token_id": ids.first, "eos_token_id": ids.last}
    return AutoConfig.for_model(
        kind,
        vocab_size=vocab_size,
        hidden_size=width,
        num_hidden_layers=shape.layers,
        num_attention_heads=heads,
        intermediate_size=shape.inner or 4 * width,
        max_position_embeddings=positions,
        **named,
        **more,
    )


def write_encoder(
    tokenizer: PreTrainedTokenizerFast, shape: Shape, folder: Path, *, seed: int
) -> int:
    """Write an encoder with random weights for the transformers library.

    folder (Path): Folder for config.json, model.safetensors and the tokenizer files.
    seed (int): Random seed for the weights.
    RETURNS (int): Number of weights.
    RAISES (BioclinError): See `make_config`.
    """
    ids = SpecialIds(tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id)
    config = make_config(shape, len(tokenizer), ids)
    torch.manual_seed(seed)
    model = AutoModel.from_config(config, add_pooling_layer=False)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()


def outline_model(shape: Shape, vocab_size: int) -> Any:
    """Make an encoder with its head for masked pieces, without memory for the weights.

    RETURNS (transformers.PreTrainedModel): On torch's device "meta".
    """
    with torch.device("meta"):
        return AutoModelForMaskedLM.from_config(make_config(shape, vocab_size, SpecialIds(1, 0, 2)))
