"""Make a compact encoder with random weights and a vocabulary learnt from texts.

It allows training a pipeline without a pretrained encoder. It is not pretrained itself.
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
    """Write an encoder with random weights and its own vocabulary for the transformers library.

    It is RoBERTa with the layer norms before the sublayers. This order learns from random weights,
    while BERT's order needs a long warm-up (Xiong et al. 2020).

    texts (Iterable[str]): Texts to learn the vocabulary from.
    folder (Path): Folder for config.json, model.safetensors and the tokenizer files.
    vocab_size (int): Largest number of pieces.
    layers (int): Number of layers.
    width (int): Vector size, a multiple of 64. There is one attention head per 64.
    seed (int): Random seed for the weights.
    RETURNS (int): Number of weights.
    RAISES (BioclinError): There is no layer, or the width is not a multiple of 64.
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
        # Keeps the scale of the activations at this width. BERT's 0.02 is for a width of 768.
        initializer_range=width**-0.5,
    )
    torch.manual_seed(seed)
    model = AutoModel.from_config(config, add_pooling_layer=False)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()
