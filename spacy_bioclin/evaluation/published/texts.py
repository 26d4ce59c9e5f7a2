"""Published scores of whole texts and of pairs of texts."""

import math
import re
from collections.abc import Sequence

from spacy.training import Example

from ...annotations.pairs import SCORE, get_boundary
from ...errors import BioclinError
from ...types import GOLD_KEY
from ..categories import (
    accuracy,
    choose_labels,
    correlate,
    count_labels,
    example_based,
    unite_labels,
)
from ..spans import NOTHING
from .scoring import Scores, TaskScoring

Labels = list[frozenset[str]]
POSITIVE = ("yes", "1", "true", "positive")
# The last part of a sentence's id is its number: "10037694-3", or "10037694_s3" in BLUE's files.
SENTENCE = re.compile(r"[-_][^-_]*$")
ACCURACY_KEYS = ("value", "macro_f", "docs")
HOC_KEYS = ("value", "p", "r", "micro_f", "macro_f", "docs")


def score_texts_accuracy(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute the share of the texts whose classes are exactly right.

    egs (Sequence[Example]): The Examples, which are not changed. Those without gold classes were
        not annotated, and are left out.
    task (TaskScoring): Its `classes` count. If they are exclusive, the most probable one is
        predicted, else each with a probability of 0.5 or more.
    RETURNS (dict[str, float | None]): "value" is the accuracy; "macro_f", and "docs", the number of
        texts. All are None if no text is annotated.
    """
    _, gold, found = _choose(egs, task)
    if not gold:
        return dict.fromkeys(ACCURACY_KEYS)
    macro = count_labels(gold, found).macro
    return {"value": accuracy(gold, found), "macro_f": macro["f"], "docs": len(gold)}


def score_pairs_accuracy(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute the share of the pairs of texts whose class is right: MedNLI, MedRQE.

    Docs that are no pairs are left out; see `score_texts_accuracy`.
    """
    return score_texts_accuracy(_keep_pairs(egs), task)


def score_texts_positive(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute F1 of the positive one of two classes: GAD, EU-ADR (Lewis et al. 2020, and BioBERT).

    egs, task: See `score_texts_accuracy`.
    RETURNS (dict[str, float | None]): "value" is F1; "p", "r", "accuracy" and "docs". All are None
        if no text is annotated.
    RAISES (BioclinError): It is not clear which class is the positive one.
    """
    _, gold, found = _choose(egs, task)
    if not gold:
        return dict.fromkeys(("value", "p", "r", "accuracy", "docs"))
    positive = find_positive(task, gold)
    prf = count_labels(gold, found).per_label.get(positive, NOTHING).prf()
    return {
        "value": prf["f"],
        "p": prf["p"],
        "r": prf["r"],
        "accuracy": accuracy(gold, found),
        "docs": len(gold),
    }


def find_positive(task: TaskScoring, gold: Sequence[frozenset[str]]) -> str:
    """Find the positive class of a task.

    gold (Sequence[frozenset[str]]): The classes of the texts, if the task names none.
    RAISES (BioclinError): None or several of the classes can be it.
    """
    if task.positive:
        return task.positive
    classes = sorted(task.classes or frozenset().union(*gold))
    found = [label for label in classes if label.casefold() in POSITIVE]
    if len(found) != 1:
        raise BioclinError(
            f"texts_positive_f: cannot tell which of the classes {', '.join(classes)} is the "
            f"positive one; name it {' or '.join(POSITIVE)}, or set positive in TaskScoring"
        )
    return found[0]


def score_hoc_example(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute F1 of abstracts from the mean precision and recall of their labels: the Hallmarks of
    Cancer in BLUE, see `example_based`.

    The released script of Lewis et al. (2020) computes it too, with p > 0.5 instead of p >= 0.5.

    egs (Sequence[Example]): Sentences, see `unite_sentences`. They are not changed.
    task (TaskScoring): Its `classes` count.
    RETURNS (dict[str, float | None]): "value" is F1; "p", "r", "micro_f" and "macro_f" of the
        labels, and "docs", the number of abstracts. All are None if nothing is annotated.
    """
    gold, found = unite_sentences(egs, task)
    if not gold:
        return dict.fromkeys(HOC_KEYS)
    return _list_hoc(gold, found, example_based(gold, found)["f"])


def score_hoc_macro(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute the mean F1 of the labels of abstracts: table 1 of Lewis et al. (2020) for the
    Hallmarks of Cancer.

    egs, task: See `score_hoc_example`.
    RETURNS (dict[str, float | None]): "value" is macro F1 over the labels that the gold abstracts
        have; the rest as there.
    """
    gold, found = unite_sentences(egs, task)
    if not gold:
        return dict.fromkeys(HOC_KEYS)
    return _list_hoc(gold, found, count_labels(gold, found).macro["f"])


def _list_hoc(gold: Labels, found: Labels, value: float) -> Scores:
    by_example, counts = example_based(gold, found), count_labels(gold, found)
    return {
        "value": value,
        "p": by_example["p"],
        "r": by_example["r"],
        "micro_f": counts.micro.f1,
        "macro_f": counts.macro["f"],
        "docs": len(gold),
    }


def unite_sentences(egs: Sequence[Example], task: TaskScoring) -> tuple[Labels, Labels]:
    """Unite the labels of the sentences of each abstract.

    An abstract is what the ids of its sentences have in common: all before the last "-" or "_".

    egs (Sequence[Example]): Sentences; a text may have several labels, or none.
    task (TaskScoring): Its `classes` count.
    RETURNS (tuple[list, list]): Gold and predicted labels of each abstract.
    RAISES (BioclinError): A gold Doc has no id.
    """
    chosen, gold, found = _choose(egs, task._replace(exclusive=False))
    ids = [eg.reference.user_data.get(GOLD_KEY, {}).get("id") for eg in chosen]
    if None in ids:
        raise BioclinError(
            "cannot score abstracts: a gold Doc has no id, which says of which abstract it is a "
            "sentence; convert the corpus with bioclin prepare"
        )
    documents = [SENTENCE.sub("", id) for id in ids]
    united = [unite_labels(documents, side) for side in (gold, found)]
    return list(united[0].values()), list(united[1].values())


def score_pairs_pearson(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute the correlation of graded scores of pairs: MedSTS, BIOSSES, n2c2 2019.

    egs (Sequence[Example]): The Examples, which are not changed. Docs that are no pairs, and those
        without gold score, are left out.
    task (TaskScoring): Not used.
    RETURNS (dict[str, float | None]): "value" is Pearson's r from -1 to 1, None where it is not
        defined; "spearman", and "docs", the number of pairs.
    """
    pairs = [eg for eg in _keep_pairs(egs) if SCORE in eg.reference.cats]
    found = correlate(
        [float(eg.reference.cats[SCORE]) for eg in pairs],
        [float(eg.predicted.cats.get(SCORE, math.nan)) for eg in pairs],
    )
    return {"value": found["pearson"], "spearman": found["spearman"], "docs": len(pairs)}


def _keep_pairs(egs: Sequence[Example]) -> list[Example]:
    return [eg for eg in egs if get_boundary(eg.reference) is not None]


def _choose(egs: Sequence[Example], task: TaskScoring) -> tuple[list[Example], Labels, Labels]:
    """Choose the labels of texts.

    RETURNS (tuple[list, list, list]): The texts that are annotated, and the gold and the predicted
        labels of each.
    """
    chosen: list[Example] = []
    gold: Labels = []
    found: Labels = []
    for eg in egs:
        known = [
            label
            for label in eg.reference.cats
            if label != SCORE and (not task.classes or label in task.classes)
        ]
        if not known:
            continue
        # In the order of the pipeline: the first of equally probable ones is predicted.
        own = {label: p for label, p in eg.predicted.cats.items() if label in known}
        chosen.append(eg)
        gold.append(frozenset(label for label in known if eg.reference.cats[label] > 0))
        found.append(choose_labels(own, exclusive=task.exclusive))
    return chosen, gold, found
