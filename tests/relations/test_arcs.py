"""What displaCy draws of relations."""

from spacy import displacy

from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.relations.arcs import count_hidden_arcs, make_displacy_arcs
from tests.trained import blank

TEXT = "Cefalea intensa por <nolotil> y\náuseas por ibuprofeno."


def make_doc(*relations, key="relations"):
    """relations: label, then (surface, label) of head and child."""
    doc = blank("es")(TEXT)
    found = []
    for label, *arguments in relations:
        spans = []
        for surface, of in arguments:
            start = TEXT.index(surface)
            spans.append(doc.char_span(start, start + len(surface), label=of))
        found.append(Relation(*spans, label))
    set_relations(doc, key, found)
    return doc


DRUG, SYMPTOM = ("nolotil", "DRUG"), ("Cefalea intensa", "SYMPTOM")


def test_words_and_arcs_in_both_directions():
    doc = make_doc(("ADE", DRUG, SYMPTOM), ("NEXT", SYMPTOM, ("ibuprofeno", "DRUG")))
    data = make_displacy_arcs(doc)
    assert data["words"] == [
        {"text": "Cefalea intensa", "tag": "SYMPTOM"},
        {"text": "por <", "tag": ""},
        {"text": "nolotil", "tag": "DRUG"},
        {"text": "> y áuseas por", "tag": ""},
        {"text": "ibuprofeno", "tag": "DRUG"},
        {"text": ".", "tag": ""},
    ]
    assert data["arcs"] == [
        {"start": 0, "end": 2, "label": "ADE", "dir": "left"},
        {"start": 0, "end": 4, "label": "NEXT", "dir": "right"},
    ]
    assert count_hidden_arcs(doc) == 0


def test_arcs_of_overlapping_entities_lead_to_the_longest():
    inner, other = ("Cefalea", "PLACE"), ("intensa por", "OTHER")
    doc = make_doc(
        ("ADE", DRUG, SYMPTOM),
        ("ADE", DRUG, inner),
        ("PART", inner, SYMPTOM),  # cannot be drawn
        ("ADE", other, DRUG),
    )
    data = make_displacy_arcs(doc)
    assert [word["text"] for word in data["words"]][:2] == ["Cefalea intensa", "por <"]
    arcs = [(arc["start"], arc["end"], arc["dir"]) for arc in data["arcs"]]
    assert arcs == [(0, 2, "left"), (0, 2, "left"), (0, 2, "right")]
    assert count_hidden_arcs(doc) == 1


def test_docs_without_relations_and_other_keys():
    doc = make_doc()
    data = make_displacy_arcs(doc)
    assert data["arcs"] == [] and [word["tag"] for word in data["words"]] == [""]
    assert displacy.render(data, style="dep", manual=True, jupyter=False)
    doc = make_doc(("ADE", DRUG, SYMPTOM), key="one")
    assert make_displacy_arcs(doc, "two")["arcs"] == []
    assert len(make_displacy_arcs(doc, "one")["arcs"]) == 1
