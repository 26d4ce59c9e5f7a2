"""The XML of DDI-2013, by invented documents."""

import spacy

from spacy_bioclin.annotations.relations import get_gold_relations
from spacy_bioclin.corpora.docs import make_gold_doc, spans_of
from spacy_bioclin.corpora.relations.ddi import parse_ddi
from spacy_bioclin.corpora.report import LossReport
from spacy_bioclin.types import RelationAnnotation, SpanAnnotation
from tests.corpora.errors import error_of, is_wrong

XML = """<?xml version="1.0" encoding="UTF-8"?>
<document id="d1">
    <sentence id="d1.s0" text="🙂 Alfa &amp; beta or gamma iron.&#xa;">
        <entity id="d1.s0.e0" charOffset="2-5" type="drug" text="Alfa"/>
        <entity id="d1.s0.e1" charOffset="9-12;23-26"
            type="group" text="beta iron"/>
        <pair id="d1.s0.p0" e1="d1.s0.e0" e2="d1.s0.e1" ddi="true" type="effect"/>
        <pair id="d1.s0.p1" e1="d1.s0.e1" e2="d1.s0.e0" ddi="true"/>
    </sentence>
    <sentence id="d1.s1" text=""/>
    <!-- a comment -->
    <sentence id="d1.s2" text="Beta.">
        <entity id="d1.s2.e0" charOffset="0-3" type="drug" text="Beta"/>
        <pair id="d1.s2.p0" e1="d1.s2.e0" e2="d1.s2.e0" ddi="false"/>
    </sentence>
</document>
"""


def test_sentences_are_joined_by_newlines() -> None:
    document = parse_ddi(XML, "x.xml")
    assert (document.id, document.text) == ("d1", "🙂 Alfa & beta or gamma iron.\n\n\nBeta.")
    assert document.annotations == (
        SpanAnnotation("d1.s0.e0", "drug", ((2, 6),), "Alfa"),
        SpanAnnotation("d1.s0.e1", "group", ((9, 13), (23, 27)), "beta iron"),
        RelationAnnotation("d1.s0.p0", "effect", (("Arg1", "d1.s0.e0"), ("Arg2", "d1.s0.e1"))),
        RelationAnnotation("d1.s0.p1", "untyped", (("Arg1", "d1.s0.e1"), ("Arg2", "d1.s0.e0"))),
        SpanAnnotation("d1.s2.e0", "drug", ((31, 35),), "Beta"),
    )
    for span in spans_of(document):
        assert " ".join(document.text[a:b] for a, b in span.fragments) == span.surface


def test_the_gold_doc() -> None:
    report = LossReport()
    doc = make_gold_doc(
        spacy.blank("en"), parse_ddi(XML, "x.xml"), relations=["effect"], report=report
    )
    assert get_gold_relations(doc) == [("effect", (2, 6, "drug"), (9, 27, "group"))]
    found = report.to_dict()
    assert (found["wrong_offset"], found["discontinuous"], found["lost"]) == (0, 1, 0)
    assert (found["relations_read"], found["relations_kept"], found["relation_other"]) == (2, 1, 1)


def test_line_ends_and_byte_order_marks() -> None:
    for before in ("\ufeff", ""):
        assert parse_ddi(before + XML.replace("\n", "\r\n"), "x.xml") == parse_ddi(XML, "x.xml")


def test_broken_files() -> None:
    rows = [
        ("</document>", "", "x.xml, line 1[67]: malformed XML"),
        ('document id="d1"', "document", "no <document id=…> with <sentence>"),
        ("sentence", "passage", "no <document id=…> with <sentence>"),
        ('text="Beta."', "", "x.xml, line 12: the sentence has no text"),
        ('charOffset="2-5"', "", "x.xml, line 4: <entity> has no charOffset"),
        (' type="drug"', "", "x.xml, line 4: <entity> has no type"),
        ("2-5", "5-2", "x.xml, line 4: offsets 5-3 are not within the text"),
        ("2-5", "2:5", "x.xml, line 4: charOffset is not like"),
        ("9-12;23-26", "9-12;23-29", "offsets 23-30 are not within the text"),
        ("9-12;23-26", "9-12;", "charOffset is not like"),
        ('e2="d1.s0.e1"', "", "x.xml, line 7: <pair> has no e2"),
        ('ddi="true" type', 'ddi="maybe" type', 'ddi of the pair is neither "true" nor "false"'),
        ("d1.s2.e0", "d1.s0.e0", "several entities or pairs have the same id"),
        ("<document", '<!DOCTYPE d [<!ENTITY a "b">]><document', "defines XML entities"),
    ]
    wrong = [
        (old, new, found)
        for old, new, message in rows
        for found in [error_of(parse_ddi, XML.replace(old, new), "x.xml")]
        if is_wrong(found, message)
    ]
    assert not wrong
