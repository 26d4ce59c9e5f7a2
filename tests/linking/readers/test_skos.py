"""SKOS with rdflib."""

import gzip
import lzma
import sys
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.skos import read_skos

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://x.y/> .

:1 a skos:Concept ; skos:notation "C1" ; skos:prefLabel "dolor"@es, "pain"@en ;
  skos:altLabel "ache"@en-GB, "molestia"@es ; skos:hiddenLabel "payn"@en ;
  skos:definition "Duele."@es, "It hurts."@en ; skos:inScheme :scheme ;
  skos:exactMatch <http://purl.obolibrary.org/obo/HP_0012531> .
:2 a skos:Concept ; skos:notation "C2" ; xl:prefLabel :label ; skos:broader :1 .
:label xl:literalForm "dolor  de rodilla"@es .
:3 a skos:Concept ; skos:notation "C3" ; skos:prefLabel "x" ; skos:narrower :4 .
:4 a skos:Concept ; skos:notation "C3" ; skos:prefLabel "y" ; skos:broader :1 .
:5 a skos:Concept ; skos:prefLabel "z" ; owl:deprecated true .
:6 a skos:Concept ; skos:altLabel "z" .
"""


def write(path: Path, text: str = TURTLE) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_labels_notations_and_matches(tmp_path: Path) -> None:
    report = SkipReport()
    assert list(read_skos(write(tmp_path / "x.ttl"), report)) == [
        Concept(
            "C1",
            "pain",
            "en",
            aliases=(
                *(Alias("dolor", "es"), Alias("ache", "en"), Alias("molestia", "es")),
                Alias("payn", "en"),
            ),
            types=("http://x.y/scheme",),
            definition="It hurts.",
            xrefs=("HP:0012531",),
        ),
        Concept("C2", "dolor de rodilla", "es", parents=("C1",)),
        Concept("http://x.y/3", "x"),  # its notation is that of another concept too
        Concept("http://x.y/4", "y", parents=("C1", "http://x.y/3")),
    ]
    assert report.places == {
        "obsolete": ["http://x.y/5"],
        "no preferred label": ["http://x.y/6"],
    }


DEPRECATED = [
    ("true", True),
    ('"true"', True),
    ('"True"@en', True),
    ('"1"', True),
    ('"1"^^<http://www.w3.org/2001/XMLSchema#boolean>', True),
    ("false", False),
    ('"false"', False),
    ('"0"', False),
    ('""', False),
]


def test_deprecated_concepts(tmp_path: Path) -> None:
    found = []
    for value, _ in DEPRECATED:
        text = TURTLE + f':7 a skos:Concept ; skos:prefLabel "w" ; owl:deprecated {value} .'
        report = SkipReport()
        ids = {concept.id for concept in read_skos(write(tmp_path / "x.ttl", text), report)}
        assert ("http://x.y/7" in ids) != ("http://x.y/7" in report.places["obsolete"])
        found.append((value, "http://x.y/7" not in ids))
    assert found == DEPRECATED


def test_rdf_xml_and_compression(tmp_path: Path) -> None:
    import rdflib

    graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
    path = tmp_path / "x.rdf.gz"
    path.write_bytes(gzip.compress(graph.serialize(format="xml").encode()))
    turtle = write(tmp_path / "x.ttl")
    assert list(read_skos(path, SkipReport())) == list(read_skos(turtle, SkipReport()))


WRONG = [
    ("x.ttl", TURTLE + ":7 a secret secret .", "line 17: cannot be read as RDF"),
    ("x.rdf", "<rdf><secret></rdf>", "line 1: cannot be read as RDF"),
    ("x.nt", "<a> secret", "cannot be read as RDF"),
    ("x.ttl", "[ <urn:x> " * 10_000, "cannot be read as RDF"),
    ("x.ttl", "<http://x.y/1> a <http://x.y/2> .", "no skos:Concept"),
]


def test_wrong_files_are_errors(tmp_path: Path) -> None:
    for name, text, message in WRONG:
        with pytest.raises(BioclinError, match=message) as caught:
            list(read_skos(write(tmp_path / name, text), SkipReport()))
        assert "secret" not in str(caught.value)


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl.xz"
    path.write_bytes(lzma.compress(TURTLE.encode())[:-40])
    with pytest.raises(BioclinError, match="cut off"):
        list(read_skos(path, SkipReport()))


def test_without_rdflib_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(BioclinError, match=r"pip install 'spacy-bioclin\[skos\]'"):
        list(read_skos(write(tmp_path / "x.ttl"), SkipReport()))


def test_nothing_is_fetched_for_an_entity(tmp_path: Path) -> None:
    write(tmp_path / "secret.txt", "secret")
    text = (
        f'<!DOCTYPE x [<!ENTITY e SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]>'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:skos="http://www.w3.org/2004/02/skos/core#">'
        '<skos:Concept rdf:about="http://x.y/1"><skos:prefLabel>a&e;</skos:prefLabel>'
        "</skos:Concept></rdf:RDF>"
    )
    try:
        concepts = list(read_skos(write(tmp_path / "x.rdf", text), SkipReport()))
    except BioclinError:
        return
    assert "secret" not in str(concepts)
