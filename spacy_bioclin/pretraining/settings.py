"""Settings of `bioclin pretrain`, `bioclin distill` and `bioclin align-encoder`.

The commands derive their options from the fields, see `cli.pretrain.options`. They import this
module even for `--help`, so it imports nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from typing_extensions import Doc

Steps = Annotated[int, Doc("Number of updates")]
LearnRate = Annotated[float, Doc("Peak learning rate, followed by linear decay")]


@dataclass(frozen=True, kw_only=True)
class TrainerSettings:
    """Settings of any training on the Trainer of the transformers library."""

    steps: Steps = 10_000
    learn_rate: LearnRate = 5e-4
    warmup: Annotated[float, Doc("Share of the steps before the peak learning rate")] = 0.06
    precision: Annotated[str, Doc("auto, bf16, fp16 or fp32")] = "auto"
    seed: Annotated[int, Doc("Random seed for data, masks and new weights")] = 0
    max_seconds: Annotated[float, Doc("Stop with a checkpoint after this time; 0 for no limit")] = 0


@dataclass(frozen=True, kw_only=True)
class PretrainSettings(TrainerSettings):
    """Settings of masked-language-model training, also with a teacher.

    shares (Mapping[str, float]): Language -> share of the training text; empty for equal shares.
    """

    batch_pieces: Annotated[int, Doc("Pieces per update, over all devices")] = 8192
    length: Annotated[int, Doc("Pieces per input of the encoder")] = 256
    mask_rate: Annotated[float, Doc("Share of the pieces to predict")] = 0.15
    whole_words: Annotated[bool, Doc("Mask words instead of pieces")] = False
    # 0 is best where text is seen once or twice.
    dropout: Annotated[float, Doc("Dropout of the hidden layers")] = 0.0
    every: Annotated[int, Doc("Updates between evaluations, each with a checkpoint")] = 500
    shares: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AlignSettings(TrainerSettings):
    """Settings of the alignment on synonyms."""

    steps: Steps = 2000
    learn_rate: LearnRate = 1e-4
    batch_pairs: Annotated[int, Doc("Pairs of names per update")] = 256
