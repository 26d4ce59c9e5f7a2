"""Batches of several tasks: which task the next batch is from."""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from spacy.training import Example

from ..errors import BioclinError
from ..settings import check_choice, find_nearest
from ..types import TASK_KEY

NAME = "spacy-bioclin.batch_by_task.v1"
DRAWS = ("proportional", "round_robin", "temperature")
STEPS = ("batch", "round")

Batch = list[Example]
Batcher = Callable[[Iterable[Example]], Iterable[Batch]]


def make_batch_by_task(
    batcher: Batcher,
    *,
    draw: str = "proportional",
    temperature: float = 2.0,
    step: str = "batch",
    turns: Mapping[str, int] | None = None,
    batchers: Mapping[str, Any] | None = None,  # thinc checks types before it makes them
) -> Batcher:
    """Make a batcher for the corpora of several tasks (registered as
    `spacy-bioclin.batch_by_task.v1`). Each batch has examples of one task.

    batcher (Callable): Cuts the examples of one task into batches.
    draw (str): How often each task has its turn. "proportional": an epoch has each batch of each
        task once, in random order. "temperature": an epoch has as many batches, but the share of a
        task is its number of batches to the power 1 / temperature; see `count_turns`.
        "round_robin": the tasks take turns, until the largest has had all its batches once.
    temperature (float): 1 or more; only for "temperature".
    step (str): "batch": an update learns from one batch. "round": it learns from one batch of each
        task, which needs "round_robin".
    turns (Mapping[str, int] | None): How many turns a task has in a round, if not 1; only for
        "round_robin".
    batchers (Mapping[str, Callable] | None): Task -> what cuts its examples, if not `batcher`.
    RETURNS (Callable): The batcher.
    RAISES (BioclinError): A setting has a wrong value.
    """
    for key, value, known in (("draw", draw, DRAWS), ("step", step, STEPS)):
        try:
            check_choice(value, known)
        except ValueError as error:
            raise BioclinError(f"{NAME}: {key} = {value!r}: {error}") from None
    if not temperature >= 1:
        raise BioclinError(f"{NAME}: temperature = {temperature}: want a number of 1 or more")
    if step == "round" and draw != "round_robin":
        raise BioclinError(
            f'{NAME}: step = "round" with draw = "{draw}": a round has one batch of each task, so '
            'set draw to "round_robin"; the weight of a task in [corpora.train.tasks] is its share'
        )

    own = dict(turns or {})
    if own and draw != "round_robin":
        raise BioclinError(f'{NAME}: turns with draw = "{draw}": set draw to "round_robin"')
    if few := sorted(task for task, number in own.items() if number < 1):
        raise BioclinError(f"{NAME}: turns.{few[0]} = {own[few[0]]}: want 1 or more")

    cutters: dict[str, Batcher] = dict(batchers or {})

    def batch_by_task(examples: Iterable[Example]) -> Iterator[Batch]:
        groups = _group(examples)
        _check_tasks("turns", own, groups)
        _check_tasks("batchers", cutters, groups)
        queues = {task: _Queue(egs, cutters.get(task, batcher)) for task, egs in groups.items()}
        sizes = {task: queue.size for task, queue in queues.items()}
        batches = (queues[task].take() for task in draw_turns(sizes, draw, temperature, own))
        if step == "batch":
            return batches
        n_tasks = sum(own.get(task, 1) for task in sizes)
        return (list(chain.from_iterable(part)) for part in zip(*[batches] * n_tasks, strict=True))

    return batch_by_task


def _check_tasks(setting: str, named: Iterable[str], tasks: Collection[str]) -> None:
    """Check that the tasks that a setting names exist."""
    if unknown := sorted(set(named) - set(tasks)):
        near = find_nearest(unknown[0], list(tasks))
        raise BioclinError(
            f"{NAME}: {setting}.{unknown[0]}: no such task; {near}want one of {', '.join(tasks)}"
        )


def draw_turns(
    sizes: dict[str, int], draw: str, temperature: float, turns: Mapping[str, int]
) -> list[str]:
    """Draw the tasks of an epoch's batches.

    sizes (dict[str, int]): Task -> number of batches that its examples make.
    draw (str), temperature (float), turns (Mapping): See `make_batch_by_task`.
    RETURNS (list[str]): A task for each batch.
    """
    if draw == "round_robin":
        a_round = [task for task in sizes for _ in range(turns.get(task, 1))]
        rounds = (-(-size // turns.get(task, 1)) for task, size in sizes.items())
        return a_round * max(rounds, default=0)
    counts = count_turns(sizes, draw, temperature)
    drawn = [task for task, count in counts.items() for _ in range(count)]
    random.shuffle(drawn)
    return drawn


def count_turns(sizes: dict[str, int], draw: str, temperature: float) -> dict[str, int]:
    """Count the batches that each task has in an epoch.

    With "temperature" T and n batches of a task, its share is proportional to n ** (1 / T), as in
    multilingual BERT (Devlin et al. 2019, exponent 0.7); it has at least one batch.
    """
    if draw == "proportional":
        return dict(sizes)
    shares = {task: size ** (1 / temperature) for task, size in sizes.items()}
    total = sum(sizes.values()) / sum(shares.values()) if shares else 0
    return {task: max(1, round(share * total)) for task, share in shares.items()}


class _Queue:
    """The batches of a task. After the last one, its examples are shuffled and cut again."""

    def __init__(self, examples: Batch, batcher: Batcher) -> None:
        self._examples, self._batcher = examples, batcher
        self._batches = list(batcher(examples))
        self.size = len(self._batches)
        if not self.size:
            raise BioclinError(
                f"{NAME}: the batcher discards all {len(examples)} examples of a task; set "
                "discard_oversize = false in [training.batcher.batcher]"
            )
        self._batches.reverse()

    def take(self) -> Batch:
        if not self._batches:
            random.shuffle(self._examples)
            self._batches = list(self._batcher(self._examples))[::-1]
        return self._batches.pop()


def _group(examples: Iterable[Example]) -> dict[str, Batch]:
    groups: dict[str, Batch] = {}
    for eg in examples:
        user_data: dict[Any, Any] = eg.reference.user_data
        if TASK_KEY not in user_data:
            raise BioclinError(
                f"{NAME}: an example belongs to no task; the training corpus has to be a "
                "spacy-bioclin.TaskCorpora.v1"
            )
        groups.setdefault(user_data[TASK_KEY], []).append(eg)
    return dict(sorted(groups.items()))
