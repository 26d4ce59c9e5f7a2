"""Predicted relations -> annotations and files."""

from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.corpora.bioc_format import format_bioc, parse_bioc
from spacy_bioclin.corpora.brat import format_ann, parse_ann
from spacy_bioclin.corpora.docs import doc_to_annotated, make_gold_doc
from spacy_bioclin.corpora.export import write_corpus
from spacy_bioclin.corpora.pubtator import format_pubtator, parse_pubtator
from spacy_bioclin.types import (
    AnnotatedText,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)

TEXT = "Dolor por metástasis hepática, 5mg."
ANN = (
    "T2\tX 0 5;21 29\tDolor hepática\n#1\tAnnotatorNotes T2\t8000/6\nT1\tY 10 20\tmetástasis\n"
    "R1\tLoc Arg1:T2 Arg2:T1\n#2\tAnnotatorNotes R1\tdudoso\n*\tEquiv T1 T2\nA1\tNegated T1\r\n"
)


@pytest.fixture
def nlp() -> Language:
    return spacy.blank("es")


def make_doc(nlp: Language) -> tuple[Doc, Span, Span]:
    doc = nlp(TEXT)
    doc.ents = [Span(doc, 0, 1, label="X", kb_id="D1"), Span(doc, 2, 3, label="Y", kb_id="D2")]
    return doc, doc.ents[0], doc.ents[1]


def test_relations_between_mentions(nlp: Language) -> None:
    doc, pain, metastasis = make_doc(nlp)
    other = Span(doc, 3, 4, label="Z")  # in no layer
    set_relations(doc, "relations", [Relation(metastasis, pain, "Cause", 0.9)])
    set_relations(doc, "more", [Relation(pain, other, "Loc")])
    annotated = doc_to_annotated(doc, id="note")
    assert format_ann(annotated.annotations) == (
        "T1\tX 0 5\tDolor\nT2\tY 10 20\tmetástasis\nT3\tZ 21 29\thepática\n"
        "R1\tCause Arg1:T2 Arg2:T1\nR2\tLoc Arg1:T1 Arg2:T3\n"
        "#1\tAnnotatorNotes T1\tD1\n#2\tAnnotatorNotes T2\tD2\n"
    )
    assert parse_bioc(format_bioc([annotated]), "x")[0].annotations[1:] == annotated.annotations


def test_relations_between_concepts(nlp: Language) -> None:
    doc, pain, metastasis = make_doc(nlp)
    set_relations(doc, "relations", [Relation(pain, metastasis, "CID", 0.9, ("D1", "D2"))])
    annotated = doc_to_annotated(doc, id="7")
    assert annotated.annotations[-1] == (
        RelationAnnotation("R1", "CID", (("Arg1", "D1"), ("Arg2", "D2")))
    )
    assert format_pubtator([annotated]).splitlines()[-2] == "7\tCID\tD1\tD2"
    for read in (parse_pubtator(format_pubtator([annotated]), "x")[0],
                 parse_bioc(format_bioc([annotated]), "x")[0]):  # fmt: skip
        assert read.annotations[-1].args == (("Arg1", "D1"), ("Arg2", "D2"))  # type: ignore[union-attr]


def test_predicted_relations_replace_those_of_the_file(nlp: Language) -> None:
    source = parse_ann(ANN, text_length=len(TEXT), source="note.ann")
    doc = make_gold_doc(nlp, AnnotatedText("note", TEXT, source), relations=["Loc"])
    whole, inner = doc.spans["ents"]
    assert doc_to_annotated(doc, id="note").annotations == source  # nothing is predicted
    set_relations(doc, "relations", [Relation(inner, whole, "New")])
    result = format_ann(doc_to_annotated(doc, id="note").annotations)
    assert result == (
        "T2\tX 0 5;21 29\tDolor hepática\n#1\tAnnotatorNotes T2\t8000/6\n"
        "T1\tY 10 20\tmetástasis\nA1\tNegated T1\nR1\tNew Arg1:T1 Arg2:T2\n"
    )
    parse_ann(result, text_length=len(TEXT), source="note.ann")
    other = Span(doc, 2, 4, label="Z")
    set_relations(doc, "relations", [Relation(inner, other, "New")])
    result = format_ann(doc_to_annotated(doc, id="note").annotations)
    assert result.endswith("T3\tZ 10 29\tmetástasis hepática\nR1\tNew Arg1:T1 Arg2:T3\n")
    set_relations(doc, "relations", [])  # looked for, and none found
    assert "R1" not in format_ann(doc_to_annotated(doc, id="note").annotations)


def test_pubtator_writes_mentions_with_one_concept_each(tmp_path: Path) -> None:
    spans = (
        SpanAnnotation("T1", "X", ((0, 5),), "Dolor", ("D1",)),
        SpanAnnotation("T2", "X", ((10, 20),), "metástasis", ("D2",)),
        SpanAnnotation("T3", "Y", ((21, 29),), "hepática", ("D3", "D4")),
        SpanAnnotation("T4", "X", ((31, 34),), "5mg", ("D2",)),
    )
    pairs = [("T1", "T2"), ("T1", "T3"), ("T1", "T4"), ("T2", "T1"), ("D1", "D3")]
    relations = (
        RelationAnnotation(f"R{i}", "CID", (("Arg1", a), ("Arg2", b)))
        for i, (a, b) in enumerate(pairs, start=1)
    )
    many = RelationAnnotation("R9", "All", tuple((f"Arg{i}", f"T{i}") for i in (1, 2, 3)))
    document = AnnotatedText("7", f"{TEXT}\n", (*spans, *relations, many))
    lines = format_pubtator([document]).splitlines()[6:-1]
    # T3 has two concepts; T1 and T4 are the same pair as T1 and T2; three arguments are too many
    assert lines == ["7\tCID\tD1\tD2", "7\tCID\tD2\tD1", "7\tCID\tD1\tD3"]
    n_docs, lost = write_corpus([document], tmp_path / "x.txt", "pubtator")
    assert n_docs == 1 and lost["relations"] == 3


def test_bioc_of_bc5cdr_has_relations_without_nodes() -> None:
    (document,) = parse_bioc(
        """<collection><source/><date/><key/><document><id>7</id>
        <passage><offset>0</offset><text>Dolor por cloro</text>
        <annotation id="0"><infon key="type">Disease</infon><infon key="MESH">D1</infon>
        <location offset="0" length="5"/><text>Dolor</text></annotation>
        <annotation id="1"><infon key="type">Chemical</infon><infon key="MESH">-1</infon>
        <location offset="10" length="5"/><text>cloro</text></annotation></passage>
        <relation id="R0"><infon key="relation">CID</infon><infon key="Chemical">D2</infon>
        <infon key="Disease">D1</infon></relation></document></collection>""",
        "x.xml",
    )
    kept = [a for a in document.annotations if not isinstance(a, OtherAnnotation)]
    assert kept == [
        SpanAnnotation("0", "Disease", ((0, 5),), "Dolor", ("D1",)),
        SpanAnnotation("1", "Chemical", ((10, 15),), "cloro"),
        RelationAnnotation("R0", "CID", (("Chemical", "D2"), ("Disease", "D1"))),
    ]
    assert parse_bioc(format_bioc([document]), "x.xml")[0].annotations == document.annotations
