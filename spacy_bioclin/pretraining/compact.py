"""Make a compact encoder with random weights and a vocabulary learnt from texts.

It allows training a pipeline without a pretrained encoder. It is not pretrained itself.
"""

from collections.abc import Iterable
from pathlib import Path

from .architecture import KINDS, Shape, check_shape, write_encoder
from .vocabulary import learn_vocabulary


def build_compact_encoder(
    texts: Iterable[str],
    folder: Path,
    *,
    vocab_size: int,
    layers: int,
    width: int,
    seed: int,
    kind: str = KINDS[0],
) -> int:
    """Write an encoder with random weights and its own vocabulary for the transformers library.

    texts (Iterable[str]): Texts to learn the vocabulary from, as byte-level BPE.
    folder (Path): Folder for config.json, model.safetensors and the tokenizer files.
    vocab_size (int): Largest number of pieces.
    layers (int): Number of layers.
    width (int): Vector size, a multiple of 64. There is one attention head per 64.
    seed (int): Random seed for the weights.
    kind (str): Architecture, see `Shape`.
    RETURNS (int): Number of weights.
    RAISES (BioclinError): There is no layer, or the width is not a multiple of 64.
    """
    shape = Shape(kind, layers, width)
    check_shape(shape)
    tokenizer = learn_vocabulary(texts, size=vocab_size, kind="bpe")
    return write_encoder(tokenizer, shape, folder, seed=seed)
