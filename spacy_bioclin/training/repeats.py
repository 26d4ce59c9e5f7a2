"""Updates that run a batch more than once before the step: adversarial training and R-drop."""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from spacy.language import Language
from spacy.training import Example
from thinc.api import Model

from ..torch_bridge.shim import TorchShim


class RepeatedUpdates:
    """Stand for a pipeline in spaCy's training loop, and run each batch more than once, if settings
    of the pipeline want it.

    If a component has `rdrop`, each example is in the batch twice, as in the paper's own code
    (Liang et al. 2021), so that dropout differs between both; the component compares them.

    If the strategy of an encoder has `adversarial`, the batch is run again with moved piece
    embeddings. This is FGM (Miyato et al. 2017, equation 5): the embeddings move by
    radius · g / ‖g‖, where g is the gradient of the batch, and the gradients of both passes add up.
    The paper moves the normalised embeddings of each text by itself; here, as usual for pretrained
    encoders, the table of embeddings moves, so that a piece moves the same way wherever it is in
    the batch.

    nlp (Language): The pipeline.
    learner (Any): What updates its components: the pipeline itself, or a `TaskUpdates`.
    frozen (Collection[str]): Components that do not learn, so that their settings do not matter.
    """

    def __init__(self, nlp: Language, learner: Any, frozen: Collection[str]) -> None:
        self._learner = learner
        shims = [shim for name, shim in _list_shims(nlp) if name not in frozen]
        self._shims = [shim for shim in shims if shim.adversary is not None]
        learning = [pipe for name, pipe in nlp.components if name not in frozen]
        self._doubles = any(getattr(pipe, "rdrop", 0.0) for pipe in learning)

    @property
    def pipeline(self) -> list[tuple[str, Any]]:
        """The components that take a step."""
        pipeline: list[tuple[str, Any]] = self._learner.pipeline
        return pipeline

    def use_params(self, params: dict[Any, Any]) -> AbstractContextManager[None]:
        """Replace weights for a while, see `Language.use_params`."""
        context: AbstractContextManager[None] = self._learner.use_params(params)
        return context

    def update(self, examples: list[Example], *, losses: dict[str, float], **options: Any) -> None:
        """Add the gradients of all passes, see `Language.update`. The losses are those of the first
        pass."""
        if self._doubles:
            examples = [eg for eg in examples for _ in range(2)]
        if not self._shims:
            self._learner.update(examples, losses=losses, **options)
            return
        targets = [target for shim in self._shims if (target := shim.adversary) is not None]
        tables = [table for table, _ in targets]
        earlier = [table.grad for table in tables]
        for shim, table in zip(self._shims, tables, strict=True):
            shim.is_repeated, table.grad = True, None
        try:
            self._learner.update(examples, losses=losses, **options)
            moves = [find_move(table.grad, radius) for table, radius in targets]
            if any(move is not None for move in moves):
                with _moved(tables, moves):
                    self._learner.update(examples, losses=None, **options)
        finally:
            for shim in self._shims:
                shim.is_repeated = False
        for table, gradient in zip(tables, earlier, strict=True):
            if gradient is not None:
                table.grad = gradient if table.grad is None else table.grad.add_(gradient)


def find_move(gradient: torch.Tensor | None, radius: float) -> torch.Tensor | None:
    """Find the move of this length along a gradient.

    gradient (Tensor | None): Of any scale, as that of fp16 activations.
    RETURNS (Tensor | None): radius · g / ‖g‖; None if there is no gradient, or it is zero or not
        finite.
    """
    if gradient is None:
        return None
    norm = float(torch.linalg.vector_norm(gradient))
    return gradient * (radius / norm) if 0 < norm < float("inf") else None


@contextmanager
def _moved(tables: list[torch.nn.Parameter], moves: list[torch.Tensor | None]) -> Iterator[None]:
    """Move weights for a while; then they are exactly what they were."""
    before = [table.data for table in tables]
    for table, move in zip(tables, moves, strict=True):
        if move is not None:
            table.data = table.data + move
    try:
        yield
    finally:
        for table, data in zip(tables, before, strict=True):
            table.data = data


def _list_shims(nlp: Language) -> Iterator[tuple[str, TorchShim]]:
    """Yield the name of a component and each torch module of its model."""
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        for node in model.walk() if isinstance(model, Model) else ():
            yield from ((name, shim) for shim in node.shims if isinstance(shim, TorchShim))
