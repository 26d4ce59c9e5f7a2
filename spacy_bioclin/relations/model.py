"""The model of `bioclin_relations`: token vectors of an encoder, and the scores of pairs."""

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from ..torch_bridge.shim import TorchShim
from .inputs import RelationBatch
from .network import RelationNetwork

Tok2Vec: TypeAlias = Model[list[Doc], list[Floats2d]]
# Gives scores, (n_pairs, 1 + n_labels), on the encoder's device.
RelationModel: TypeAlias = Model[RelationBatch, Tensor]
HEAD = "relation_head"  # the layer with the weights


def build_relation_classifier(
    tok2vec: Tok2Vec,
    context: bool,
    feature_width: int,
    hidden_width: int,
    dropout: float,
    learn_rate_scale: float,
) -> RelationModel:
    """Build a classifier of pairs of entities, see `RelationNetwork`.

    tok2vec (Model): Gives (n_tokens, width) per Doc.
    context (bool): Use the text between the entities.
    feature_width (int): Size of the embeddings of entity types and distances; 0 for none.
    hidden_width (int): Size of the hidden layer; 0 for none.
    dropout (float): Rate of dropout before each linear layer.
    learn_rate_scale (float): Ratio of the head's learning rate to the optimizer's.
    """
    shim = TorchShim(RelationNetwork, lr_scale=learn_rate_scale)
    settings = {
        "context": context,
        "feature_width": feature_width,
        "hidden_width": hidden_width,
        "dropout": dropout,
    }
    head: Model[Any, Tensor] = Model(
        HEAD,
        _forward_head,
        init=_init_head,
        shims=[shim],
        attrs={"n_types": 0, "n_labels": 0, "settings": settings},
    )
    return Model(
        "relation_classifier",
        _forward,
        init=_init,
        layers=[tok2vec, head],
        refs={"tok2vec": tok2vec, "head": head},
    )


def _init(model: RelationModel, X: RelationBatch | None = None, Y: Any = None) -> None:
    """Initialize the encoder, and make the head once widths and labels are known."""
    tok2vec, head = model.get_ref("tok2vec"), model.get_ref("head")
    if X is None:
        tok2vec.initialize()
        return
    tok2vec.initialize(X=X.docs)
    head.initialize(X=tok2vec.predict(X.docs))


def _forward(
    model: RelationModel, X: RelationBatch, is_train: bool
) -> tuple[Tensor, Callable[[Tensor], Any]]:
    vectors, backprop_tok2vec = model.get_ref("tok2vec")(X.docs, is_train)
    scores, backprop_head = model.get_ref("head")((vectors, X.inputs), is_train)

    def backprop(d_scores: Tensor) -> Any:
        return backprop_tok2vec(backprop_head(d_scores))

    return scores, backprop


def _init_head(model: Model, X: list[Floats2d] | None = None, Y: Any = None) -> None:
    if X is None:
        return
    attrs = model.attrs
    cfg: dict[str, Any] = {"width": int(X[0].shape[1]), **attrs["settings"]}
    cfg |= {"n_types": attrs["n_types"], "n_labels": attrs["n_labels"]}
    model.shims[0].set_module(RelationNetwork(**cfg), cfg)


def _forward_head(
    model: Model, X: Any, is_train: bool
) -> tuple[Tensor, Callable[[Tensor], list[Floats2d]]]:
    shim: TorchShim = model.shims[0]
    vectors, inputs = X
    filled = [x for x in vectors if len(x)]
    width = shim.cfg["width"]
    flat = model.ops.xp.concatenate(filled) if filled else model.ops.alloc2f(0, width)
    tensor = xp2torch(flat, requires_grad=is_train, device=shim.device)
    scores, backprop = shim((tensor, inputs), is_train)

    def backprop_head(d_scores: Tensor) -> list[Floats2d]:
        backprop(d_scores)
        gradient = (
            torch2xp(tensor.grad) if tensor.grad is not None else model.ops.xp.zeros_like(flat)
        )
        ends = [0, *itertools.accumulate(len(x) for x in vectors)]
        return [gradient[i:j] for i, j in itertools.pairwise(ends)]

    return scores, backprop_head
