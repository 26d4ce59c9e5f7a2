"""Mask pieces of a block for masked-language-model training (Devlin et al. 2019)."""

from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerFast

from ..errors import BioclinError

NO_LOSS = -100  # label of a piece that is not predicted, as in torch


class Masking(NamedTuple):
    """How pieces are masked (Devlin et al. 2019).

    rate (float): Share of the pieces to predict. 80 % of these are masked, 10 % are replaced by a
        random piece, and 10 % stay.
    whole_words (bool): Choose whole words instead of pieces, until the rate is reached.
    seed (int): Random seed. Seed and position in the training determine the mask.
    """

    rate: float
    whole_words: bool
    seed: int


class Vocabulary(NamedTuple):
    """What masking needs to know about a tokenizer.

    mask_id (int): Id of the mask piece.
    pad_id (int): Id of the padding piece.
    is_special (np.ndarray): (vocab_size,) bool, pieces that are never predicted.
    starts_word (np.ndarray): (vocab_size,) bool, pieces at the start of a word.
    """

    mask_id: int
    pad_id: int
    is_special: np.ndarray
    starts_word: np.ndarray


def describe_vocabulary(tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
    """Find the special pieces of a tokenizer, and the pieces that start words.

    tokenizer (PreTrainedTokenizerFast): WordPiece ("##" continues a word), byte-level BPE ("Ġ"
        starts a word) or Unigram ("▁" starts a word).
    RAISES (BioclinError): The tokenizer has no mask piece.
    """
    if tokenizer.mask_token_id is None:
        raise BioclinError("The tokenizer has no mask piece: it cannot be used for masked pieces")
    pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    if any(piece.startswith("##") for piece in pieces):
        starts = [not piece.startswith("##") for piece in pieces]
    else:
        starts = [not piece[:1].isalnum() or piece[0] in "Ġ▁" for piece in pieces]
    special = set(tokenizer.all_special_ids)
    return Vocabulary(
        mask_id=tokenizer.mask_token_id,
        pad_id=tokenizer.pad_token_id,
        is_special=np.array([i in special for i in range(len(pieces))]),
        starts_word=np.array(starts),
    )


def mask_pieces(
    ids: np.ndarray, vocabulary: Vocabulary, masking: Masking, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Mask some pieces of a block, at least one if there is any that can be predicted.

    ids (np.ndarray): (n_pieces,) piece ids.
    RETURNS (tuple[np.ndarray, np.ndarray]): The input and the labels, both (n_pieces,).
    """
    usable = ~vocabulary.is_special[ids]
    units = np.arange(len(ids))
    if masking.whole_words:
        units = np.cumsum(vocabulary.starts_word[ids] | ~usable)
    wanted = max(1, round(masking.rate * usable.sum()))
    candidates = rng.permutation(np.unique(units[usable]))
    sizes = np.bincount(units[usable], minlength=units.max() + 1)[candidates]
    before = np.cumsum(sizes) - sizes  # pieces chosen before this unit
    chosen = usable & np.isin(units, candidates[before < wanted])
    labels = np.where(chosen, ids, NO_LOSS)
    draw = rng.random(len(ids))
    masked = np.where(chosen & (draw < 0.8), vocabulary.mask_id, ids)
    random_ids = rng.integers(0, len(vocabulary.is_special), len(ids))
    return np.where(chosen & (draw >= 0.9), random_ids, masked), labels
