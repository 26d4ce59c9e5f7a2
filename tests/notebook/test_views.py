"""What a notebook shows of Docs with displaCy."""

import html
import re

import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc

from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.notebook import colours, view_entities, view_relations, view_spans
from tests.notebook.notes import find, make_note


@pytest.fixture
def doc() -> Doc:
    return make_note()


def brightness(colour: str) -> float:
    """Compute the relative luminance of "#rrggbb" (WCAG 2.1)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_on_colours_can_be_read_and_lines_be_seen() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    # WCAG 2.1: 7 is AAA of text, 4.5 is AA of text, 3 is AA of what is no text.
    assert min(contrast(tint, "#000000") for tint in colours.TINTS) >= 7
    assert min(contrast(line, "#000000") for line in colours.LINES) >= 4.5
    for page in ("#ffffff", "#1e2129"):  # a light and a dark notebook
        assert min(contrast(line, page) for line in colours.LINES) >= 3
    assert len(set(colours.TINTS)) == len(set(colours.LINES)) == len(colours.TINTS) == 10


def test_a_kind_of_phi_has_one_colour_in_all_schemes() -> None:
    assert colours.OF_TYPE.keys() == load_types().keys()
    assert colours.choose_tint("NOMBRE_SUJETO_ASISTENCIA") == colours.choose_tint("PATIENT")
    assert colours.choose_line("negated_cue") == colours.choose_line("negated")


def test_attributes_and_concepts_are_in_the_labels(doc: Doc) -> None:
    view = view_entities(doc)
    labels = [ent["label"] for ent in view["docs"][0]["ents"]]
    assert labels == ["DISEASE · family · DOID:9351", "SYMPTOM · negated"]
    shown = displacy.render(**view, jupyter=False)
    assert f"background: {colours.TINTS[colours.RED]}" in shown
    assert f"background: {colours.TINTS[colours.ORANGE]}" in shown
    assert "<b>" not in shown


def test_what_is_improbable_is_left_out(doc: Doc) -> None:
    [shown] = view_entities([doc], min_probability=0.7)["docs"]
    assert [ent["label"].partition(" ")[0] for ent in shown["ents"]] == ["DISEASE"]
    doc.spans["own"] = [find(doc, "fiebre", "SYMPTOM")]  # without probabilities
    assert len(view_entities(doc, "own", min_probability=0.7)["docs"][0]["ents"]) == 1


def test_labels_are_escaped_and_keep_their_colour(doc: Doc) -> None:
    doc.spans["own"] = [find(doc, "fiebre", "<i>&")]
    for view in (view_entities(doc, "own"), view_spans(doc, "own")):
        shown = displacy.render(**view, jupyter=False)
        assert "&lt;i&gt;&amp;" in shown and "<i>" not in shown
        [colour] = view["options"]["colors"].values()
        assert f"background: {colour}" in shown


def test_overlapping_entities_and_all_spans(doc: Doc) -> None:
    doc.spans["own"] = [find(doc, "fiebre", "INNER"), find(doc, "niega fiebre", "OUTER")]
    [shown] = view_entities(doc, "own")["docs"]
    assert [ent["label"] for ent in shown["ents"]] == ["OUTER · negated"]
    page = displacy.render(**view_spans(doc, "own"), jupyter=False)
    assert "INNER" in page and "OUTER" in page


def test_each_group_is_shown_in_colours(doc: Doc) -> None:
    for key in ("sections", "section_titles", "measurements"):
        shown = displacy.render(**view_spans(doc, key), jupyter=False)
        for span in doc.spans[key]:
            assert colours.choose_line(span.label_) in shown and span.label_ in shown
        text = html.unescape(re.sub("<[^>]*>", "", shown)).split()
        assert {"madre", "niega", "120", "80"} <= set(text)


def test_context_has_a_line_from_the_cue_to_the_end_of_its_scope(doc: Doc) -> None:
    [shown] = view_spans(doc, "context")["docs"]
    found = {
        (span["label"], " ".join(shown["tokens"][span["start_token"] : span["end_token"]]))
        for span in shown["spans"]
    }
    assert ("negated_cue", "niega") in found
    [(_, scope)] = [each for each in found if each[0] == "negated"]
    assert scope.startswith("niega fiebre")


def test_several_docs_and_a_key_that_none_has(doc: Doc) -> None:
    empty = spacy.blank("es")("")
    assert len(view_spans([doc, empty], "context")["docs"]) == 2
    with pytest.raises(BioclinError, match="'phi': want context, measurements, section"):
        view_entities([doc, empty], "phi")
    with pytest.raises(BioclinError, match="run a pipeline first"):
        view_spans(empty, "phi")


def test_relations_far_apart_are_drawn_apart(doc: Doc) -> None:
    text = "Fiebre por ibuprofeno. " + "Buen estado general. " * 20 + "Tos por enalapril."
    doc = spacy.blank("es")(text)
    fever, tablet = find(doc, "Fiebre", "SYMPTOM"), find(doc, "ibuprofeno", "DRUG")
    cough, other = find(doc, "Tos", "SYMPTOM"), find(doc, "enalapril", "DRUG")
    found = [Relation(tablet, fever, "ADE"), Relation(other, cough, "ADE")]
    set_relations(doc, "relations", found)
    view = view_relations(doc)
    texts = [[word["text"] for word in drawing["words"]] for drawing in view["docs"]]
    assert texts == [["Fiebre", "por", "ibuprofeno"], ["Tos", "por", "enalapril"]]
    # "ibuprofeno", of 10 characters, is the longest word.
    assert view["options"]["distance"] == 10 * 8.5 + 30
    assert displacy.render(**view, jupyter=False).count('class="displacy-arc"') == 2

    set_relations(doc, "relations", [Relation(other, fever, "ADE")])
    [drawing] = view_relations(doc)["docs"]
    assert [word["text"] for word in drawing["words"]] == [
        "Fiebre",
        "por … Tos por",
        "enalapril",
    ]
    assert drawing["arcs"] == [{"start": 0, "end": 2, "label": "ADE", "dir": "left"}]


def test_no_relations_no_drawing(doc: Doc) -> None:
    assert displacy.render(**view_relations(doc), jupyter=False) == ""
