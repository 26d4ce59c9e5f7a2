"""A small terminology that nobody uses."""

import pytest

from spacy_bioclin.linking.build import build_kb
from spacy_bioclin.linking.concepts import Alias, Concept


@pytest.fixture
def concepts():
    return [
        Concept(
            "D3",
            "Breast neoplasm",
            "en",
            (Alias("Neoplasia de mama", "es"), Alias("breast tumor", "en")),
            ("C04.588", "T191"),
            "A tumour of the breast.",
            ("D1",),
            ("ICD:C50",),
            ("D30", "D31"),
        ),
        Concept("D1", "Neoplasm", "en", (Alias("Neoplasia", "es"),), ("C04",)),
        Concept("D2", "Depression", "en", (Alias("Depresión", "es"),), ("F03.600",)),
        Concept("D10", "Insuficiencia renal", "es", types=("C12",), parents=("D1", "D2")),
    ]


@pytest.fixture
def kb(concepts, tmp_path):
    return build_kb(concepts, tmp_path / "kb", meta={"name": "small"})
