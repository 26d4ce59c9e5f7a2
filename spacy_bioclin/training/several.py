"""Train on several tasks with spaCy's loop."""

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
from spacy.training import Example

from ..corpora.task_corpora import TaskCorpora
from ..errors import BioclinError
from .heads import TaskUpdates, find_task_heads
from .state import Evaluation
from .task_checks import check_annotation, check_places
from .task_report import print_scores, write_report
from .task_scores import TASKS, TaskScorer

Batches = Iterator[tuple[int, list[Example]]]
TEMPERATURE = (
    2.0  # of `average_weights`, as in the paper; the larger, the more even are the weights
)


class TaskTraining:
    """What spaCy's loop gets for a training on several tasks, in place of what it gets for one.

    nlp (Language): The initialized pipeline. Its config gets the weights of the scores.
    corpora (tuple[TaskCorpora, TaskCorpora]): For training and for evaluation.
    settings (dict[str, Any]): The resolved [training] section, which also gets the weights.
    evaluations (Sequence[Evaluation]): Those so far; it grows during training.
    RAISES (BioclinError): The tasks, the pipeline and the scores that are wanted do not fit.
    """

    def __init__(
        self,
        nlp: Language,
        corpora: tuple[TaskCorpora, TaskCorpora],
        settings: dict[str, Any],
        evaluations: Sequence[Evaluation],
    ) -> None:
        self._nlp, self._every = nlp, settings["eval_frequency"]
        self._corpus, dev = corpora
        if not isinstance(dev, TaskCorpora):
            raise BioclinError(
                "[training] dev_corpus: the training corpus has several tasks, so dev has to be a "
                "spacy-bioclin.TaskCorpora.v1 too"
            )
        self._heads = find_task_heads(nlp, self._corpus.tasks, settings["frozen_components"])
        check_places(nlp, sorted(frozenset().union(*self._heads.values())))
        scorer = TaskScorer(nlp, dev)
        weights = scorer.check_formula(settings["score_weights"])
        settings["score_weights"] = weights
        nlp.config["training"]["score_weights"] = weights
        self._score_weights, self._metrics = weights, scorer.metrics
        self.updates = TaskUpdates(nlp, self._heads, self._get_weights)
        self.before_update = partial(self.updates.begin_batch, settings["before_update"])
        self.evaluate: Callable[[], Evaluation] = partial(
            scorer.evaluate, weights, self.updates.take_losses
        )
        self._evaluations = evaluations
        self._n_weighed = -1
        self._weights: dict[str, float] = {}

    def read(self, nlp: Language) -> Iterable[Example]:
        """Read the training corpora. RAISES (BioclinError): See `check_annotation`."""
        examples = self._corpus.read(nlp)
        return check_annotation(nlp, self._corpus.tasks, self._heads, examples)

    def report(self, info: Mapping[str, Any], output: Path) -> None:
        """Write the evaluations into the folder of the training, and put the main scores of the
        tasks into the meta of the pipeline.

        info (Mapping[str, Any]): What spaCy's loop says of the last evaluation.
        """
        scores, performance = info["other_scores"], self._nlp.meta["performance"]
        for name, weight in self._score_weights.items():
            if weight is None:  # of components, which are scored by task
                performance.pop(name, None)
        performance |= {
            f"{task}_{key}": scores[f"{task}_{key}"]
            for task, keys in self._metrics.items()
            for key in keys
        }
        write_report(output, self._evaluations, self._every)

    def print_scores(self, file: IO[str]) -> None:
        """Print the table of the last evaluation, unless the logger is to be silent."""
        if self._nlp.config["training"]["logger"].get("console_output", True):
            print_scores(self._evaluations, self._every, file)

    def _get_weights(self) -> dict[str, float]:
        """Weight the tasks; anew after each evaluation."""
        if self._n_weighed != len(self._evaluations):
            self._n_weighed = len(self._evaluations)
            self._weights = {name: task.weight for name, task in self._corpus.tasks.items()}
            if self._corpus.balance == "dwa":
                losses = [
                    {task: row["loss"] for task, row in scores[TASKS].items() if row["loss"]}
                    for _, scores in self._evaluations
                ]
                for task, factor in average_weights(self._weights, losses).items():
                    self._weights[task] *= factor
        return self._weights


def average_weights(
    tasks: Collection[str], losses: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """Weight tasks by how slowly their losses fall: the dynamic weight average (Liu et al. 2019,
    End-to-End Multi-Task Learning with Attention, eq. 7).

    tasks (Collection[str]): Names of the tasks.
    losses (Sequence[Mapping[str, float]]): Mean loss of each task between evaluations, the oldest
        first. The first is left out: it is of one batch.
    RETURNS (dict[str, float]): Task -> weight; their mean is 1. All are 1 until each task has two
        losses.
    """
    rates = {}
    for task in tasks:
        known = [part[task] for part in losses[1:] if task in part]
        if len(known) < 2 or known[-2] <= 0:
            return dict.fromkeys(tasks, 1.0)
        rates[task] = known[-1] / known[-2]
    top = max(rates.values())
    powers = {task: math.exp((rate - top) / TEMPERATURE) for task, rate in rates.items()}
    total = sum(powers.values())
    return {task: len(powers) * power / total for task, power in powers.items()}


def draw_apart(batches: Batches) -> Batches:
    """Draw batches with random numbers of their own: components may draw too, and a resumed run,
    which skips updates, still has to draw the same batches."""
    own = random.getstate()

    def draw() -> Batches:
        nonlocal own
        iterator = iter(batches)
        while True:
            others = random.getstate()
            random.setstate(own)
            try:
                batch = next(iterator)
            except StopIteration:
                return
            finally:
                own = random.getstate()
                random.setstate(others)
            yield batch

    return draw()
