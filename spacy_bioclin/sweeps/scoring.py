"""Score a trained pipeline on a split, by the published metric of its task."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from spacy.language import Language
from spacy.training import Example

from ..corpora.readers import make_corpus
from ..evaluation.metrics import ENTS
from ..evaluation.published import METRICS, make_scoring
from ..evaluation.spans import Counts, compare, score_spans
from .tasks import TaskSetup

STRICT = "entities_strict_f"  # the metric that has counts of each document
Scores = dict[str, Any]


def score_split(nlp: Language, setup: TaskSetup, path: Path) -> Scores:
    """Score a pipeline on a corpus by the metric of a task, on whole documents.

    The entities of relations are given.

    RETURNS (dict[str, Any]): "value", the metric, where a correlation that is not defined counts
        as 0, and "details". Strict scores of entities have "p", "r" and "f" between 0 and 1, and
        "per_doc": the counts of each document, for the paired bootstrap.
    """
    egs = _annotate(nlp, path, use_gold_ents=setup.kind == "relations")
    scoring = make_scoring(
        nlp,
        layers=[setup.layer],
        classes=setup.classes,
        exclusive=setup.exclusive,
        relations=setup.relations,
    )._replace(positive=setup.positive)
    if setup.score == STRICT:
        return sum_counts(_count(egs, setup.layer))
    found = METRICS[setup.score].score(egs, scoring)
    details = {key: value for key, value in found.items() if key != "value"}
    return {"value": found["value"] or 0.0, "details": details}


def _annotate(nlp: Language, path: Path, *, use_gold_ents: bool) -> list[Example]:
    """Annotate the texts of a corpus."""
    given = list(make_corpus(path, use_gold_ents=use_gold_ents)(nlp))
    docs = nlp.pipe(eg.predicted for eg in given)
    return [Example(doc, eg.reference) for doc, eg in zip(docs, given, strict=True)]


def _count(egs: Iterable[Example], layer: str) -> list[Counts]:
    """Count the right, wrong and missed entities of each document."""
    pairs = []
    for eg in egs:
        # A pipeline may set nested entities in doc.spans["ents"], which doc.ents cannot have.
        in_ents = layer == ENTS and ENTS not in eg.predicted.spans
        if (pair := compare(eg, None if in_ents else layer)) is not None:
            pairs.append(pair)
    return score_spans(pairs).of_docs()


def sum_counts(per_doc: Iterable[Iterable[int]]) -> Scores:
    """Compute strict scores from the counts of each document, see `score_split`."""
    counts = [Counts(*each) for each in per_doc]
    prf = Counts.total(counts).prf()
    return {"value": prf["f"], **prf, "per_doc": [list(each) for each in counts]}


def score_together(
    nlp: Language, setups: Mapping[str, TaskSetup], corpora: Path, split: str
) -> Scores:
    """Score each task of a pipeline for several, with only its head at work.

    nlp (Language): Its heads have the names of the tasks.
    setups (Mapping[str, TaskSetup]): Task -> what it learns.
    corpora (Path): Folder with a folder for each task.
    split (str): Which file of it.
    RETURNS (dict[str, Any]): "value", the mean of the tasks, and "tasks": task -> its scores.
    """
    tasks: dict[str, Scores] = {}
    for name, setup in setups.items():
        others = [head for head in setups if head != name]  # two heads may write to one place
        with nlp.select_pipes(disable=others):
            scores = score_split(nlp, setup, corpora / name / f"{split}.spacy")
        tasks[name] = {key: value for key, value in scores.items() if key != "per_doc"}
    return {"value": fmean(scores["value"] for scores in tasks.values()), "tasks": tasks}
