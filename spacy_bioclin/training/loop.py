"""Train as `spacy train` does, and resume if interrupted."""

import math
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import (
    create_before_to_disk_callback,
    create_evaluation_callback,
    create_train_batches,
    train_while_improving,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Optimizer, fix_random_seed, set_gpu_allocator

from ..errors import BioclinError
from .state import Evaluation, Progress, load_state, save_state, set_generators

BEST, LAST = "model-best", "model-last"
Batches = Iterable[tuple[int, list[Example]]]


class Diverged(BioclinError):
    """A loss is no longer a finite number."""


def train(
    nlp: Language,
    output: Path,
    *,
    resume: bool = False,
    use_gpu: int = -1,
    stdout: IO[str],
    stderr: IO[str],
) -> list[tuple[int, float]]:
    """Train a pipeline by the [training] section of its config, with spaCy's own loop.

    At every evaluation the state of training is written to `output/state`: weights, moments of
    AdamW, counters, random generators. A resumed run makes the same updates, with the same result,
    as one that was never interrupted.

    nlp (Language): The initialized pipeline; with `resume`, initialized from the same config.
    output (Path): Folder for model-last, model-best and state.
    resume (bool): Continue from `output/state`.
    use_gpu (int): GPU; -1 for the CPU.
    stdout, stderr (IO[str]): Where the logger writes.
    RETURNS (list[tuple[int, float]]): For each evaluation on dev, the number of updates before it
        and the main score.
    RAISES (Diverged): A loss is no longer a finite number.
    """
    config = nlp.config.interpolate()
    _set_seed_and_allocator(config["training"], use_gpu)
    output.mkdir(parents=True, exist_ok=True)
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpora = [settings["train_corpus"], settings["dev_corpus"]]
    train_corpus, dev_corpus = resolve_dot_names(config, corpora)
    optimizer = settings["optimizer"]
    batches = create_train_batches(nlp, train_corpus, settings["batcher"], settings["max_epochs"])
    evaluate = create_evaluation_callback(nlp, dev_corpus, settings["score_weights"])
    done = Progress(0, [])
    frozen = settings["frozen_components"]
    with nlp.select_pipes(disable=frozen):
        log_step, finalize_logger = settings["logger"](nlp, stdout, stderr)
    evaluations: list[Evaluation] = []
    if resume:
        done, generators = load_state(nlp, optimizer, output)
        batches = _skip_batches(batches, done.steps, generators)
    else:
        for name in (BEST, LAST):
            shutil.rmtree(output / name, ignore_errors=True)
    steps = train_while_improving(
        nlp,
        optimizer,
        batches,
        _reuse_evaluations(evaluate, done.evaluations, evaluations),
        exclude=frozen,
        dropout=settings["dropout"],
        accumulate_gradient=settings["accumulate_gradient"],
        patience=settings["patience"],
        max_steps=settings["max_steps"],
        eval_frequency=settings["eval_frequency"],
        annotating_components=settings["annotating_components"],
        before_update=settings["before_update"],
    )
    before_to_disk = create_before_to_disk_callback(settings["before_to_disk"])
    try:
        for _, info, is_best in steps:
            if info["step"] < done.steps:
                continue  # done before the interruption
            _check_losses(info, optimizer)
            if is_best is not None:
                with nlp.select_pipes(disable=frozen):
                    update_meta(settings, nlp, info)
                _write(nlp, optimizer, before_to_disk, output / LAST)
                if is_best:
                    shutil.rmtree(output / BEST, ignore_errors=True)
                    shutil.copytree(output / LAST, output / BEST)
                progress = Progress(info["step"] + 1, evaluations)
                save_state(nlp, optimizer, progress, output)
            log_step(info if is_best is not None else None)
    finally:
        finalize_logger()
    _write(nlp, optimizer, before_to_disk, output / LAST)
    return [(i * settings["eval_frequency"], score) for i, (score, _) in enumerate(evaluations)]


def _set_seed_and_allocator(training: dict[str, Any], use_gpu: int) -> None:
    if training["seed"] is not None:
        fix_random_seed(training["seed"])
    if use_gpu >= 0 and training["gpu_allocator"]:
        set_gpu_allocator(training["gpu_allocator"])


def _write(
    nlp: Language, optimizer: Optimizer, before_to_disk: Callable[[Language], Language], path: Path
) -> None:
    with nlp.use_params(optimizer.averages):
        before_to_disk(nlp).to_disk(path)


def _check_losses(info: dict[str, Any], optimizer: Optimizer) -> None:
    """Raise `Diverged` if a loss is no longer a finite number."""
    for name, loss in info["losses"].items():
        if not math.isfinite(loss):
            raise Diverged(
                f"training diverged: the loss of [components.{name}] is {loss} at update "
                f"{info['step'] + 1}, with learning rate {float(optimizer.learn_rate):.3g}; lower "
                "[training.optimizer.learn_rate] or warm it up over more updates"
            )


def _skip_batches(batches: Batches, done: int, generators: dict[str, Any]) -> Batches:
    """Yield the batches that were trained on as empty ones, so that shuffling, epochs and schedules
    are repeated, and restore the random generators at the first new batch."""
    for step, (epoch, batch) in enumerate(batches):
        if step == done:
            set_generators(generators)
        yield epoch, batch if step >= done else []


def _reuse_evaluations(
    evaluate: Callable[[], Evaluation], known: list[Evaluation], log: list[Evaluation]
) -> Callable[[], Evaluation]:
    """Wrap `evaluate` so that it returns the known evaluations first, and logs all."""

    def reuse_or_evaluate() -> Evaluation:
        log.append(known[len(log)] if len(log) < len(known) else evaluate())
        return log[-1]

    return reuse_or_evaluate
