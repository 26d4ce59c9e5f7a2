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
    warmup: Annotated[
        float, Doc("Share (below 1) or number of the steps before the peak learning rate")
    ] = 0.06
    precision: Annotated[str, Doc("auto, bf16, fp16 or fp32")] = "auto"
    seed: Annotated[int, Doc("Random seed for data, masks and new weights")] = 0
    max_seconds: Annotated[float, Doc("Stop with a checkpoint after this time; 0 for no limit")] = 0


@dataclass(frozen=True, kw_only=True)
class PretrainSettings(TrainerSettings):
    """Settings of masked-language-model training, also with a teacher.

    shares (Mapping[str, float]): Language or part of the corpus -> share of the training text;
        empty for equal shares of the languages, see `text.corpus.resolve_shares`.
    """

    batch_pieces: Annotated[int, Doc("Pieces per update, over all devices")] = 8192
    batch_sequences: Annotated[
        int, Doc("Inputs of --length pieces per update, instead of --batch-pieces")
    ] = 0
    device_pieces: Annotated[
        int,
        Doc("Pieces that fit on a device at once: larger batches are accumulated; 0 for no limit"),
    ] = 0
    length: Annotated[int, Doc("Pieces per input of the encoder")] = 256
    mask_rate: Annotated[float, Doc("Share of the pieces to predict")] = 0.15
    whole_words: Annotated[bool, Doc("Mask words instead of pieces")] = False
    # 0 is best where text is seen once or twice.
    dropout: Annotated[float, Doc("Dropout of the hidden layers")] = 0.0
    attention_dropout: Annotated[float, Doc("Dropout of the attention weights")] = 0.0
    optimizer: Annotated[str, Doc("adamw, or lamb for batches of many thousand inputs")] = "adamw"
    beta1: Annotated[float, Doc("Decay rate of the optimizer's first moment")] = 0.9
    beta2: Annotated[float, Doc("Decay rate of the optimizer's second moment")] = 0.98
    epsilon: Annotated[float, Doc("Term in the optimizer's denominator")] = 1e-6
    weight_decay: Annotated[float, Doc("Weight decay, except of biases and layer norms")] = 0.01
    clip: Annotated[float, Doc("Longest gradient, over all weights; 0 for no clipping")] = 1.0
    decay_power: Annotated[
        float, Doc("Power of the decay of the learning rate: 1 is linear, 0.5 is slower at first")
    ] = 1.0
    every: Annotated[int, Doc("Updates between evaluations, each with a checkpoint")] = 500
    balance: Annotated[bool, Doc("Equal shares of all sources of the corpus")] = False
    shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let a number of inputs set the number of pieces."""
        if self.batch_sequences:
            object.__setattr__(self, "batch_pieces", self.batch_sequences * self.length)


@dataclass(frozen=True, kw_only=True)
class AlignSettings(TrainerSettings):
    """Settings of the alignment on synonyms."""

    steps: Steps = 2000
    learn_rate: LearnRate = 1e-4
    batch_pairs: Annotated[int, Doc("Pairs of names per update")] = 256
