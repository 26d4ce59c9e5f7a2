"""Fine-tuning strategies: which weights of a pretrained encoder learn, and how fast.

The settings and their checks; `Tuning` carries them out.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..errors import BioclinError

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
    """

    freeze_embeddings: bool = False
    freeze_layers: int = 0
    layer_decay: float = 1.0
    reinit_layers: int = 0
    no_decay: list[str] | None = None
    bias_correction: bool = True

    @property
    def counts_layers(self) -> bool:
        """Whether a setting needs to know the encoder's layers."""
        return bool(self.freeze_layers or self.reinit_layers or self.layer_decay != 1.0)


# Key → what its values must be.
_KINDS = {
    "freeze_embeddings": "true or false",
    "freeze_layers": "a whole number from 0",
    "layer_decay": "a number above 0, at most 1",
    "reinit_layers": "a whole number from 0",
    "no_decay": "null or a list of regular expressions",
    "bias_correction": "true or false",
}


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
    return Strategy(**settings)


def _is_right(kind: str, value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "true or false":
        return isinstance(value, bool)
    if kind == "a whole number from 0":
        return isinstance(value, int) and number and value >= 0
    if kind == "a number above 0, at most 1":
        return number and 0 < value <= 1
    return value is None or (isinstance(value, list) and all(map(_is_regex, value)))


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
        keys = [
            k for k in ("freeze_layers", "reinit_layers", "layer_decay") if _is_set(strategy, k)
        ]
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


def _is_set(strategy: Strategy, key: str) -> bool:
    return getattr(strategy, key) != Strategy._field_defaults[key]


def _show(strategy: Strategy, keys: Iterable[str]) -> str:
    return ", ".join(f"{key} = {getattr(strategy, key)!r}" for key in keys)


def select(key: str, patterns: list[str], names: Iterable[str]) -> set[str]:
    """
    key (str): The setting that the patterns stand in.
    patterns (list[str]): Regular expressions, searched in the names.
    names (Iterable[str]): What exists.
    RETURNS (set[str]): The names that a pattern matches.
    RAISES (BioclinError): If one matches none; lists the names, numbers of layers as N.
    """
    names = list(names)
    found: set[str] = set()
    for pattern in patterns:
        matched = {name for name in names if re.search(pattern, name)}
        if not matched:
            folded = dict.fromkeys(re.sub(r"\.\d+\.", ".N.", name) for name in names)
            raise BioclinError(
                f"{key} = {patterns!r} in {SECTION}: {pattern!r} matches no weight of this encoder."
                f" There are: {', '.join(folded)}"
            )
        found |= matched
    return found


def rate_factor(layer_decay: float, level: int, n_layers: int) -> float:
    """RETURNS (float): Factor on the learning rate of a level of an encoder: 0 for the embeddings,
    1 for the lowest layer, …, n_layers + 1 for what stands above the top layer."""
    return layer_decay ** max(0, n_layers - level)
