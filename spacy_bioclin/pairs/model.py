"""The model of `bioclin_pairs`: the vector that stands for a pair, and scores of its classes."""

from collections.abc import Callable
from typing import Any, TypeAlias

from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from ..annotations.pairs import get_boundary
from ..torch_bridge.shim import TorchShim

Tok2Vec: TypeAlias = Model[list[Doc], list[Floats2d]]
# Gives the scores of those Docs that are pairs, (n_pairs, n_outputs), on the encoder's device.
PairModel: TypeAlias = Model[list[Doc], Tensor]
HEAD = "pair_head"  # the layer with the weights


class PairNetwork(nn.Module):
    """Apply, as BERT does to [CLS], a dense layer and tanh if `hidden`, dropout, and a linear layer
    (Devlin et al. 2019; `BertForSequenceClassification` of the `transformers` library)."""

    def __init__(self, *, width: int, n_outputs: int, dropout: float, hidden: bool) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width) if hidden else None
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, X: Tensor) -> Tensor:
        """Score pairs.

        X (Tensor): One vector per pair, (n_pairs, width).
        RETURNS (Tensor): (n_pairs, n_outputs).
        """
        if self.dense is not None:
            X = self.dense(X).tanh()
        scores: Tensor = self.output(self.dropout(X))
        return scores


def build_pair_classifier(
    tok2vec: Tok2Vec, dropout: float, learn_rate_scale: float, hidden: bool
) -> PairModel:
    """Build a classifier of pairs of texts over the vector of the line break between them.

    tok2vec (Model): Gives (n_tokens, width) per Doc. `spacy-bioclin.Encoder.v1` gives the line
        break the vector of [CLS].
    dropout (float): Rate of dropout before the linear layer.
    learn_rate_scale (float): Ratio of the head's learning rate to the optimizer's: a head starts
        from random weights and can take longer steps than a pretrained encoder.
    hidden (bool): Put a dense layer with tanh before it, as BERT does.
    """
    head: Model[Floats2d, Tensor] = Model(
        HEAD,
        _forward_head,
        init=_init_head,
        shims=[TorchShim(PairNetwork, lr_scale=learn_rate_scale)],
        attrs={"n_outputs": 0, "dropout": dropout, "hidden": hidden},
    )
    return Model(
        "pair_classifier",
        _forward,
        init=_init,
        layers=[tok2vec, head],
        refs={"tok2vec": tok2vec, "head": head},
    )


def _init(model: PairModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialize the encoder, and make the head once the width is known."""
    tok2vec, head = model.get_ref("tok2vec"), model.get_ref("head")
    if X is None:
        tok2vec.initialize()
        return
    tok2vec.initialize(X=X)
    head.initialize(X=tok2vec.predict(X)[0])


def _forward(
    model: PairModel, X: list[Doc], is_train: bool
) -> tuple[Tensor, Callable[[Tensor], Any]]:
    vectors, backprop_tok2vec = model.get_ref("tok2vec")(X, is_train)
    boundaries = [get_boundary(doc) for doc in X]
    found = [(i, boundary) for i, boundary in enumerate(boundaries) if boundary is not None]
    head = model.get_ref("head")
    if found:
        summaries = model.ops.xp.stack([vectors[i][boundary] for i, boundary in found])
    else:
        summaries = model.ops.alloc2f(0, head.shims[0].cfg["width"])
    scores, backprop_head = head(summaries, is_train)

    def backprop(d_scores: Tensor) -> Any:
        d_summaries = backprop_head(d_scores)
        d_vectors = [model.ops.xp.zeros_like(part) for part in vectors]
        for row, (i, boundary) in enumerate(found):
            d_vectors[i][boundary] = d_summaries[row]
        return backprop_tok2vec(d_vectors)

    return scores, backprop


def _init_head(model: Model, X: Floats2d | None = None, Y: Any = None) -> None:
    if X is None:
        return
    cfg: dict[str, Any] = {"width": int(X.shape[1])}
    cfg |= {name: model.attrs[name] for name in ("n_outputs", "dropout", "hidden")}
    model.shims[0].set_module(PairNetwork(**cfg), cfg)


def _forward_head(
    model: Model, X: Floats2d, is_train: bool
) -> tuple[Tensor, Callable[[Tensor], Floats2d]]:
    shim: TorchShim = model.shims[0]
    tensor = xp2torch(X, requires_grad=is_train, device=shim.device)
    scores, backprop = shim((tensor,), is_train)

    def backprop_head(d_scores: Tensor) -> Floats2d:
        backprop(d_scores)
        return torch2xp(tensor.grad)

    return scores, backprop_head
