"""Published scores of relations: micro and macro F1 over the classes of a task."""

from collections.abc import Sequence

from spacy.training import Example

from ..relations import compare_relations, count_relations
from ..spans import SpanScores
from .scoring import Scores, TaskScoring

KEYS = ("value", "p", "r", "micro_f", "macro_f", "docs")


def score_relations_micro(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute micro F1 of relations over the labels of the task, without "no relation": ChemProt
    over five classes, DDI over four, i2b2 2010 over eight (BLUE; Lewis et al. 2020 for DDI).

    A relation in a part of the text that the pipeline does not look at counts as missed.

    egs (Sequence[Example]): The Examples, which are not changed; their predicted Docs have the
        entities that the relations are between.
    task (TaskScoring): Its `relations` count.
    RETURNS (dict[str, float | None]): "value" is micro F1; "p", "r", "micro_f", "macro_f" and
        "docs". All are None if no gold Doc is annotated for relations.
    """
    scores = _count(egs, task)
    return dict.fromkeys(KEYS) if scores is None else _list(scores, scores.micro.f1)


def score_relations_macro(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute macro F1 of relations: the mean F1 of the labels of the task that occur in the gold
    Docs (table 1 of Lewis et al. 2020, for ChemProt).

    egs, task: See `score_relations_micro`.
    RETURNS (dict[str, float | None]): "value" is macro F1; the rest as there.
    """
    scores = _count(egs, task)
    return dict.fromkeys(KEYS) if scores is None else _list(scores, scores.macro["f"])


def _count(egs: Sequence[Example], task: TaskScoring) -> SpanScores | None:
    compared = [compare_relations(eg, task.relations_key, task.symmetric) for eg in egs]
    scores = count_relations(compared, task.level)
    if scores is None or not task.relations:
        return scores
    return SpanScores(
        [
            {label: counts for label, counts in doc.items() if label in task.relations}
            for doc in scores.per_doc
        ]
    )


def _list(scores: SpanScores, value: float) -> Scores:
    micro = scores.micro.prf()
    return {
        "value": value,
        "p": micro["p"],
        "r": micro["r"],
        "micro_f": micro["f"],
        "macro_f": scores.macro["f"],
        "docs": len(scores.per_doc),
    }
