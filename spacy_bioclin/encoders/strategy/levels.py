"""Find the level of each weight of an encoder: embeddings, a layer, or above the layers."""

from typing import Any, NamedTuple

from torch import nn


class Levels(NamedTuple):
    """The weights of an encoder from bottom to top.

    prefix (str): Name of the list of layers: "encoder.layer"; empty if there is none.
    layers (list[nn.Module]): From the lowest to the top; empty if they cannot be told apart.
    of (dict[str, int]): Name of a weight → 0 for embeddings, i for the ith layer, counted from 1,
        n + 1 for weights above the n layers.
    """

    prefix: str
    layers: list[nn.Module]
    of: dict[str, int]


def find_levels(transformer: nn.Module) -> Levels:
    """Find the level of each weight of an encoder of the `transformers` library.

    Names differ between architectures: the layers are the list of as many blocks as the config
    says. DeBERTa's relative positions, their norm and its convolution are outside of the layers but
    read by the lowest, so they count as embeddings. If layers share their weights (ALBERT), there
    are no layers, and all other weights count as above them.
    """
    prefix, layers = _find_layers(transformer)
    parent = transformer.get_submodule(prefix.rpartition(".")[0]) if prefix else transformer
    beside = prefix.rpartition(".")[0] + "." if hasattr(parent, "rel_embeddings") else None
    levels, above = {}, False
    for name, _ in transformer.named_parameters():
        if prefix and name.startswith(prefix + "."):
            above = True
            levels[name] = int(name[len(prefix) + 1 :].partition(".")[0]) + 1
            continue
        relative = beside is not None and name.startswith(beside)
        below = (prefix and not above) or "embed" in name or relative
        levels[name] = 0 if below else len(layers) + 1
    return Levels(prefix, layers, levels)


def _find_layers(transformer: Any) -> tuple[str, list[nn.Module]]:
    config = getattr(transformer, "config", None)
    n_layers = getattr(config, "num_hidden_layers", None)
    # ALBERT: all layers of a group are one.
    if getattr(config, "num_hidden_groups", n_layers) == n_layers:
        for name, module in transformer.named_modules():
            if isinstance(module, nn.ModuleList) and len(module) == n_layers:
                return name, list(module)
    return "", []


def reinit(transformer: Any, layers: list[nn.Module]) -> None:
    """Reinitialise layers with random weights, as for the architecture's pretraining."""
    for layer in layers:
        for module in layer.modules():
            if callable(reset := getattr(module, "reset_parameters", None)):
                reset()  # `_init_weights` of some architectures leaves out norms
        layer.apply(transformer._init_weights)
