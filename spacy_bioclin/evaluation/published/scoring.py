"""What a published score has to know about a task: plain values, wherever they come from."""

from collections.abc import Sequence
from typing import NamedTuple

from spacy.language import Language

from ..components import find_relation_components

Scores = dict[str, float | None]
ALL = "all"  # value of `relations` for every label


class TaskScoring(NamedTuple):
    """What of a task is scored.

    layers (tuple[str, ...]): Layers of spans: "ents" for doc.ents, or keys of doc.spans. Empty for
        all that the gold Docs are annotated for.
    classes (tuple[str, ...]): Classes of texts or pairs; empty for those of the gold Docs.
    exclusive (bool): A text has exactly one class.
    positive (str): The positive class of two; "" for the one that is called "yes", "1", "true" or
        "positive".
    relations (tuple[str, ...]): Labels of relations; empty for all.
    relations_key (str): Which relations of the predicted Docs.
    symmetric (tuple[str, ...]): Labels of relations without direction.
    level (str | None): "mention" or "concept"; None for what the gold Docs are annotated for.
    """

    layers: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    exclusive: bool = True
    positive: str = ""
    relations: tuple[str, ...] = ()
    relations_key: str = "relations"
    symmetric: tuple[str, ...] = ()
    level: str | None = None


def make_scoring(
    nlp: Language,
    *,
    layers: Sequence[str] = (),
    classes: Sequence[str] = (),
    exclusive: bool = True,
    positive: str = "",
    relations: Sequence[str] = (),
) -> TaskScoring:
    """Describe how a task is scored with a pipeline.

    nlp (Language): The pipeline. Its first component that finds relations says where they are,
        which labels have no direction, and the level.
    layers, classes, exclusive, positive: See `TaskScoring`.
    relations (Sequence[str]): Labels of relations; empty or "all" for all.
    RETURNS (TaskScoring): The description.
    """
    task = TaskScoring(
        layers=tuple(layers),
        classes=tuple(classes),
        exclusive=exclusive,
        positive=positive,
        relations=() if relations == ALL else tuple(relations),
    )
    for finder in find_relation_components(nlp)[:1]:
        task = task._replace(
            relations_key=finder.relations_key, symmetric=finder.symmetric, level=finder.level
        )
    return task
