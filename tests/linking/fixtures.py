"""A small terminology that nobody uses."""

import pytest

from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept


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


def names(lang, *texts):
    return tuple(Alias(text, lang) for text in texts)


CLINIC = (
    Concept("C1", "kidney failure", "en", names("es", "insuficiencia renal"), ("problem.kidney",)),
    Concept(
        *("C2", "acute kidney injury", "en"),
        (*names("en", "acute renal failure"), *names("es", "fracaso renal agudo")),
        ("problem.kidney",),
        parents=("C1",),
        alternative_ids=("C20",),
    ),
    Concept("C3", "breast cancer", "en", names("es", "cáncer de mama"), ("problem.tumour",)),
    Concept("C4", "ovarian cancer", "en", names("es", "cáncer de ovario"), ("problem.tumour",)),
    Concept("C5", "anemia", "en", names("es", "anemia"), ("problem",)),
    Concept("C6", "iron deficiency anemia", "en", names("es", "anemia ferropénica"), ("problem",)),
    Concept("C7", "cold", "en", (*names("en", "common cold"), *names("es", "resfriado"))),
    Concept("C8", "cold", "en", names("es", "sensación de frío"), ("finding",)),
    Concept("C9", "paracetamol", "es", names("en", "acetaminophen", "Tylenol"), ("drug",)),
    Concept("C10", "hemoglobin", "en", names("es", "hemoglobina"), ("test",)),
)


@pytest.fixture(scope="session")
def clinic(tmp_path_factory):
    """A knowledge base with names in both languages, one name of two concepts, and a tree."""
    return build_kb(CLINIC, tmp_path_factory.mktemp("clinic") / "kb", meta={"name": "clinic"})
