"""Score the labels of whole texts, and graded scores.

The labels of a text are a set. Each text counts per label as one true positive, false positive or
false negative, or as nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from ..errors import BioclinError
from .bootstrap import summarize
from .spans import Counts, SpanScores

THRESHOLD = 0.5  # probability from which a label is predicted, as in spaCy's scorer


def choose_labels(
    probabilities: Mapping[str, float], *, threshold: float = THRESHOLD, exclusive: bool
) -> frozenset[str]:
    """Choose the labels that are predicted for a text.

    probabilities (Mapping[str, float]): Label -> probability, as in `doc.cats`.
    threshold (float): Lowest probability of a predicted label, if a text may have several labels.
    exclusive (bool): A text has one label: the most probable, the first of equally probable ones.
    RETURNS (frozenset[str]): The labels; one, if `exclusive` and there are any to choose from.
    """
    if not exclusive:
        return frozenset(label for label, p in probabilities.items() if p >= threshold)
    if not probabilities:
        return frozenset()
    return frozenset([max(probabilities, key=lambda label: probabilities[label])])


def count_labels(references: Iterable[Set[str]], predictions: Iterable[Set[str]]) -> SpanScores:
    """Count the labels of texts, for their micro, macro and per-label scores.

    references, predictions (Iterable[Set[str]]): The labels of each text.
    RETURNS (SpanScores): Counts per text and label.
    RAISES (ValueError): There are more of one than of the other.
    """
    return SpanScores(
        [
            {
                label: Counts.of_sets(gold & {label}, found & {label})
                for label in sorted(gold | found)
            }
            for gold, found in zip(references, predictions, strict=True)
        ]
    )


def accuracy(references: Sequence[Set[str]], predictions: Sequence[Set[str]]) -> float:
    """Compute the share of the texts whose labels are exactly right; 0 for no texts.

    references, predictions (Sequence[Set[str]]): The labels of each text.
    """
    pairs = list(zip(references, predictions, strict=True))
    return sum(gold == found for gold, found in pairs) / max(len(pairs), 1)


def example_based(
    references: Iterable[Set[str]], predictions: Iterable[Set[str]]
) -> dict[str, float]:
    """Compute example-based scores: precision and recall are means over texts.

    F1 is the harmonic mean of the two means, not the mean of the texts' F1. This is how BLUE scores
    the Hallmarks of Cancer (Peng et al., 2019, after Zhang and Zhou, 2014; its script is
    blue/hoc/eval_hoc.py of ncbi-nlp/BLUE_Benchmark): there, a text is an abstract, and its labels
    are those of all its sentences, see `unite_labels`.

    Precision is 0 for a text without predicted labels, as in that script, which fails for a text
    without reference labels. Here, recall is 0 for such a text, but precision and recall are both 1
    if it has no predicted labels either.

    references, predictions (Iterable[Set[str]]): The labels of each text.
    RETURNS (dict[str, float]): "p", "r" and "f"; 0 for no texts.
    """
    precisions, recalls = [], []
    for gold, found in zip(references, predictions, strict=True):
        counts = Counts.of_sets(gold, found)
        is_empty = not gold and not found
        precisions.append(1.0 if is_empty else counts.precision)
        recalls.append(1.0 if is_empty else counts.recall)
    p = sum(precisions) / max(len(precisions), 1)
    r = sum(recalls) / max(len(recalls), 1)
    return {"p": p, "r": r, "f": 2 * p * r / (p + r) if p + r else 0.0}


def unite_labels(documents: Iterable[str], labels: Iterable[Set[str]]) -> dict[str, frozenset[str]]:
    """Unite the labels of the sentences of each document.

    documents (Iterable[str]): For each sentence, the id of its document.
    labels (Iterable[Set[str]]): The labels of each sentence.
    RETURNS (dict[str, frozenset[str]]): Id -> labels, in the order in which documents begin.
    """
    united: dict[str, frozenset[str]] = {}
    for id, found in zip(documents, labels, strict=True):
        united[id] = united.get(id, frozenset()) | found
    return united


def correlate(references: Sequence[float], predictions: Sequence[float]) -> dict[str, float | None]:
    """Compute the correlations of graded scores.

    references, predictions (Sequence[float]): The score of each text.
    RETURNS (dict[str, float | None]): "pearson" and "spearman", from -1 to 1. Both are None where
        they are not defined: fewer than two texts, all with the same score on one side, or a score
        that is not a finite number.
    RAISES (BioclinError): There are more of one than of the other.
    """
    if len(references) != len(predictions):
        raise BioclinError(
            f"{len(references)} scores to compare with, but {len(predictions)} predicted ones"
        )
    undefined: dict[str, float | None] = {"pearson": None, "spearman": None}
    for scores in (references, predictions):
        if not all(map(math.isfinite, scores)) or len(set(scores)) < 2:
            return undefined
    from scipy import stats

    found = {
        "pearson": stats.pearsonr(references, predictions).statistic,
        "spearman": stats.spearmanr(references, predictions).statistic,
    }
    return {name: float(r) if math.isfinite(r) else None for name, r in found.items()}


def score_categories(
    references: Sequence[Mapping[str, float]],
    predictions: Sequence[Mapping[str, float]],
    *,
    threshold: float = THRESHOLD,
    exclusive: bool,
) -> dict[str, Any]:
    """Score the categories of texts.

    A text without categories in the reference was not annotated, and is left out. Where a text may
    have several labels, predictions of labels that it was not annotated for are left out too.

    references, predictions (Sequence[Mapping[str, float]]): `doc.cats` of each text: of the gold
        Doc, with 1 or 0 for each label, and of the predicted Doc.
    threshold, exclusive: See `choose_labels`.
    RETURNS (dict[str, Any]): `docs`, `micro`, `macro` and `per_type` as for spans (`macro` over the
        labels that any reference has), `accuracy` and `example_based`; ready for JSON.
    RAISES (ValueError): There are more of one than of the other.
    """
    gold: list[frozenset[str]] = []
    found: list[frozenset[str]] = []
    for reference, prediction in zip(references, predictions, strict=True):
        if not reference:
            continue
        chosen = choose_labels(prediction, threshold=threshold, exclusive=exclusive)
        gold.append(frozenset(label for label, value in reference.items() if value > 0))
        found.append(chosen if exclusive else chosen & reference.keys())
    scores = count_labels(gold, found)
    return {
        "docs": len(gold),
        "micro": summarize(scores.of_docs()),
        "macro": scores.macro,
        "per_type": {label: summarize(scores.of_docs(label)) for label in scores.per_label},
        "accuracy": accuracy(gold, found),
        "example_based": example_based(gold, found),
    }
