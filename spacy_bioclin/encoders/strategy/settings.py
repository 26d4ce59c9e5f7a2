"""Fine-tuning strategies: which weights of a pretrained encoder learn, and how fast.

The settings and their checks; `Tuning` carries them out.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from ... import settings
from ...errors import BioclinError

SECTION = "[components.transformer.model.strategy]"
LAYER_KEYS = ("freeze_layers", "reinit_layers", "layer_decay", "unfreeze_steps")
# Settings that have no effect if only low-rank differences are learned.
WITHOUT_LORA = ("reinit_layers", "mixout", "pretrained_decay")
# Settings with which the embeddings have no gradient, always or at first.
WITHOUT_EMBEDDINGS = ("freeze_embeddings", "freeze_layers", "unfreeze_steps", "lora_rank")


def _check_patterns(patterns: list[str]) -> list[str]:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"want regular expressions; {pattern!r}: {error}") from None
    return patterns


Patterns = Annotated[list[str], AfterValidator(_check_patterns)]
Count = Annotated[int, Field(ge=0)]


class Strategy(settings.Settings):
    """The section `[components.transformer.model.strategy]`; every key may be left out.

    freeze_embeddings (bool): Freeze the embeddings.
    freeze_layers (int): Freeze the lowest layers, this many, and the embeddings below them. If that
        is all layers, the encoder runs as for annotation (Lee et al. 2019).
    layer_decay (float): Learning rate of a layer over that of the layer above; the top layer has
        the optimizer's, the embeddings count as one more layer (Howard & Ruder 2018; Clark et al.
        2020; Tinn et al. 2021). A head's own rate is its `learn_rate_scale`.
    reinit_layers (int): Start the top layers, this many, from random weights, drawn as in the
        architecture's pretraining with the training seed (Zhang et al. 2021; Tinn et al. 2021).
    no_decay (list[str] | None): Regular expressions, searched in weight names: these weights have
        no weight decay. None: biases and layer norms (Devlin et al. 2019, appendix A).
    bias_correction (bool): False leaves out Adam's correction of its moments in the first steps, as
        BERT's code of 2018 did (Mosbach et al. 2021; Zhang et al. 2021).
    unfreeze_steps (int): Train the heads alone at first; after every so many updates one more layer
        learns, from the top, and the embeddings last (Howard & Ruder 2018). 0: all from the start.
    mixout (float): Probability that a value of a linear layer's weight is replaced by the
        pretrained one in a training step (Lee et al. 2020, who use it instead of dropout: set
        hidden_dropout_prob = 0.0 in transformer_config).
    pretrained_decay (float): Weight decay toward the pretrained weights: in each step, weights move
        by this, times the rate, of their distance to them (L2-SP, Li et al. 2018; decoupled from
        Adam, Chen et al. 2020). The decay to zero is [training.optimizer] L2.
    adversarial (float): In training, run each batch a second time with the piece embeddings moved
        this far along their gradient, and add up the gradients of both passes (FGM, Miyato et al.
        2017; see `RepeatedUpdates`). Only `bioclin train` does it. 0: no second pass.
    lora_rank (int): Keep the weights and learn a low-rank difference for some linear layers, which
        is added to their weights when the pipeline is stored (Hu et al. 2022). 0: no LoRA.
    lora_alpha (float): The difference is scaled by lora_alpha / lora_rank.
    lora_targets (list[str] | None): Regular expressions, searched in the names of linear layers:
        which of them learn. None: those that compute queries and values.

    "Pretrained" is the encoder as it is when training starts; reinitialised layers have no
    pretrained weights.
    """

    freeze_embeddings: bool = False
    freeze_layers: Count = 0
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    reinit_layers: Count = 0
    no_decay: Patterns | None = None
    bias_correction: bool = True
    unfreeze_steps: Count = 0
    mixout: float = Field(default=0.0, ge=0, lt=1)
    pretrained_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    adversarial: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    lora_rank: Count = 0
    lora_alpha: float = Field(default=8.0, gt=0, allow_inf_nan=False)
    lora_targets: Patterns | None = None

    @model_validator(mode="after")
    def _check_lora(self) -> "Strategy":
        for key in WITHOUT_LORA:
            if self.lora_rank and self.is_set(key):
                raise ValueError(
                    f"{self.show('lora_rank', key)}: with LoRA the encoder's own weights do not "
                    "learn: leave out one of the two"
                )
        for key in ("lora_alpha", "lora_targets"):
            if not self.lora_rank and self.is_set(key):
                raise ValueError(f"{self.show(key)} has no effect: set lora_rank, or leave it out")
        return self

    @model_validator(mode="after")
    def _check_adversarial(self) -> "Strategy":
        for key in WITHOUT_EMBEDDINGS:
            if self.adversarial and self.is_set(key):
                raise ValueError(
                    f"{self.show('adversarial', key)}: adversarial training needs the gradient of "
                    "the embeddings, which do not learn then: leave out one of the two"
                )
        return self

    def is_set(self, key: str) -> bool:
        """Check whether a setting differs from its default."""
        return bool(getattr(self, key) != type(self).model_fields[key].default)

    def show(self, *keys: str) -> str:
        """Write settings as they are in the config, for messages."""
        return ", ".join(f"{key} = {getattr(self, key)!r}" for key in keys)


def read_strategy(values: dict[str, Any] | None) -> Strategy:
    """Check what can be checked without the encoder.

    values (dict | None): The section of the config.
    RETURNS (Strategy): With defaults for what is not set.
    RAISES (BioclinError): A key is unknown, a value has another type or is out of range, or
        settings contradict each other.
    """
    return settings.read_settings(Strategy, values, where=SECTION)


def check_layers(strategy: Strategy, n_layers: int, *, prefix: str) -> None:
    """Check that an encoder has the layers that a strategy counts.

    n_layers (int): Number of layers; 0 if they cannot be told apart.
    prefix (str): Beginning of the layers' names: "encoder.layer".
    RAISES (BioclinError): The strategy counts more layers than the encoder has.
    """
    counting = [key for key in LAYER_KEYS if strategy.is_set(key)]
    if counting and not n_layers:
        raise BioclinError(
            f"{SECTION}: {strategy.show(*counting)}: this encoder has no separate layers (all "
            "share their weights, as in ALBERT, or the architecture is unknown): leave these "
            "settings out"
        )
    for keys in (["freeze_layers"], ["reinit_layers"], ["freeze_layers", "reinit_layers"]):
        if sum(getattr(strategy, key) for key in keys) > n_layers:
            raise BioclinError(
                f"{SECTION}: {strategy.show(*keys)}: this encoder has {n_layers} layers "
                f"({prefix}.0 to {prefix}.{n_layers - 1}): {' + '.join(keys)} must be "
                f"{n_layers} or less"
            )
    for key in ("unfreeze_steps", "lora_rank"):
        if n_layers and strategy.freeze_layers == n_layers and strategy.is_set(key):
            raise BioclinError(
                f"{SECTION}: {strategy.show('freeze_layers', key)}: all {n_layers} layers of this "
                "encoder are frozen, so that none can learn: leave out one of the two"
            )


def select(key: str, patterns: list[str], names: Iterable[str], *, kind: str) -> set[str]:
    """Find the names that match a pattern.

    key (str): The setting that has the patterns.
    patterns (list[str]): Regular expressions, searched in the names.
    names (Iterable[str]): Names of weights or layers.
    kind (str): What is named, for the error.
    RETURNS (set[str]): Each matches at least one pattern.
    RAISES (BioclinError): A pattern matches no name. The message lists the names, with N for the
        number of a layer.
    """
    names = list(names)
    found: set[str] = set()
    for pattern in patterns:
        matched = {name for name in names if re.search(pattern, name)}
        if not matched:
            folded = dict.fromkeys(re.sub(r"\.\d+(?=\.|$)", ".N", name) for name in names)
            raise BioclinError(
                f"{SECTION}: {key} = {patterns!r}: {pattern!r} matches no {kind} of this encoder."
                f" There are: {', '.join(folded)}"
            )
        found |= matched
    return found


def rate_factor(layer_decay: float, level: int, n_layers: int) -> float:
    """Compute the factor on the learning rate of a level of an encoder.

    level (int): 0 for the embeddings, 1 for the lowest layer, …, n_layers + 1 for the weights above
        the top layer.
    """
    return layer_decay ** max(0, n_layers - level)
