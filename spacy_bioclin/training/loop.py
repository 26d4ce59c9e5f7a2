"""Train as `spacy train` does, and resume if interrupted."""

import json
import math
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
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
from spacy.util import registry, resolve_dot_names, walk_dict
from thinc.api import Config, Optimizer

from ..corpora.task_corpora import TaskCorpora
from ..errors import BioclinError
from ..files import hash_files
from ..interrupts import tell
from ..outputs import check_inputs, check_output, grow_folder, open_folder, remove
from ..vocab import save_pipeline
from .initialize import set_seed_and_allocator
from .repeats import RepeatedUpdates
from .several import TaskTraining, draw_apart
from .state import (
    STATE,
    VALUES,
    Evaluation,
    Progress,
    find_state,
    load_state,
    save_state,
    set_generators,
)
from .task_report import JSON, PICTURE

BEST, LAST = "model-best", "model-last"
MAX_PATH = 1024  # characters; a longer setting is no path
# Settings that a resumed run may change: where files are, how long to train, what is logged.
ANYWHERE = re.compile(
    r"paths\..*|corpora\.[^.]+\.((tasks\.[^.]+\.)?path|leave_out|held_out|allow_overlap)"
    r"|components\.[^.]+\.model\.name|.*\.encoder|initialize\..*"
    r"|training\.(max_steps|max_epochs|patience)"
    r"|training\.(logger|before_update)(\..*)?|system\.gpu_allocator"
)
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
    RAISES (BioclinError): Another process trains into the output, the output would replace an
        input, or the state is damaged or was made from something else.
    """
    check_outputs(nlp.config, output)
    with grow_folder(output):
        return _train(nlp, output, resume, use_gpu, stdout, stderr)


def check_outputs(config: Mapping[str, Any], output: Path) -> None:
    """Refuse a training that would replace what it reads: a corpus, an encoder, a pipeline.

    RAISES (BioclinError): model-last, model-best or state is an input, or holds one.
    """
    inputs = list(_list_inputs(Config(config).interpolate()))
    for name in (LAST, BEST, STATE):
        check_inputs(output / name, inputs)


def check_new(output: Path, *, overwrite: bool) -> None:
    """Refuse a new training in a folder that holds another, or something else.

    RAISES (BioclinError): See `check_output`; all that a training writes is checked.
    """
    for name, marker in ((LAST, "config.cfg"), (BEST, "config.cfg"), (STATE, VALUES)):
        check_output(output / name, overwrite=overwrite, marker=marker)
    for name in (JSON, PICTURE):
        check_output(output / name, overwrite=overwrite)


def _train(
    nlp: Language,
    output: Path,
    resume: bool,
    use_gpu: int,
    stdout: IO[str],
    stderr: IO[str],
) -> list[tuple[int, float]]:
    """Train in an output that no other process writes; see `train`."""
    made_from = describe_run(nlp)
    config = nlp.config.interpolate()
    set_seed_and_allocator(config["training"], use_gpu)
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpora = [settings["train_corpus"], settings["dev_corpus"]]
    train_corpus, dev_corpus = resolve_dot_names(config, corpora)
    optimizer = settings["optimizer"]
    evaluations: list[Evaluation] = []
    learner: Any = nlp
    several: TaskTraining | None = None
    read, before_update = train_corpus, settings["before_update"]
    if isinstance(train_corpus, TaskCorpora):
        several = TaskTraining(nlp, (train_corpus, dev_corpus), settings, evaluations)
        read, before_update, learner = several.read, several.before_update, several.updates
        evaluate = several.evaluate
    else:
        evaluate = create_evaluation_callback(nlp, dev_corpus, settings["score_weights"])
    batches = create_train_batches(nlp, read, settings["batcher"], settings["max_epochs"])
    if several:
        batches = draw_apart(batches)
    done = Progress(0, [])
    frozen = settings["frozen_components"]
    with nlp.select_pipes(disable=frozen):
        log_step, finalize_logger = settings["logger"](nlp, stdout, stderr)
    if resume:
        done, generators = load_state(nlp, optimizer, output, made_from)
        batches = _skip_batches(batches, done.steps, generators)
    else:
        for name in (BEST, LAST, STATE, f".{STATE}.old", JSON, PICTURE):
            remove(output / name)
    learner = RepeatedUpdates(nlp, learner, frozen)
    tell(partial(describe_kept, output))
    steps = train_while_improving(
        learner,
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
        before_update=before_update and (lambda _, state: before_update(nlp, state)),
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
                if several:
                    several.report(info, output)
                _write(nlp, optimizer, before_to_disk, output / LAST)
                if is_best:
                    with open_folder(output / BEST) as folder:
                        shutil.copytree(output / LAST, folder, dirs_exist_ok=True)
                progress = Progress(info["step"] + 1, evaluations)
                save_state(nlp, optimizer, progress, output, made_from)
            log_step(info if is_best is not None else None)
            if several and is_best is not None:
                several.print_scores(stdout)
    finally:
        finalize_logger()
    _write(nlp, optimizer, before_to_disk, output / LAST)
    return [(i * settings["eval_frequency"], score) for i, (score, _) in enumerate(evaluations)]


def describe_kept(output: Path) -> str:
    """Describe for the user what an interrupted training has kept."""
    if find_state(output) is not None:
        return (
            f"the state of the last evaluation is kept in {output / STATE}; run the same command "
            "again with --resume"
        )
    if (output / LAST).exists():
        return "there is no state to go on from; run the same command again with --overwrite"
    return ""


def _write(
    nlp: Language, optimizer: Optimizer, before_to_disk: Callable[[Language], Language], path: Path
) -> None:
    with nlp.use_params(optimizer.averages), open_folder(path) as folder:
        save_pipeline(before_to_disk(nlp), folder)


def describe_run(nlp: Language) -> dict[str, Any]:
    """Describe what a training is made from: settings, and hashes of its corpora.

    Where its files are does not matter, nor what is logged.

    RETURNS (dict[str, Any]): As JSON.
    """
    readers = walk_dict(Config(nlp.config).interpolate()["corpora"])
    corpora = {
        ".".join(place[:-1] if place[-1] == "path" else place): hash_files(Path(path))
        for place, path in readers
        if place[-1] in ("path", "leave_out") and isinstance(path, str) and Path(path).exists()
    }
    flat = {".".join(path): value for path, value in walk_dict(nlp.config)}
    settings = {path: value for path, value in flat.items() if not ANYWHERE.fullmatch(path)}
    return json.loads(json.dumps({"corpora": corpora, **settings}, default=str))


def _list_inputs(value: Any) -> Iterator[Path]:
    """List the existing files and folders that are named anywhere in a config."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _list_inputs(part)
    elif isinstance(value, list):
        for part in value:
            yield from _list_inputs(part)
    elif isinstance(value, str) and value and len(value) < MAX_PATH:
        with suppress(OSError, ValueError):
            if Path(value).exists():
                yield Path(value)


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
