"""A compact encoder built on the spot: random weights, vocabulary learnt from given texts.

It lets a pipeline be trained where no pretrained encoder can be had. It knows nothing yet.
"""

from collections.abc import Iterable
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModel

from ..errors import BioclinError
from .vocabulary import MAX_PIECES, learn_vocabulary

HEAD_WIDTH = 64


def build_compact_encoder(
    texts: Iterable[str], folder: Path, *, vocab_size: int, layers: int, width: int, seed: int
) -> int:
    """Write a random encoder with its own vocabulary, as the transformers library does.

    It is RoBERTa with the layer norms before the sublayers: those learn from random weights where
    BERT's order needs a long warm-up (Xiong et al. 2020).

    folder (Path): Gets config.json, model.safetensors and the tokenizer files.
    layers, width (int): Shape; the width is a multiple of 64, one attention head per 64.
    seed (int): Of the weights.
    RETURNS (int): Number of weights.
    """
    if layers < 1 or width < HEAD_WIDTH or width % HEAD_WIDTH:
        raise BioclinError(
            f"layers = {layers}, width = {width}: at least one layer, and a width that is a "
            f"multiple of {HEAD_WIDTH}"
        )
    tokenizer = learn_vocabulary(texts, size=vocab_size, kind="bpe")
    config = AutoConfig.for_model(
        "roberta-prelayernorm",
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // HEAD_WIDTH,
        intermediate_size=4 * width,
        max_position_embeddings=MAX_PIECES + tokenizer.pad_token_id + 1,
        type_vocab_size=2,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        # Keeps the scale of the activations at this width; BERT's 0.02 is made for 768.
        initializer_range=width**-0.5,
    )
    torch.manual_seed(seed)
    model = AutoModel.from_config(config, add_pooling_layer=False)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()
