"""Scores of each task on dev, and the formula over them that chooses the best pipeline."""

import math
from collections.abc import Callable, Mapping
from statistics import fmean
from timeit import default_timer
from typing import Any

from spacy.language import Language
from spacy.training import Example

from ..corpora.task_corpora import RESERVED, TaskCorpora, TaskCorpus
from ..errors import BioclinError
from ..settings import find_nearest
from ..types import TASK_KEY
from .heads import find_heads
from .state import Evaluation
from .task_checks import check_annotation

TASKS = RESERVED  # key in the scores of an evaluation: task -> its row in the table
MEAN, MIN, GEOMETRIC_MEAN = "tasks_mean", "tasks_min", "tasks_geometric_mean"
# Names of the three numbers that the table shows, beside the main score.
PARTS = ("p", "r", "f")


class TaskScorer:
    """Score a pipeline on the corpora of several tasks: each task by its own heads, on its own
    Docs.

    nlp (Language): The pipeline.
    corpus (TaskCorpora): The corpora of dev.
    RAISES (BioclinError): A task names a component that is not there, its Docs have no annotation
        for it, or its main score is unknown.
    """

    def __init__(self, nlp: Language, corpus: TaskCorpora) -> None:
        self.nlp = nlp
        self._corpus = corpus
        self._heads = {name: _find_scored(nlp, name, task) for name, task in corpus.tasks.items()}
        # What scorers give for gold annotation says which scores there will be.
        examples = check_annotation(nlp, corpus.tasks, self._heads, corpus.read(nlp))
        known = self._score([Example(eg.reference, eg.reference) for eg in examples])
        self.metrics = {
            name: _find_metrics(nlp, name, task, self._heads[name], known[name])
            for name, task in corpus.tasks.items()
        }
        self.names = [MEAN, MIN, GEOMETRIC_MEAN] + [
            f"{task}_{key}"
            for task, scores in known.items()
            for key, value in scores.items()
            if isinstance(value, int | float)
        ]

    def _score(self, examples: list[Example]) -> dict[str, dict[str, Any]]:
        """Score each task. RETURNS (dict): Task -> name of a score -> score."""
        groups: dict[str, list[Example]] = {task: [] for task in self._heads}
        for eg in examples:
            groups[eg.reference.user_data[TASK_KEY]].append(eg)
        scores: dict[str, dict[str, Any]] = {}
        for task, heads in self._heads.items():
            scores[task] = {}
            for name in heads:
                pipe: Any = self.nlp.get_pipe(name)
                scores[task].update(pipe.score(groups[task]))
        return scores

    def check_formula(self, weights: Mapping[str, float | None]) -> dict[str, float | None]:
        """Check the names in [training.score_weights].

        weights (Mapping[str, float | None]): As spaCy has them: with those that components have by
            default, divided by their sum.
        RETURNS (dict[str, float | None]): Those of tasks, divided by their sum; None for others.
        RAISES (BioclinError): A name is no score, or no name is left.
        """
        defaults = {
            key
            for name in self.nlp.pipe_names
            for key in self.nlp.get_pipe_meta(name).default_score_weights or {}
        }
        for name in weights:
            if name not in self.names and name not in defaults:
                raise BioclinError(
                    f"[training.score_weights] {name}: there is no such score; "
                    f"{find_nearest(name, self.names)}want some of {', '.join(self.names)}"
                )
        total = sum(weights.get(name) or 0.0 for name in self.names)
        if not total:
            raise BioclinError(
                f"[training.score_weights] has no score of a task with a weight: set {MEAN} = 1.0, "
                f"or some of {', '.join(self.names)}"
            )
        return {
            name: weight / total if weight is not None and name in self.names else None
            for name, weight in weights.items()
        }

    def evaluate(
        self, weights: Mapping[str, float | None], take_losses: Callable[[], Mapping[str, float]]
    ) -> Evaluation:
        """Annotate dev once, and score every task.

        weights (Mapping[str, float | None]): See `check_formula`.
        take_losses (Callable[[], Mapping[str, float]]): Gives the mean loss of each task since the
            last evaluation.
        RETURNS (Evaluation): The weighted sum, and all scores: TASK_KEY for each score of a task,
            those over all tasks, and a row for each task.
        """
        examples = list(self._corpus.read(self.nlp))
        started = default_timer()
        docs = self.nlp.pipe(eg.predicted for eg in examples)
        n_tokens = 0
        for eg, doc in zip(examples, docs, strict=True):
            eg.predicted = doc
            n_tokens += len(doc)
        speed = n_tokens / (default_timer() - started)
        losses = take_losses()
        by_task = self._score(examples)
        rows: dict[str, dict[str, Any]] = {}
        for task, scores in by_task.items():
            mains = [float(scores.get(key) or 0.0) for key in self.metrics[task]]
            stem = self.metrics[task][0].rpartition("_")[0]
            parts = {part: _as_number(scores.get(f"{stem}_{part}")) for part in PARTS}
            rows[task] = {"score": fmean(mains), **parts, "loss": losses.get(task)}
        mains = [row["score"] for row in rows.values()]
        all_scores: dict[str, Any] = {
            MEAN: fmean(mains),
            MIN: min(mains),
            GEOMETRIC_MEAN: math.prod(mains) ** (1 / len(mains)),
            **{f"{task}_{key}": v for task, scores in by_task.items() for key, v in scores.items()},
            "speed": speed,
            TASKS: rows,
        }
        total = sum(
            weight * (all_scores.get(name) or 0.0) for name, weight in weights.items() if weight
        )
        return total, all_scores


def _as_number(value: Any) -> float | None:
    return None if value is None else float(value)


def _find_scored(nlp: Language, task: str, corpus: TaskCorpus) -> list[str]:
    """Find the components that a task is scored by, in the order of the pipeline."""
    heads = find_heads(nlp)
    for name in corpus.heads or ():
        if name not in nlp.pipe_names:
            raise BioclinError(
                f"task {task}: heads has {name!r}, which is not in the pipeline; "
                f"{find_nearest(name, heads)}want some of {', '.join(heads)}"
            )
    wanted = heads if corpus.heads is None else corpus.heads
    found = [name for name in nlp.pipe_names if name in wanted]
    return [name for name in found if hasattr(nlp.get_pipe(name), "score")]


def _find_metrics(
    nlp: Language, task: str, corpus: TaskCorpus, heads: list[str], known: Mapping[str, Any]
) -> list[str]:
    """Find the main scores of a task: what the config says, or what spaCy weights most for each of
    its heads."""
    numbers = [key for key, value in known.items() if isinstance(value, int | float)]
    if corpus.metric is not None:
        if corpus.metric in numbers:
            return [corpus.metric]
        raise BioclinError(
            f"task {task}: metric = {corpus.metric!r}: there is no such score; "
            f"{find_nearest(corpus.metric, numbers)}want one of {', '.join(numbers)}"
        )
    metrics = []
    for name in heads:
        weights = nlp.get_pipe_meta(name).default_score_weights or {}
        layer = getattr(nlp.get_pipe(name), "cfg", {}).get("spans_key")
        for key in sorted(weights, key=lambda key: -(weights[key] or 0.0)):
            # The names of a head with another spans_key than the default.
            other = f"spans_{layer}_{key.rpartition('_')[2]}"
            if found := [one for one in (other, key) if one in numbers]:
                metrics.append(found[0])
                break
    if not metrics:
        raise BioclinError(
            f"task {task}: there is no score of {', '.join(heads) or 'its heads'} on "
            f"{corpus.path}; set metric to one of {', '.join(numbers) or 'none: there is no score'}"
        )
    return metrics
