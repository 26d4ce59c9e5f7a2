"""From the vectors of a token's pieces to one vector."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Ragged


def make_first_piece() -> Model[Ragged, Floats2d]:
    """Make a layer that gives a token the vector of its first piece, as run_ner of the transformers
    library does.

    Tokens without pieces (spaces) get zeros; thinc's `reduce_first.v1` fails on such tokens.

    RETURNS (Model): (n_pieces, width) in, (n_tokens, width) out.
    """
    return Model("first_piece", forward)


def forward(
    model: Model[Ragged, Floats2d], X: Ragged, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], Ragged]]:
    """Select the first piece of each token."""
    xp = model.ops.xp
    filled = xp.flatnonzero(X.lengths)
    first = (xp.cumsum(X.lengths) - X.lengths)[filled]
    Y = model.ops.alloc2f(len(X.lengths), X.dataXd.shape[-1])
    Y[filled] = X.dataXd[first]

    def backprop(dY: Floats2d) -> Ragged:
        dX = model.ops.alloc2f(*X.dataXd.shape)
        dX[first] = dY[filled]
        return Ragged(dX, X.lengths)

    return Y, backprop
