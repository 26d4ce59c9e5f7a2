"""A compact encoder built on the spot: random weights, vocabulary learnt from given texts.

It lets a pipeline be trained where no pretrained encoder can be had. It knows nothing yet.
"""

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from ..errors import BioclinError

SPECIAL = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
MAX_PIECES = 512
HEAD_WIDTH = 64


def learn_vocabulary(texts: Iterable[str], *, size: int) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE vocabulary (Radford et al. 2019): it keeps case and accents, no
    character is unknown to it, and equal texts give equal pieces (the library's WordPiece trainer
    breaks ties by chance).

    texts (Iterable[str]): What to learn from.
    size (int): Largest number of pieces, special ones included.
    RETURNS (PreTrainedTokenizerFast): Puts <s> and </s> around a text.
    RAISES (BioclinError): If the texts hold no word, or the size does not hold the 256 bytes.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    smallest = len(alphabet) + len(SPECIAL)
    if size <= smallest:
        raise BioclinError(f"vocab_size = {size}: it must be more than {smallest}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=2,
            special_tokens=list(SPECIAL.values()),
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    if tokenizer.get_vocab_size() <= smallest:
        raise BioclinError("The texts hold no words to learn a vocabulary from")
    pair = [(SPECIAL[name], tokenizer.token_to_id(SPECIAL[name])) for name in ("eos", "bos")]
    tokenizer.post_processor = processors.RobertaProcessing(*pair, add_prefix_space=False)
    names = {"pad_token": "pad", "unk_token": "unk", "mask_token": "mask"}
    names |= {"cls_token": "bos", "bos_token": "bos", "sep_token": "eos", "eos_token": "eos"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=MAX_PIECES,
        **{key: SPECIAL[name] for key, name in names.items()},
    )


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
    tokenizer = learn_vocabulary(texts, size=vocab_size)
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
