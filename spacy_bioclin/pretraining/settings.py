"""How `bioclin pretrain`, `bioclin distill` and `bioclin align-encoder` train.
Nothing heavy is imported here: the command line reads the defaults."""

from collections.abc import Mapping
from typing import NamedTuple


class Settings(NamedTuple):
    """How to train; the command line has one option for each.

    steps (int): Updates.
    batch_pieces (int): Pieces of an update, over all devices.
    length (int): Pieces of a block.
    learn_rate (float): Its peak, after a warm-up over 6 % of the steps; then linear decay.
    mask_rate (float), whole_words (bool): See `blocks.Masking`.
    shares (Mapping[str, float]): Language -> share of the training text; empty: all the same.
    dropout (float): Of the hidden layers; 0 is best where text is seen once or twice.
    every (int): Updates between two evaluations, each of which leaves a checkpoint.
    precision (str): As everywhere, see `encoders.precision`.
    seed (int): Of the order, the masks and new weights.
    max_seconds (float): Stop with a checkpoint after this time; 0: never.
    """

    steps: int = 10_000
    batch_pieces: int = 8192
    length: int = 256
    learn_rate: float = 5e-4
    mask_rate: float = 0.15
    whole_words: bool = False
    shares: Mapping[str, float] = {}
    dropout: float = 0.0
    every: int = 500
    precision: str = "auto"
    seed: int = 0
    max_seconds: float = 0


DEFAULTS = Settings()


class AlignSettings(NamedTuple):
    """How to align an encoder on synonyms.

    steps (int): Updates.
    batch_pairs (int): Pairs of names of an update.
    learn_rate (float): Its peak, after a warm-up over 6 % of the steps; then linear decay.
    precision (str): As everywhere, see `encoders.precision`.
    seed (int): Of the pairs and their order.
    max_seconds (float): Stop with a checkpoint after this time; 0: never.
    """

    steps: int = 2000
    batch_pairs: int = 256
    learn_rate: float = 1e-4
    precision: str = "auto"
    seed: int = 0
    max_seconds: float = 0


ALIGN_DEFAULTS = AlignSettings()
