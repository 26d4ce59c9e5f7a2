"""Fine-tuning strategies: which weights of a pretrained encoder learn, and how fast.

The settings and their checks; `Tuning` carries them out.
"""

import difflib
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...errors import BioclinError

SECTION = "[components.transformer.model.strategy]"


class Strategy(NamedTuple):
    """The section `[components.transformer.model.strategy]`; every key may be left out.

    freeze_embeddings (bool): The embeddings do not learn.
    freeze_layers (int): Nor do the lowest layers, this many, and the embeddings below them. All
        layers: nothing of the encoder learns, and it is run as for annotation (Lee et al. 2019).
    layer_decay (float): Learning rate of a layer over that of the layer above; the top layer has
        the optimizer's, the embeddings count as one layer more (Howard & Ruder 2018; Clark et al.
        2020; Tinn et al. 2021). A head's own rate is its `learn_rate_scale`.
    reinit_layers (int): The top layers, this many, start from random weights, as the architecture
        draws them, seeded by the training seed (Zhang et al. 2021; Tinn et al. 2021).
    no_decay (list[str] | None): Regular expressions, searched in weights' names: these have no
        weight decay. None: biases and layer norms (Devlin et al. 2019, appendix A).
    bias_correction (bool): False leaves out Adam's correction of its moments in the first steps, as
        BERT's code of 2018 did (Mosbach et al. 2021; Zhang et al. 2021).
    unfreeze_steps (int): At first the heads learn alone; after every so many updates one more layer
        learns, from the top, and the embeddings last (Howard & Ruder 2018). 0: all from the start.
    mixout (float): In training each value of a linear layer's weight is, with this probability, the
        pretrained one (Lee et al. 2020, who have it in place of dropout: set hidden_dropout_prob =
        0.0 in transformer_config).
    pretrained_decay (float): Each step moves the weights by this, times the rate, of the way back
        to the pretrained ones: weight decay toward them in place of zero (L2-SP, Li et al. 2018;
        decoupled from Adam, Chen et al. 2020). The decay to zero is [training.optimizer] L2.
    lora_rank (int): The weights stay as they are; some linear layers learn a difference of this
        rank, which is added to their weights when the pipeline is stored (Hu et al. 2022).
    lora_alpha (float): The difference is scaled by lora_alpha / lora_rank.
    lora_targets (list[str] | None): Regular expressions, searched in the names of linear layers:
        which learn. None: those that compute queries and values.

    "Pretrained" is what the encoder is when training starts; layers that were drawn anew have none.
    """

    freeze_embeddings: bool = False
    freeze_layers: int = 0
    layer_decay: float = 1.0
    reinit_layers: int = 0
    no_decay: list[str] | None = None
    bias_correction: bool = True
    unfreeze_steps: int = 0
    mixout: float = 0.0
    pretrained_decay: float = 0.0
    lora_rank: int = 0
    lora_alpha: float = 8.0
    lora_targets: list[str] | None = None

    @property
    def counts_layers(self) -> bool:
        """Whether a setting needs to know the encoder's layers."""
        return any(_is_set(self, key) for key in LAYER_KEYS)


# Key → what its values must be.
_KINDS = {
    "freeze_embeddings": "true or false",
    "freeze_layers": "a whole number from 0",
    "layer_decay": "a number above 0, at most 1",
    "reinit_layers": "a whole number from 0",
    "no_decay": "null or a list of regular expressions",
    "bias_correction": "true or false",
    "unfreeze_steps": "a whole number from 0",
    "mixout": "a number from 0, below 1",
    "pretrained_decay": "a number from 0",
    "lora_rank": "a whole number from 0",
    "lora_alpha": "a number above 0",
    "lora_targets": "null or a list of regular expressions",
}
LAYER_KEYS = ("freeze_layers", "reinit_layers", "layer_decay", "unfreeze_steps")
# What has no meaning where only differences of low rank learn.
WITHOUT_LORA = ("reinit_layers", "mixout", "pretrained_decay")


def read_strategy(settings: dict[str, Any] | None) -> Strategy:
    """Check what can be checked without the encoder.

    settings (dict | None): The config's section.
    RETURNS (Strategy): With the defaults of what is not set.
    RAISES (BioclinError): For a key that does not exist, a value of another type or out of range,
        or settings that contradict each other.
    """
    settings = dict(settings or {})
    for key, value in settings.items():
        if key not in _KINDS:
            near = difflib.get_close_matches(key, _KINDS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise BioclinError(
                f"{key} = {value!r} in {SECTION}: there is no such setting.{hint} There are: "
                f"{', '.join(_KINDS)}"
            )
        if not _is_right(_KINDS[key], value):
            raise BioclinError(f"{key} = {value!r} in {SECTION}: must be {_KINDS[key]}")
    strategy = Strategy(**settings)
    for key in WITHOUT_LORA:
        if strategy.lora_rank and _is_set(strategy, key):
            raise BioclinError(
                f"{_show(strategy, ['lora_rank', key])} in {SECTION}: with LoRA the encoder's own "
                "weights do not learn: leave out one of the two"
            )
    for key in ("lora_alpha", "lora_targets"):
        if not strategy.lora_rank and _is_set(strategy, key):
            raise BioclinError(
                f"{_show(strategy, [key])} in {SECTION} has no effect: set lora_rank, or leave it "
                "out"
            )
    return strategy


def _is_right(kind: str, value: Any) -> bool:
    if kind == "true or false":
        return isinstance(value, bool)
    if kind.startswith("null"):
        return value is None or (isinstance(value, list) and all(map(_is_regex, value)))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return {
        "a whole number from 0": isinstance(value, int) and value >= 0,
        "a number from 0": 0 <= value < math.inf,
        "a number above 0": 0 < value < math.inf,
        "a number from 0, below 1": 0 <= value < 1,
        "a number above 0, at most 1": 0 < value <= 1,
    }[kind]


def _is_regex(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except re.error:
        return False


def check_layers(strategy: Strategy, n_layers: int, *, prefix: str) -> None:
    """Hold the strategy against an encoder's layers.

    n_layers (int): How many there are; 0 where they cannot be told apart.
    prefix (str): Of the layers' names: "encoder.layer".
    RAISES (BioclinError): If it counts more layers than there are.
    """
    if strategy.counts_layers and not n_layers:
        keys = [key for key in LAYER_KEYS if _is_set(strategy, key)]
        raise BioclinError(
            f"{_show(strategy, keys)} in {SECTION}: this encoder has no separate layers (all share "
            "their weights, as in ALBERT, or the architecture is unknown): leave these settings out"
        )
    for keys in (["freeze_layers"], ["reinit_layers"], ["freeze_layers", "reinit_layers"]):
        if sum(getattr(strategy, key) for key in keys) > n_layers:
            raise BioclinError(
                f"{_show(strategy, keys)} in {SECTION}: this encoder has {n_layers} layers "
                f"({prefix}.0 to {prefix}.{n_layers - 1}): {' + '.join(keys)} must be "
                f"{n_layers} or less"
            )
    for key in ("unfreeze_steps", "lora_rank"):
        if n_layers and strategy.freeze_layers == n_layers and _is_set(strategy, key):
            raise BioclinError(
                f"{_show(strategy, ['freeze_layers', key])} in {SECTION}: all {n_layers} layers of "
                "this encoder are frozen, so that none can learn: leave out one of the two"
            )


def _is_set(strategy: Strategy, key: str) -> bool:
    return getattr(strategy, key) != Strategy._field_defaults[key]


def _show(strategy: Strategy, keys: Iterable[str]) -> str:
    return ", ".join(f"{key} = {getattr(strategy, key)!r}" for key in keys)


def select(key: str, patterns: list[str], names: Iterable[str], *, kind: str) -> set[str]:
    """
    key (str): The setting that the patterns stand in.
    patterns (list[str]): Regular expressions, searched in the names.
    names (Iterable[str]): What exists.
    kind (str): What the names are of, for the error.
    RETURNS (set[str]): The names that a pattern matches.
    RAISES (BioclinError): If one matches none; lists the names, numbers of layers as N.
    """
    names = list(names)
    found: set[str] = set()
    for pattern in patterns:
        matched = {name for name in names if re.search(pattern, name)}
        if not matched:
            folded = dict.fromkeys(re.sub(r"\.\d+(?=\.|$)", ".N", name) for name in names)
            raise BioclinError(
                f"{key} = {patterns!r} in {SECTION}: {pattern!r} matches no {kind} of this encoder."
                f" There are: {', '.join(folded)}"
            )
        found |= matched
    return found


def rate_factor(layer_decay: float, level: int, n_layers: int) -> float:
    """RETURNS (float): Factor on the learning rate of a level of an encoder: 0 for the embeddings,
    1 for the lowest layer, …, n_layers + 1 for what stands above the top layer."""
    return layer_decay ** max(0, n_layers - level)
