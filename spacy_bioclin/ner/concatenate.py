"""Concatenate the token vectors of several layers."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

Vectors = list[Floats2d]


def make_concatenate(*layers: Model[list[Doc], Vectors]) -> Model[list[Doc], Vectors]:
    """Make a layer that concatenates the token vectors of others, such as those of an encoder and
    of word forms (registered as `spacy-bioclin.concatenate.v1`).

    thinc's `concatenate.v1` needs a gradient from each of them, and a listener has none if another
    component learns from the same encoder in the same update.

    layers (Model): Docs in, (n_tokens, width) of each Doc out.
    RETURNS (Model): Docs in, (n_tokens, sum of the widths) of each Doc out.
    """
    name = "|".join(layer.name for layer in layers)
    return Model(name, forward, init=init, dims={"nO": None}, layers=layers)


def init(model: Model[list[Doc], Vectors], X: Any = None, Y: Any = None) -> None:
    """Initialize the layers; the width is the sum of theirs."""
    for layer in model.layers:
        layer.initialize(X=X, Y=Y)
    if all(layer.has_dim("nO") for layer in model.layers):
        model.set_dim("nO", sum(layer.get_dim("nO") for layer in model.layers))


def forward(
    model: Model[list[Doc], Vectors], docs: list[Doc], is_train: bool
) -> tuple[Vectors, Callable[[Vectors], list[Doc]]]:
    """Concatenate the vectors of each token."""
    found = [layer(docs, is_train) for layer in model.layers]
    Ys = [
        model.ops.xp.concatenate(vectors, axis=1)
        for vectors in zip(*(vectors for vectors, _ in found), strict=True)
    ]

    def backprop(dYs: Vectors) -> list[Doc]:
        start = 0
        for vectors, backprop_layer in found:
            end = start + (vectors[0].shape[1] if vectors else 0)
            backprop_layer([model.ops.as_contig(dY[:, start:end]) for dY in dYs])
            start = end
        return []  # Docs have no gradient

    return Ys, backprop
