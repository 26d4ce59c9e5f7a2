"""The model of `bioclin_pairs`: the vectors of a pair, and scores of its classes."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
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
    (Devlin et al. 2019; `BertForSequenceClassification` of the `transformers` library).

    If `compare_texts`, their input is not only the vector of [CLS], but also the difference |u - v|
    and the product u * v of the mean vectors of both texts (Conneau et al. 2017, section 3.1). An
    encoder whose [CLS] was never trained has little to say in it, while its other vectors are alike
    for texts that are alike.
    """

    def __init__(
        self, *, width: int, n_outputs: int, dropout: float, hidden: bool, compare_texts: bool
    ) -> None:
        super().__init__()
        n_read = (3 if compare_texts else 1) * width
        self.compare_texts = compare_texts
        self.dense = nn.Linear(n_read, width) if hidden else None
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width if hidden else n_read, n_outputs)

    def forward(self, X: Tensor) -> Tensor:
        """Score pairs.

        X (Tensor): The vector of [CLS] of each pair, (n_pairs, width); if `compare_texts`, also the
            mean vectors of its first and second text, (n_pairs, 3 * width).
        RETURNS (Tensor): (n_pairs, n_outputs).
        """
        if self.compare_texts:
            summary, first, second = X.chunk(3, dim=1)
            X = torch.cat([summary, (first - second).abs(), first * second], dim=1)
        if self.dense is not None:
            X = self.dense(X).tanh()
        scores: Tensor = self.output(self.dropout(X))
        return scores


def build_pair_classifier(
    tok2vec: Tok2Vec, dropout: float, learn_rate_scale: float, hidden: bool, compare_texts: bool
) -> PairModel:
    """Build a classifier of pairs of texts over the vector of the line break between them, and the
    mean vectors of both.

    tok2vec (Model): Gives (n_tokens, width) per Doc. `spacy-bioclin.Encoder.v1` gives the line
        break the vector of [CLS].
    dropout (float): Rate of dropout before the linear layer.
    learn_rate_scale (float): Ratio of the head's learning rate to the optimizer's: a head starts
        from random weights and can take longer steps than a pretrained encoder.
    hidden (bool): Put a dense layer with tanh before it, as BERT does.
    compare_texts (bool): Read the mean vectors of both texts, too; see `PairNetwork`.
    """
    head: Model[Floats2d, Tensor] = Model(
        HEAD,
        _forward_head,
        init=_init_head,
        shims=[TorchShim(PairNetwork, lr_scale=learn_rate_scale)],
        attrs={"n_outputs": 0, "dropout": dropout, "hidden": hidden}
        | {"compare_texts": compare_texts},
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
    parts = [_list_parts(head, vectors[i], boundary) for i, boundary in found]
    if found:
        xp = model.ops.xp
        rows = [xp.concatenate([part.mean(axis=0) for part in each]) for each in parts]
        read = xp.stack(rows)
    else:
        read = model.ops.alloc2f(0, head.shims[0].cfg["width"] * _count_parts(head))
    scores, backprop_head = head(read, is_train)

    def backprop(d_scores: Tensor) -> Any:
        d_read = backprop_head(d_scores)
        d_vectors = [model.ops.xp.zeros_like(part) for part in vectors]
        for row, (i, boundary) in enumerate(found):
            d_means = d_read[row].reshape(_count_parts(head), -1)
            for d_part, d_mean in zip(
                _list_parts(head, d_vectors[i], boundary), d_means, strict=True
            ):
                d_part += d_mean / len(d_part)
        return backprop_tok2vec(d_vectors)

    return scores, backprop


def _count_parts(head: Model) -> int:
    return 3 if head.attrs["compare_texts"] else 1


def _list_parts(head: Model, vectors: Floats2d, boundary: int) -> list[Floats2d]:
    """List views of what the head reads the means of: the line break, and if `compare_texts` both
    texts."""
    summary = vectors[boundary : boundary + 1]
    if not head.attrs["compare_texts"]:
        return [summary]
    return [summary, vectors[:boundary], vectors[boundary + 1 :]]


def _init_head(model: Model, X: Floats2d | None = None, Y: Any = None) -> None:
    if X is None:
        return
    cfg: dict[str, Any] = {"width": int(X.shape[1])}
    cfg |= {name: model.attrs[name] for name in ("n_outputs", "dropout", "hidden", "compare_texts")}
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
