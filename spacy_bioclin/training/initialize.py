"""Create and initialize a pipeline for training."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import (
    get_sourced_components,
    load_model_from_config,
    registry,
    resolve_dot_names,
)
from thinc.api import Config, fix_random_seed, set_gpu_allocator

from ..corpora.task_corpora import NAME, TaskCorpora
from .checks.categories import check_categories
from .heads import find_heads, find_task_heads


def init_pipeline(config: Config, *, use_gpu: int = -1) -> Language:
    """Create and initialize the pipeline of a config, as spaCy's `init_nlp` does. Of the corpora of
    several tasks, each component sees those that it learns from: its labels are theirs.

    config (Config): Not interpolated.
    use_gpu (int): GPU; -1 for the CPU.
    RAISES (BioclinError): The tasks do not fit the components, see `find_task_heads`, or the labels
        of texts do not, see `check_categories`.
    """
    check_categories(config.interpolate())
    if not _has_tasks(config.interpolate()):
        return init_nlp(config, use_gpu=use_gpu)
    training = config.interpolate()["training"]
    set_seed_and_allocator(training, use_gpu)
    sourced = get_sourced_components(config.interpolate())
    nlp = load_model_from_config(config, auto_fill=True)
    filled = nlp.config.interpolate()
    settings = registry.resolve(filled["training"], schema=ConfigSchemaTraining)
    corpus: TaskCorpora
    [corpus] = resolve_dot_names(filled, [settings["train_corpus"]])
    frozen, optimizer = settings["frozen_components"], settings["optimizer"]
    resumed = [name for name in sourced if name not in frozen]
    if resumed:
        with nlp.select_pipes(enable=resumed):
            nlp.resume_training(sgd=optimizer)
    nlp._link_components()
    find_task_heads(nlp, corpus.tasks, frozen)
    heads = find_heads(nlp)
    with nlp.select_pipes(disable=[*frozen, *resumed]), _reading_own(nlp, corpus, heads):
        nlp.initialize(lambda: corpus.read(nlp), sgd=optimizer)
    return nlp


def set_seed_and_allocator(training: dict[str, Any], use_gpu: int) -> None:
    """Set the random seed and the allocator of GPU memory of the [training] section."""
    if training["seed"] is not None:
        fix_random_seed(training["seed"])
    if use_gpu >= 0 and training["gpu_allocator"]:
        set_gpu_allocator(training["gpu_allocator"])


def _has_tasks(config: Config) -> bool:
    place: Any = config
    for key in config.get("training", {}).get("train_corpus", "corpora.train").split("."):
        place = place.get(key, {})
    return place.get("@readers") == NAME


class _Reader:
    """A component that is initialized with the Docs of its own tasks."""

    def __init__(self, pipe: Any, read: Callable[[], Iterable[Example]]) -> None:
        self._pipe = pipe

        @wraps(pipe.initialize)  # spaCy checks settings by the signature
        def initialize(get_examples: Any, **settings: Any) -> None:
            pipe.initialize(read, **settings)

        self.initialize = initialize

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)


@contextmanager
def _reading_own(nlp: Language, corpus: TaskCorpora, heads: Iterable[str]) -> Iterator[None]:
    components: list[tuple[str, Any]] = list(nlp._components)
    readers = {name: partial(corpus.read, nlp, head=name) for name in heads}
    wrapped: list[tuple[str, Any]] = [
        (name, _Reader(pipe, readers[name]) if name in readers else pipe)
        for name, pipe in components
    ]
    nlp._components = wrapped
    try:
        yield
    finally:
        nlp._components = components
