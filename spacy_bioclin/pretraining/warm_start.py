"""A pretrained encoder with another vocabulary: layers stay, piece vectors are made anew."""

from typing import Any

import torch
from torch import nn
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast

from ..encoders.loading import position_padding_id, quiet
from ..errors import BioclinError

# Special pieces do the same thing under any name.
SPECIAL = ("cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
WORD_START = "Ġ▁"


def change_vocabulary(
    source: str, tokenizer: PreTrainedTokenizerFast, *, layers: int | None = None
) -> Any:
    """Open a pretrained encoder and give it this vocabulary.

    A new piece starts as the mean of the vectors of the pieces that the old tokenizer cuts it into
    (an uncased or unaccented one sees it without case and accents); a special piece takes over the
    vector of the old one of its kind. What the old tokenizer knows nothing of starts as the mean of
    all its vectors.

    source (str): Folder or hub name of the encoder.
    layers (int | None): Keep only that many of the lowest layers; the upper ones are nearest to the
        task that the encoder was made for (Sajjad et al. 2023).
    RETURNS (transformers.PreTrainedModel): Encoder with a masked-language-model head, in fp32.
    RAISES (BioclinError): If the encoder has fewer layers, or its layers cannot be found, or it
        counts positions from padding and the new vocabulary has that elsewhere.
    """
    with quiet():
        model = AutoModelForMaskedLM.from_pretrained(source, torch_dtype=torch.float32)
    old = AutoTokenizer.from_pretrained(source, use_fast=True)
    padding_id = position_padding_id(model.base_model)
    if padding_id not in (None, tokenizer.pad_token_id):
        raise BioclinError(
            f"{source} counts positions from its padding, piece {padding_id}, which is piece "
            f"{tokenizer.pad_token_id} of the new vocabulary: learn that with --kind bpe"
        )
    vectors = new_vectors(old, tokenizer, model.get_input_embeddings().weight.detach())
    with quiet():
        model.resize_token_embeddings(len(tokenizer))
    embeddings = model.get_input_embeddings()
    with torch.no_grad():
        embeddings.weight.copy_(vectors)
    embeddings.padding_idx = tokenizer.pad_token_id
    for name in ("pad", "bos", "eos"):
        setattr(model.config, f"{name}_token_id", getattr(tokenizer, f"{name}_token_id"))
    _forget_old_pieces(model)
    if layers is not None:
        keep_lowest_layers(model, layers)
    return model


def new_vectors(
    old: PreTrainedTokenizerFast, new: PreTrainedTokenizerFast, vectors: torch.Tensor
) -> torch.Tensor:
    """RETURNS (Tensor): (n_new_pieces, width), made of the old (n_old_pieces, width)."""
    made = vectors.mean(dim=0).repeat(len(new), 1)
    known = old.get_vocab()
    for i, piece in enumerate(new.convert_ids_to_tokens(list(range(len(new))))):
        pieces = _old_pieces(old, known, piece, new.convert_tokens_to_string([piece]))
        if pieces:
            made[i] = vectors[pieces].mean(dim=0)
    for name in SPECIAL:
        old_id, new_id = (getattr(t, f"{name}_id") for t in (old, new))
        if old_id is not None and new_id is not None:
            made[new_id] = vectors[old_id]
    return made


def _old_pieces(
    old: PreTrainedTokenizerFast, known: dict[str, int], piece: str, text: str
) -> list[int]:
    """RETURNS (list[int]): What the old tokenizer cuts a new piece, with this text, into. A piece
    from inside a word is looked up as such."""
    is_inside = piece.startswith("##") or (piece[0] not in WORD_START and text[:1].isalpha())
    text = text.removeprefix("##").strip()
    if is_inside:
        normalizer = old.backend_tokenizer.normalizer
        inside = "##" + (normalizer.normalize_str(text) if normalizer else text)
        if inside in known:
            return [known[inside]]
    ids = old(text, add_special_tokens=False, verbose=False)["input_ids"]
    return [i for i in ids if i != old.unk_token_id]


def keep_lowest_layers(model: nn.Module, n_layers: int) -> None:
    """Cut the upper layers off, in place."""
    config: Any = model.config
    if not 1 <= n_layers <= config.num_hidden_layers:
        raise BioclinError(
            f"layers = {n_layers}: keep 1 to {config.num_hidden_layers}, as many as there are"
        )
    stacks = [
        module
        for module in model.modules()
        if isinstance(module, nn.ModuleList) and len(module) == config.num_hidden_layers
    ]
    if len(stacks) != 1:
        raise BioclinError(
            f"The layers of a {config.model_type} encoder were not found: start without --layers"
        )
    del stacks[0][n_layers:]
    config.num_hidden_layers = n_layers
    if isinstance(getattr(config, "attention_window", None), list):  # Longformer: one a layer
        config.attention_window = config.attention_window[:n_layers]


def _forget_old_pieces(model: Any) -> None:
    """The output bias is one number per piece of the old vocabulary."""
    output = model.get_output_embeddings()
    if output is not None and output.bias is not None:
        nn.init.zeros_(output.bias)
    model.tie_weights()
