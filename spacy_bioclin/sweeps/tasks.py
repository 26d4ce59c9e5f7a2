"""What each task of a sweep learns: its kind, its score, and the settings that follow from both."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..catalog.tasks import find_task
from ..catalog.tasks.task import Kind
from ..errors import BioclinError
from ..evaluation.metrics import ENTS
from ..evaluation.published import METRICS
from ..settings import find_nearest
from .entries import Corpus

LANG = re.compile("[a-z]{2,3}")
# Kind of task -> its config, the component in it that learns, and the usual score.
CONFIGS: dict[Kind, str] = {
    "entities": "configs/ner.cfg",
    "relations": "configs/relations.cfg",
    "pairs": "configs/pairs.cfg",
    "texts": "configs/textcat.cfg",
}
HEADS: dict[Kind, str] = {
    "entities": "ner",
    "relations": "relations",
    "pairs": "pairs",
    "texts": "textcat",
}
SCORES: dict[Kind, str] = {
    "entities": "entities_strict_f",
    "relations": "relations_micro_f",
    "pairs": "pairs_accuracy",
    "texts": "texts_accuracy",
}
GRADED_SCORE = "pairs_pearson"


class TaskSetup(NamedTuple):
    """What a task learns.

    name (str): Name in the plan.
    path (str | None): See `Corpus`.
    lang (str): Language of the pipeline.
    layer (str): Layer of spans that is learned and scored.
    kind (Kind): What is learned.
    score (str): Key of METRICS.
    nested (bool): Each label is tagged separately.
    classes (Sequence[str]): Classes of pairs or texts, if known.
    positive (str): The class that is scored by itself; "" to tell by its name.
    exclusive (bool): Each text has exactly one class.
    graded (bool): Pairs have a number instead of a class.
    relations (Sequence[str]): Labels of relations that are scored, or "all"; empty for all.
    folds (Sequence[str]): Names of its folds; [""] for one split.
    settings (Mapping[str, Any]): Path in the config -> value.
    joint (Sequence[str]): Tasks that are learned together.
    """

    name: str
    path: str | None
    lang: str
    layer: str
    kind: Kind
    score: str
    nested: bool = False
    classes: Sequence[str] = ()
    positive: str = ""
    exclusive: bool = True
    graded: bool = False
    relations: Sequence[str] = ()
    folds: Sequence[str] = ("",)
    settings: Mapping[str, Any] = MappingProxyType({})
    joint: Sequence[str] = ()


def find_setup(name: str, tasks: Mapping[str, Corpus]) -> TaskSetup:
    """Complete the corpus of a task with what the catalogue says.

    name (str): Name in the plan, or in the catalogue.
    tasks (Mapping[str, Corpus]): The tasks of the plan.
    RAISES (BioclinError): The task, its language or its score is unknown.
    """
    corpus = tasks.get(name) or Corpus()
    if corpus.joint:
        return _find_joint(name, corpus, tasks)
    setup = _find_own(name, corpus) if corpus.path else _find_known(name, corpus)
    if setup.score not in METRICS:
        near = find_nearest(setup.score, list(METRICS))
        raise BioclinError(
            f"tasks.{name}: score = {setup.score!r}: unknown; {near}want one of "
            f"{', '.join(METRICS)}"
        )
    if METRICS[setup.score].kind != setup.kind:
        known = [key for key, metric in METRICS.items() if metric.kind == setup.kind]
        raise BioclinError(
            f"tasks.{name}: score = {setup.score!r} is one of {METRICS[setup.score].kind}, and the "
            f"task has {setup.kind}: want one of {', '.join(known)}"
        )
    return setup


def _find_own(name: str, corpus: Corpus) -> TaskSetup:
    """Find what a corpus of one's own learns."""
    if corpus.lang and not LANG.fullmatch(corpus.lang):
        raise BioclinError(f"tasks.{name}: lang = {corpus.lang!r}: want a code such as es or en")
    if not corpus.lang:
        raise BioclinError(f"tasks.{name} has no lang: set the language of its notes")
    kind: Kind = corpus.kind or "entities"
    graded = bool(corpus.graded)
    return TaskSetup(
        name=name,
        path=corpus.path,
        lang=corpus.lang,
        layer=corpus.layer or ENTS,
        kind=kind,
        score=corpus.score or (GRADED_SCORE if graded else SCORES[kind]),
        classes=corpus.classes or [],
        positive=corpus.positive,
        exclusive=corpus.exclusive is not False,
        graded=graded,
        settings=corpus.settings,
    )


def _find_known(name: str, corpus: Corpus) -> TaskSetup:
    """Find what a task of the catalogue learns; what the plan says has priority."""
    known = find_task(name, corpus.lang or None)
    if corpus.kind not in (None, known.kind):
        raise BioclinError(f"tasks.{name}: kind = {corpus.kind!r}: the catalogue has {known.kind}")
    layers = known.layer_names
    return TaskSetup(
        name=name,
        path=None,
        lang=known.lang,
        layer=corpus.layer or (layers[0] if len(layers) == 1 else ENTS),
        kind=known.kind,
        score=corpus.score or known.score,
        nested=known.nested,
        classes=known.classes if corpus.classes is None else corpus.classes,
        positive=corpus.positive or known.positive,
        exclusive=known.exclusive if corpus.exclusive is None else corpus.exclusive,
        graded=known.graded if corpus.graded is None else corpus.graded,
        relations=known.relations,
        folds=known.fold_names,
        settings={**known.settings, **corpus.settings},
    )


def _find_joint(name: str, corpus: Corpus, tasks: Mapping[str, Corpus]) -> TaskSetup:
    """Find what several tasks learn together: the first says what is not about one of them."""
    for inner in corpus.joint:
        if inner == name or (inner in tasks and tasks[inner].joint):
            raise BioclinError(f"tasks.{name}: joint has {inner!r}, which is joint itself")
    first = find_setup(corpus.joint[0], tasks)
    return first._replace(
        name=name,
        path=None,
        lang=corpus.lang or first.lang,
        settings=corpus.settings,
        folds=[""],
        joint=corpus.joint,
    )


def make_task_settings(setup: TaskSetup) -> dict[str, Any]:
    """Make the settings of a config that follow from what a task learns.

    RETURNS (dict[str, Any]): Path in the config -> value.
    """
    own: dict[str, Any] = {}
    if setup.kind == "entities":
        in_ents = setup.layer == ENTS
        own = {
            "components.ner.spans_key": None if in_ents else setup.layer,
            "components.ner.nested": setup.nested,
            # spaCy adds the weights of the component's defaults to what is not set here.
            "training.score_weights": {
                "ents_f": None,
                "ents_p": None,
                "ents_r": None,
                "ents_f" if in_ents else f"spans_{setup.layer}_f": 1.0,
            },
        }
    elif setup.kind == "pairs" and setup.graded:
        own = {
            "components.pairs.objective": "regression",
            "training.score_weights.pairs_acc": 0.0,
            "training.score_weights.pairs_pearson": 1.0,
        }
    elif setup.kind == "texts" and setup.exclusive:
        own = {
            "components.textcat.factory": "textcat",
            "components.textcat.threshold": 0.0,
            "components.textcat.scorer": {"@scorers": "spacy.textcat_scorer.v2"},
            "components.textcat.model.exclusive_classes": True,
        }
    return {**own, **setup.settings}
