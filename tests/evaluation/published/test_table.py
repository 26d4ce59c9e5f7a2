"""The table of published metrics."""

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.evaluation.published import METRICS, find_metric

KINDS = {"entities", "relations", "texts", "pairs"}


def test_every_metric_names_its_source_and_kind():
    assert {metric.kind for metric in METRICS.values()} == KINDS
    for name, metric in METRICS.items():
        assert metric.title and metric.source and find_metric(name) is metric
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)


def test_an_unknown_metric_is_named_with_the_nearest():
    with pytest.raises(BioclinError, match=r"'relations_f' is unknown; did you mean relations_"):
        find_metric("relations_f")
