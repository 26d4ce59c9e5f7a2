"""Score what was predicted of pairs of texts: classes, or graded scores; for training."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.training import Example

from ..annotations.pairs import SCORE, get_boundary
from .categories import correlate, score_categories

CLASS_SCORES = ("pairs_acc", "pairs_micro_f", "pairs_macro_f", "pairs_per_type")
GRADED_SCORES = ("pairs_pearson", "pairs_spearman")


def pair_score(
    examples: Iterable[Example],
    *,
    objective: str = "classification",
    labels: Sequence[str] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Compute scores of pairs of texts. Docs that are no pairs, and those without `doc.cats`, are
    left out.

    The predicted class of a pair is the most probable one. Macro F1 is the mean over the classes
    that the reference has. Where a correlation is not defined, since one side has the same score
    for all pairs or there are fewer than two, it is 0.

    examples (Iterable[Example]): The Examples, which are not changed.
    objective (str): "classification" or "regression".
    labels (Sequence[str] | None): The classes among the keys of the predicted `doc.cats`; None for
        all keys.
    RETURNS (dict[str, Any]): `pairs_acc`, `pairs_micro_f`, `pairs_macro_f` and `pairs_per_type`, or
        `pairs_pearson` and `pairs_spearman`. All are None if no reference is annotated.
    """
    pairs = [eg for eg in examples if get_boundary(eg.reference) is not None and eg.reference.cats]
    if objective == "regression":
        return _score_grades(pairs)
    references = [
        {label: value for label, value in eg.reference.cats.items() if label != SCORE}
        for eg in pairs
    ]
    if not any(references):
        return dict.fromkeys(CLASS_SCORES)
    predictions = [
        {
            label: value
            for label, value in eg.predicted.cats.items()
            if label != SCORE and (labels is None or label in labels)
        }
        for eg in pairs
    ]
    scores = score_categories(references, predictions, exclusive=True)
    per_type = {
        label: {key: values[key] for key in "prf"} for label, values in scores["per_type"].items()
    }
    return {
        "pairs_acc": scores["accuracy"],
        "pairs_micro_f": scores["micro"]["f"],
        "pairs_macro_f": scores["macro"]["f"],
        "pairs_per_type": per_type,
    }


def _score_grades(pairs: list[Example]) -> dict[str, Any]:
    pairs = [eg for eg in pairs if SCORE in eg.reference.cats]
    if not pairs:
        return dict.fromkeys(GRADED_SCORES)
    references = [float(eg.reference.cats[SCORE]) for eg in pairs]
    predictions = [float(eg.predicted.cats.get(SCORE, math.nan)) for eg in pairs]
    found = correlate(references, predictions)
    return {f"pairs_{name}": value or 0.0 for name, value in found.items()}


def make_pair_scorer() -> Callable[..., dict[str, Any]]:
    """Make a scorer of pairs of texts. It is registered as `spacy-bioclin.pair_scorer.v1`.

    RETURNS (Callable): `pair_score`; a component adds its objective and labels.
    """
    return pair_score
