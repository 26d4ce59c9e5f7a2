"""How far a score would move if the corpus had been drawn again (Efron, 1979, percentiles)."""

from collections.abc import Sequence

import numpy as np

from .spans import Counts

LEVEL = 0.95  # the share of resamples within an interval


def f1_interval(
    per_doc: Sequence[Counts], *, n_resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Interval of the micro F1 under resampling of whole documents.

    Documents with equal counts are interchangeable, so that a resample is one multinomial draw over
    the distinct rows of counts: milliseconds, however many documents there are.
    per_doc (Sequence[Counts]): One entry per document, those without any span included.
    n_resamples (int): Number of corpora drawn, each as large as the given one.
    seed (int): Same seed, same interval.
    RETURNS (tuple[float, float]): Lower and upper bound of the 95 % interval; (0, 0) for no
        documents.
    """
    if not per_doc:
        return 0.0, 0.0
    rows, repeats = np.unique(np.asarray(per_doc, dtype=np.int64), axis=0, return_counts=True)
    n_docs = len(per_doc)
    draws = np.random.default_rng(seed).multinomial(n_docs, repeats / n_docs, size=n_resamples)
    tp, fp, fn = (draws @ rows).T  # each (n_resamples,)
    f1 = 2 * tp / np.maximum(2 * tp + fp + fn, 1)
    low, high = np.quantile(f1, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
