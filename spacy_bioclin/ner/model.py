"""The tagging heads: a linear layer over token vectors, with or without learned transitions."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch
from spacy.tokens import Doc
from thinc.api import Model, chain, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from ..torch_bridge.shim import TorchShim


class TagScores(NamedTuple):
    """Unnormalised log scores of a batch of Docs, on the encoder's device.

    emissions (Tensor): Tokens of all Docs, concatenated, (n_tokens, n_layers, n_tags).
    transitions (Tensor): From row to column, (n_layers, n_tags, n_tags).
    start, end (Tensor): (n_layers, n_tags).
    lengths (list[int]): Number of tokens of each Doc.
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    lengths: list[int]

    def map(self, function: Callable[[Tensor], Tensor]) -> "TagScores":
        """Apply a function to each tensor, without a graph."""
        emissions, transitions, start, end = (function(score.detach()) for score in self[:4])
        return TagScores(emissions, transitions, start, end, self.lengths)


Tok2Vec: TypeAlias = Model[list[Doc], list[Floats2d]]
# An ensemble scores each batch once per member.
AnyScores: TypeAlias = TagScores | list[TagScores]
TaggerModel: TypeAlias = Model[list[Doc], Any]  # gives AnyScores; in training TagScores
HEAD = "tagger_head"  # the layer with the weights of a tagger


class TaggerNetwork(nn.Module):
    """Apply dropout and one linear layer; transitions are parameters (CRF) or zeros."""

    transitions: Tensor
    start: Tensor
    end: Tensor

    def __init__(
        self, *, width: int, n_layers: int, n_tags: int, dropout: float, crf: bool
    ) -> None:
        super().__init__()
        self.shape = (n_layers, n_tags)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, n_layers * n_tags)
        shapes = {"transitions": (*self.shape, n_tags), "start": self.shape, "end": self.shape}
        for name, shape in shapes.items():
            if crf:
                self.register_parameter(name, nn.Parameter(torch.zeros(shape)))
            else:
                self.register_buffer(name, torch.zeros(shape), persistent=False)

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Score the tags of tokens.

        X (Tensor): Token vectors, (n_tokens, width).
        RETURNS (tuple): Emissions, transitions, start and end, see `TagScores`.
        """
        emissions = self.output(self.dropout(X)).reshape(len(X), *self.shape)
        return emissions, self.transitions, self.start, self.end


def build_linear_tagger(tok2vec: Tok2Vec, dropout: float, learn_rate_scale: float) -> TaggerModel:
    """Build a linear layer trained with cross-entropy per token, as in Devlin et al. (2019) and the
    papers on biomedical encoders. Decoding respects the tagging scheme nevertheless.

    tok2vec (Model): Gives (n_tokens, width) per Doc.
    dropout (float): Rate of dropout on the token vectors.
    learn_rate_scale (float): Ratio of the head's learning rate to the optimizer's: a head starts
        from random weights and can take longer steps than a pretrained encoder.
    """
    return _build_tagger("linear_tagger", tok2vec, dropout, learn_rate_scale, crf=False)


def build_crf_tagger(tok2vec: Tok2Vec, dropout: float, learn_rate_scale: float) -> TaggerModel:
    """Build a linear layer and a linear-chain CRF, trained with the likelihood of whole tag
    sequences. See `build_linear_tagger` for the arguments.
    """
    return _build_tagger("crf_tagger", tok2vec, dropout, learn_rate_scale, crf=True)


def _build_tagger(
    name: str, tok2vec: Tok2Vec, dropout: float, learn_rate_scale: float, *, crf: bool
) -> TaggerModel:
    shim = TorchShim(TaggerNetwork, lr_scale=learn_rate_scale)
    head: Model[list[Floats2d], TagScores] = Model(
        HEAD,
        _forward,
        init=_init,
        shims=[shim],
        attrs={"n_layers": 0, "n_tags": 0, "dropout": dropout, "crf": crf},
    )
    model = chain(tok2vec, head)
    model.name = name
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("head", head)
    return model


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Make the network, anew if there is one, once the width and the number of tags are known."""
    if X is None:
        return
    cfg: dict[str, Any] = {"width": int(X[0].shape[1])}
    cfg |= {name: model.attrs[name] for name in ("n_layers", "n_tags", "dropout", "crf")}
    model.shims[0].set_module(TaggerNetwork(**cfg), cfg)


def _forward(
    model: Model, X: list[Floats2d], is_train: bool
) -> tuple[TagScores, Callable[[TagScores], list[Floats2d]]]:
    shim: TorchShim = model.shims[0]
    lengths = [len(x) for x in X]
    filled = [x for x in X if len(x)]
    width = shim.cfg["width"]
    flat = model.ops.xp.concatenate(filled) if filled else model.ops.alloc2f(0, width)
    tensor = xp2torch(flat, requires_grad=is_train, device=shim.device)
    outputs, backprop = shim((tensor,), is_train)

    def backprop_head(d_scores: TagScores) -> list[Floats2d]:
        backprop(tuple(d_scores[:4]))
        gradient = torch2xp(tensor.grad)
        ends = torch.tensor([0, *lengths]).cumsum(0).tolist()
        return [gradient[i:j] for i, j in itertools.pairwise(ends)]

    emissions, transitions, start, end = outputs
    return TagScores(emissions, transitions, start, end, lengths), backprop_head
