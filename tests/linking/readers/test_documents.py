"""JSON documents: FHIR and OBO Graphs."""

import json
from pathlib import Path
from typing import Any

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers import read_concepts

OBO = "http://purl.obolibrary.org/obo/"


def read(tmp_path: Path, document: dict[str, Any]) -> tuple[list[Concept], SkipReport]:
    path, report = tmp_path / "x.json", SkipReport()
    path.write_text(json.dumps(document, indent=1), "utf-8")
    return list(read_concepts(path, report)), report


SYSTEM = {
    "resourceType": "CodeSystem",
    "url": "urn:lab",
    "language": "es",
    "concept": [
        {
            "code": "A",
            "display": "Fiebre azul",
            "definition": "Una fiebre.",
            "designation": [{"language": "en-GB", "value": "Blue fever"}, {"value": "azulina"}],
            "concept": [{"code": "A1", "display": "Fiebre azul leve"}],
        },
        {"code": "B", "display": "b", "property": [{"code": "status", "valueCode": "retired"}]},
        {"code": "C", "display": "c", "property": [{"code": "inactive", "valueBoolean": True}]},
        {"code": "D", "display": "d", "property": [{"code": "parent", "valueCode": "A"}]},
    ],
}
READ = [
    Concept(
        "A",
        "Fiebre azul",
        "es",
        (Alias("Blue fever", "en"), Alias("azulina", "es")),
        ("urn:lab",),
        "Una fiebre.",
    ),
    Concept("A1", "Fiebre azul leve", "es", types=("urn:lab",), parents=("A",)),
    Concept("D", "d", "es", types=("urn:lab",), parents=("A",)),
]


def test_a_code_system_alone_and_in_a_bundle(tmp_path: Path) -> None:
    concepts, report = read(tmp_path, SYSTEM)
    assert (concepts, report.counts) == (READ, {"retired": 2})
    bundle = {"resourceType": "Bundle", "entry": [{"resource": SYSTEM}, {"resource": {}}]}
    concepts, report = read(tmp_path, bundle)
    assert concepts == READ
    assert report.counts["resource other than CodeSystem and ValueSet"] == 1


def test_a_value_set_expanded_or_not(tmp_path: Path) -> None:
    listed = {"system": "urn:a", "concept": [{"code": "1", "display": "one"}]}
    rule = {"system": "urn:b", "filter": [{"property": "concept", "op": "is-a", "value": "7"}]}
    same = {"system": "urn:c", "concept": [{"code": "1", "display": "uno"}]}
    value_set: dict[str, Any] = {"resourceType": "ValueSet"}
    value_set["compose"] = {"include": [listed, rule, same]}
    concepts, report = read(tmp_path, value_set)
    assert concepts == [Concept("1", "one", types=("urn:a",))]
    assert report.counts == {
        "codes that a ValueSet includes without listing them": 1,
        "code that another system has too": 1,
    }
    value_set["expansion"] = {
        "total": 5,
        "contains": [
            {"system": "urn:b", "code": "2", "contains": [{"code": "3", "display": "three"}]},
            {"system": "urn:b", "code": "4", "display": "four", "inactive": True},
        ],
    }
    concepts, report = read(tmp_path, value_set)
    assert [concept.id for concept in concepts] == ["2", "3"]
    assert report.counts == {"code beyond this page of the expansion": 2, "retired": 1}
    with pytest.raises(BioclinError, match=r"lists no current code; .*expand"):
        read(tmp_path, {"resourceType": "ValueSet", "compose": {"include": [rule]}})


def test_an_ontology_as_obo_graphs(tmp_path: Path) -> None:
    synonyms = [
        {"pred": "hasExactSynonym", "val": "azulina"},
        {"pred": "hasBroadSynonym", "val": "fever"},
    ]
    new = [{"pred": f"{OBO}IAO_0100001", "val": f"{OBO}X_2"}]
    nodes = [
        {"id": f"{OBO}X_1", "lbl": "fever", "type": "CLASS"},
        {
            "id": f"{OBO}X_2",
            "lbl": "blue fever",
            "type": "CLASS",
            "meta": {
                "definition": {"val": "A fever."},
                "synonyms": synonyms,
                "xrefs": [{"val": "UMLS:C9"}],
                "subsets": [f"{OBO}x#slim"],
            },
        },
        {"id": f"{OBO}X_3", "meta": {"deprecated": True, "basicPropertyValues": new}},
        {"id": f"{OBO}X_4", "lbl": "part of", "type": "PROPERTY"},
    ]
    edges = [{"sub": f"{OBO}X_2", "pred": "is_a", "obj": f"{OBO}X_1"}]
    concepts, report = read(tmp_path, {"graphs": [{"nodes": nodes, "edges": edges}]})
    assert concepts == [
        Concept("X:1", "fever"),
        Concept(
            "X:2",
            "blue fever",
            aliases=(Alias("azulina"),),
            types=("slim",),
            definition="A fever.",
            parents=("X:1",),
            xrefs=("UMLS:C9",),
        ),
        Concept("X:2", alternative_ids=("X:3",)),
    ]
    assert report.counts == {"broad synonym": 1, "obsolete": 1}


def test_broken_documents(tmp_path: Path) -> None:
    for text, message in (
        ('{"resourceType": "CodeSystem",\n', "line 2: broken JSON"),
        ('{"graphs": {}}', "no graph in it"),
        ('{"resourceType": "Patient"}', "no concept in it, read as fhir"),
        ('[{"id": "A", "name": "a"}', "broken JSON"),
        ('{"resourceType": ' + "[" * 99_999, "broken JSON"),
    ):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(BioclinError, match=message):
            list(read_concepts(tmp_path / "x.json", SkipReport()))
