"""A wheel in a new environment: what works is told from what does not."""

import pytest

from spacy_bioclin.packaging.build import build_wheel
from spacy_bioclin.packaging.card import Provenance
from spacy_bioclin.packaging.check import check_wheel

CHECKS = [
    "install",
    "load",
    "requirements",
    "nlp(text)",
    "nlp.pipe(texts)",
    "nlp.pipe(texts, n_process=2)",
    "to_bytes, from_bytes",
    "to_disk, load",
    "DocBin",
    "same as --against",
]


@pytest.fixture(scope="module")
def wheel(pipeline, tmp_path_factory):
    out = tmp_path_factory.mktemp("packages")
    return build_wheel(pipeline, out, name="demo", version="0.1.0", provenance=Provenance())


def test_good_wheel_passes_every_check(wheel, pipeline):
    results = list(check_wheel(wheel, against=pipeline, timeout=60))
    assert [(check.name, check.passed, check.note) for check in results if not check.passed] == []
    assert [check.name for check in results] == CHECKS
