"""Updates of a pipeline on several tasks: which components learn from a batch, and how much."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from spacy.language import Language
from spacy.training import Example
from spacy.ty import TrainableComponent
from thinc.api import Model

from ..corpora.task_corpora import TaskCorpus
from ..errors import BioclinError
from ..settings import find_nearest
from ..types import TASK_KEY

LISTENERS = "listener_map"  # attribute of spaCy's encoders: component -> its listeners
BeforeUpdate = Callable[[Language, dict[str, Any]], None]


def find_heads(nlp: Language) -> list[str]:
    """Find the components that learn from annotation: all that learn, but the encoders, which learn
    through them."""
    return [
        name
        for name, pipe in nlp.pipeline
        if isinstance(pipe, TrainableComponent)
        and pipe.is_trainable
        and pipe.model not in (True, False, None)
        and not hasattr(pipe, LISTENERS)
    ]


def find_task_heads(
    nlp: Language, tasks: Mapping[str, TaskCorpus], frozen: Collection[str]
) -> dict[str, frozenset[str]]:
    """Find the components that learn from each task.

    frozen (Collection[str]): Components that do not learn.
    RETURNS (dict[str, frozenset[str]]): Task -> names of components.
    RAISES (BioclinError): A task names a component that does not learn or is not there, or a
        component would learn from no task.
    """
    heads = [name for name in find_heads(nlp) if name not in frozen]
    found = {
        name: frozenset(heads if task.heads is None else task.heads) for name, task in tasks.items()
    }
    for task, names in found.items():
        for name in sorted(names - set(heads)):
            raise BioclinError(f"task {task}: heads has {name!r}, {_explain(nlp, name, heads)}")
    for name in heads:
        if not any(name in names for names in found.values()):
            raise BioclinError(
                f"[components.{name}] learns from no corpus: put it into heads of a task, or into "
                "[training] frozen_components"
            )
    return found


def _explain(nlp: Language, name: str, heads: Sequence[str]) -> str:
    """Explain why a component cannot learn from a task."""
    known = f"want some of {', '.join(heads) or 'none: no component learns'}"
    if name not in nlp.pipe_names:
        return f"which is not in the pipeline; {find_nearest(name, heads)}{known}"
    if name in find_heads(nlp):
        return f"which is in [training] frozen_components, so it learns nothing; {known}"
    if hasattr(nlp.get_pipe(name), LISTENERS):
        return f"an encoder, which learns from all tasks through their heads; {known}"
    return f"which learns nothing; {known}"


class TaskUpdates:
    """Stand for a pipeline in spaCy's training loop, and let only the heads of a task, and the
    encoders that they read, learn from its examples. The encoders run once for each task in a
    batch.

    nlp (Language): The pipeline.
    heads (Mapping[str, frozenset[str]]): Task -> components that learn from it.
    get_weights (Callable[[], Mapping[str, float]]): Called for each batch, for the factors on the
        gradients of the tasks.
    """

    def __init__(
        self,
        nlp: Language,
        heads: Mapping[str, frozenset[str]],
        get_weights: Callable[[], Mapping[str, float]],
    ) -> None:
        self.nlp = nlp
        self._heads = heads
        self._get_weights = get_weights
        self._updated: set[str] = set()
        self._losses: dict[str, list[float]] = {}

    @property
    def pipeline(self) -> list[tuple[str, Any]]:
        """The components that have learned from the batch: optimizers would move others too, by
        their momentum and weight decay."""
        return [(name, pipe) for name, pipe in self.nlp.pipeline if name in self._updated]

    def use_params(self, params: dict[Any, Any]) -> AbstractContextManager[None]:
        """Replace weights for a while, see `Language.use_params`."""
        return self.nlp.use_params(params)

    def take_losses(self) -> dict[str, float]:
        """Get the mean loss of a batch of each task, the sum over its heads, since the last call.

        RETURNS (dict[str, float]): Without the tasks that had no batch.
        """
        means = {task: sum(losses) / len(losses) for task, losses in self._losses.items()}
        self._losses = {}
        return means

    def begin_batch(
        self, before_update: BeforeUpdate | None, nlp: "TaskUpdates", state: dict[str, Any]
    ) -> None:
        """Begin a new batch, and call the callback of the config, if there is one."""
        self._updated = set()
        if before_update is not None:
            before_update(self.nlp, state)

    def update(
        self,
        examples: Iterable[Example],
        *,
        losses: dict[str, float] | None,
        exclude: Iterable[str],
        **options: Any,
    ) -> None:
        """Add to the gradients, see `Language.update`.

        losses (dict[str, float] | None): Updated; None for a repeated batch, which is not counted.
        """
        weights = self._get_weights()
        for name, pipe in self.nlp.pipeline:
            if losses is not None and name not in exclude and isinstance(pipe, TrainableComponent):
                losses.setdefault(name, 0.0)  # loggers want one of each
        for task, group in _group(examples).items():
            heads = self._heads[task].difference(exclude)
            added: dict[str, float] = {}
            with connect_only(self.nlp, heads, exclude) as learning:
                others = [name for name in self.nlp.pipe_names if name not in learning]
                components: list[Any] = [self.nlp.get_pipe(name) for name in sorted(learning)]
                with scale_gradients([pipe.model for pipe in components], weights[task]):
                    self.nlp.update(group, losses=added, exclude=others, **options)
                    finish_backprop(self.nlp, learning)
            self._updated |= learning
            if losses is None:
                continue
            for name, loss in added.items():
                losses[name] = losses.get(name, 0.0) + float(loss)
            total = sum(float(added.get(name, 0.0)) for name in sorted(heads))
            self._losses.setdefault(task, []).append(total)


def _group(examples: Iterable[Example]) -> dict[str, list[Example]]:
    """Group examples by task, sorted by its name."""
    groups: dict[str, list[Example]] = {}
    for eg in examples:
        groups.setdefault(eg.reference.user_data[TASK_KEY], []).append(eg)
    return dict(sorted(groups.items()))


@contextmanager
def connect_only(
    nlp: Language, heads: Collection[str], frozen: Iterable[str]
) -> Iterator[frozenset[str]]:
    """Let encoders send vectors to some components only. An encoder waits for the gradient of the
    last component that it sends to, so that must be one that learns.

    heads (Collection[str]): The components that learn from annotation.
    frozen (Iterable[str]): Components that do not learn.
    YIELDS (frozenset[str]): The heads, and the encoders that they read directly or through another
        one.
    """
    learning = set(heads)
    maps = {}
    for name, pipe in reversed(nlp.pipeline):
        listeners = getattr(pipe, LISTENERS, None)
        if listeners is None:
            continue
        maps[name] = listeners
        wanted = {reader: own for reader, own in listeners.items() if reader in learning}
        setattr(pipe, LISTENERS, wanted)
        if wanted and name not in frozen:
            learning.add(name)
    try:
        yield frozenset(learning)
    finally:
        for name, listeners in maps.items():
            setattr(nlp.get_pipe(name), LISTENERS, listeners)


def finish_backprop(nlp: Language, names: Collection[str]) -> None:
    """Run the backward pass of encoders whose last reader had nothing to learn from a batch: it did
    not pass on the gradients of the others.

    names (Collection[str]): The components that learn.
    """
    for name, pipe in nlp.pipeline:
        listeners = getattr(pipe, "listeners", []) if name in names else []
        # Only a TransformerListener forgets the callback once it is called.
        if listeners and hasattr(listeners[-1], "backprop_and_clear"):
            last = listeners[-1]
            if last._backprop is not None:
                zeros = [SimpleNamespace(tensors=[0 * t for t in o.tensors]) for o in last._outputs]
                last.backprop_and_clear(zeros)


@contextmanager
def scale_gradients(models: Iterable[Model[Any, Any]], weight: float) -> Iterator[None]:
    """Multiply the gradients that are added meanwhile; those there are stay as they are.

    models (Iterable[Model]): Their weights are in thinc or in torch.
    """
    if weight == 1.0:
        yield
        return
    nodes = [node for model in models for node in model.walk()]
    modules = {id(shim): shim._model for node in nodes for shim in node.shims}
    tensors = [
        tensor
        for module in modules.values()
        if isinstance(module, torch.nn.Module)
        for tensor in module.parameters()
    ]
    before = [tensor.grad for tensor in tensors]
    for tensor in tensors:
        tensor.grad = None
    arrays = {
        (node.id, name): (node, name, node.get_grad(name).copy())
        for node in nodes
        for name in node.grad_names
    }
    for node, name, _ in arrays.values():
        node.get_grad(name)[...] = 0
    yield
    with torch.no_grad():
        for tensor, old in zip(tensors, before, strict=True):
            if tensor.grad is not None:
                tensor.grad.mul_(weight)
            if old is not None:
                tensor.grad = old if tensor.grad is None else tensor.grad.add_(old)
    for node in nodes:
        for name in node.grad_names:
            node.get_grad(name)[...] *= weight
            if (node.id, name) in arrays:
                node.get_grad(name)[...] += arrays[node.id, name][2]
