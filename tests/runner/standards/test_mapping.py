"""Ids are read as codes, and codes as concepts of OMOP."""

from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.standards.mapping import (
    Code,
    CodeSettings,
    Namespace,
    Namespaces,
    Target,
    read_concept_map,
)

SNOMED = "http://snomed.info/sct"


CODES = (
    ("MESH:D006973", Code("MESH", "D006973", "https://www.nlm.nih.gov/mesh")),
    ("msh:D006973", Code("MESH", "D006973", "https://www.nlm.nih.gov/mesh")),
    ("HP:0001945", Code("HP", "HP:0001945", "http://human-phenotype-ontology.org")),
    ("hpo:0001945", Code("HP", "HP:0001945", "http://human-phenotype-ontology.org")),
    ("SNOMEDCT_US:38341003", Code("SNOMEDCT", "38341003", SNOMED)),
    ("UMLS:C0020538", Code("UMLS", "C0020538", "http://terminology.hl7.org/CodeSystem/umls")),
    ("ICD10:I10", Code("ICD10", "I10", "http://hl7.org/fhir/sid/icd-10")),
    ("LOINC:10154-3", Code("LOINC", "10154-3", "http://loinc.org")),
    ("DEMO:0001", Code("demo", "0001", None)),
    ("38341003", Code(None, "38341003", None)),
    (":1", Code("", "1", None)),
    ("DEMO:", Code(None, "DEMO:", None)),
)


def test_an_id_is_read_as_a_code() -> None:
    namespaces = Namespaces(CodeSettings())
    wrong = [(kb_id, got) for kb_id, code in CODES if (got := namespaces.split(kb_id)) != code]
    assert not wrong


def test_ids_without_a_prefix_are_of_the_namespace_that_is_set() -> None:
    namespaces = Namespaces(CodeSettings(namespace="snomed"))
    assert namespaces.split("38341003") == Code("SNOMEDCT", "38341003", SNOMED)
    assert namespaces.split("DEMO:0001") == Code("demo", "0001", None)
    with pytest.raises(BioclinError, match="namespace = 'CIE10': unknown; want one of ATC"):
        Namespaces(CodeSettings(namespace="CIE10"))


def test_own_terminologies_go_before_the_shipped_ones() -> None:
    own = {"WARD": Namespace(system="urn:ward", aliases=["MESH"])}
    namespaces = Namespaces(CodeSettings(namespaces=own, namespace="ward"))
    assert namespaces.split("7") == Code("WARD", "7", "urn:ward")
    assert namespaces.split("MESH:7") == Code("WARD", "7", "urn:ward")


HEADER = "source_code,source_concept_id,source_vocabulary_id,target_concept_id,invalid_reason\n"


def test_a_table_of_concepts_is_read(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text(
        HEADER
        + "38341003,320128,SNOMED,320128,\n"
        + "D006973,45618364,MeSH,320128,\n"
        + "D006973,45618364,MeSH,320128,\n"  # twice
        + "0001945,,HPO,437663,\n"
        + "HP:0000822,,HP,320128,\n"
        + "B,,Ward,2,\n"
        + "B,,Ward,1,\n"  # two concepts
        + "UMLS:C1,,,5,\n"  # the prefix says which vocabulary
        + "I11,1,ICD10,9,D\n",  # deleted
        "utf-8",
    )
    namespaces = Namespaces(CodeSettings())
    concepts = read_concept_map(path, namespaces)
    assert (len(concepts), concepts.n_invalid) == (6, 1)

    def find(kb_id: str) -> tuple[Target, ...]:
        return concepts.find(namespaces.split(kb_id))

    assert find("SNOMEDCT:38341003") == (Target(320128, 320128),)
    assert find("MESH:D006973") == (Target(320128, 45618364),)
    assert find("HP:0001945") == (Target(437663, 0),)
    assert find("HP:0000822") == (Target(320128, 0),)
    assert find("WARD:B") == (Target(1, 0), Target(2, 0))
    assert find("UMLS:C1") == (Target(5, 0),)
    assert find("ICD10:I11") == find("B") == ()


def test_a_table_may_be_tsv_with_the_needed_columns_only(tmp_path: Path) -> None:
    path = tmp_path / "map.TSV"
    path.write_text("\ufefftarget_concept_id\tsource_code\n7\tDEMO:1\n", "utf-8")
    namespaces = Namespaces(CodeSettings())
    assert read_concept_map(path, namespaces).find(namespaces.split("DEMO:1")) == (Target(7, 0),)


WRONG: tuple[tuple[str, str | bytes | None, str], ...] = (
    ("map.xlsx", "", "ends with .csv or .tsv"),
    ("map.csv", "code,target_concept_id\n", "no column 'source_code'; it has code, target_"),
    ("map.csv", "source_code,concept_id\n", "no column 'target_concept_id'; it has source_"),
    ("map.csv", HEADER + "I10,,ICD10,,\n", "line 2: target_concept_id = '': want a concept_id"),
    ("map.csv", HEADER + "I10,-1,ICD10,3,\n", "line 2: source_concept_id = '-1': want"),
    ("map.csv", HEADER + "I10,1,ICD10,2147483648,\n", "target_concept_id = '2147483648'"),
    ("map.csv", HEADER + "I10,1,ICD10,3,\n,1,ICD10,3,\n", "line 3: no source_code"),
    ("map.csv", b"source_code,target_concept_id\n\xff,1\n", "not UTF-8"),
    ("map.csv", HEADER + '"I10,1\n', "not a table"),
    ("map.csv", None, "no such file"),
)


def test_a_wrong_table_is_an_error(tmp_path: Path) -> None:
    for name, content, message in WRONG:
        path = tmp_path / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(BioclinError, match=message) as caught:
            read_concept_map(path, Namespaces(CodeSettings()))
        assert str(path) in str(caught.value)
