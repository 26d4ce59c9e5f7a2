"""Give a pretrained encoder another vocabulary: keep its layers and make new piece vectors."""

from typing import Any

import torch
from torch import nn
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

from ..encoders.files import open_tokenizer
from ..encoders.loading import open_model, position_padding_id, quiet
from ..errors import BioclinError

# Roles of special pieces, whatever their names.
SPECIAL = ("cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
WORD_START = "Ġ▁"


def change_vocabulary(
    source: str, tokenizer: PreTrainedTokenizerFast, *, layers: int | None = None
) -> Any:
    """Open a pretrained encoder and give it this vocabulary.

    The vector of a new piece is the mean of the vectors of the pieces that the old tokenizer splits
    it into (without case and accents if that tokenizer ignores them), or the mean of all vectors if
    the old tokenizer does not know it. A special piece gets the vector of the old piece with the
    same role.

    source (str): Folder or hub name of the encoder.
    layers (int | None): Keep only this many of the lowest layers. The upper ones are closest to the
        original task of the encoder (Sajjad et al. 2023).
    RETURNS (transformers.PreTrainedModel): Encoder with a masked-language-model head, in fp32.
    RAISES (BioclinError): The encoder has fewer layers, its layers cannot be found, or it counts
        positions from the id of padding and the new vocabulary has another id.
    """
    model, _ = open_model(AutoModelForMaskedLM, source)
    old = open_tokenizer(source)
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
    _reset_output_bias(model)
    if layers is not None:
        keep_lowest_layers(model, layers)
    return model


def new_vectors(
    old: PreTrainedTokenizerFast, new: PreTrainedTokenizerFast, vectors: torch.Tensor
) -> torch.Tensor:
    """Compute the vectors of a new vocabulary. See `change_vocabulary`.

    vectors (Tensor): (n_old_pieces, width).
    RETURNS (Tensor): (n_new_pieces, width).
    """
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
    """Split a new piece with this text into pieces of the old tokenizer.

    A piece from inside a word is split as inside a word: WordPiece marks what continues a word,
    SentencePiece what begins one.
    """
    is_inside = piece.startswith("##") or (piece[0] not in WORD_START and text[:1].isalpha())
    text = text.removeprefix("##").strip()
    if is_inside:
        normalizer = old.backend_tokenizer.normalizer
        inside = "##" + (normalizer.normalize_str(text) if normalizer else text)
        if inside in known:
            return [known[inside]]
        if "▁" in known:
            if text in known:
                return [known[text]]
            # With a letter before it, the text does not begin the word.
            ids = old("a" + text, add_special_tokens=False, verbose=False)["input_ids"]
            if old.convert_ids_to_tokens(ids[:1]) == ["▁a"]:
                return [i for i in ids[1:] if i != old.unk_token_id]
    ids = old(text, add_special_tokens=False, verbose=False)["input_ids"]
    return [i for i in ids if i != old.unk_token_id]


def keep_lowest_layers(model: nn.Module, n_layers: int) -> None:
    """Remove the upper layers of a model, in place.

    RAISES (BioclinError): The model has fewer layers, or its layers cannot be found.
    """
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
    cut_attention_windows(config)


def cut_attention_windows(config: Any) -> None:
    """Adapt a Longformer's list of attention windows to its number of layers."""
    if isinstance(getattr(config, "attention_window", None), list):
        config.attention_window = config.attention_window[: config.num_hidden_layers]


def _reset_output_bias(model: Any) -> None:
    """Set the output bias, which has a number for each piece of the old vocabulary, to zero."""
    output = model.get_output_embeddings()
    if output is not None and output.bias is not None:
        nn.init.zeros_(output.bias)
    model.tie_weights()
