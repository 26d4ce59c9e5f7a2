"""Annotations -> gold Doc, by hand-worked examples."""

import random

import pytest
import spacy
from spacy.attrs import ENT_IOB
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_bioclin.corpora.brat import format_ann, parse_ann
from spacy_bioclin.corpora.docs import doc_to_annotated, make_gold_doc, overlaps
from spacy_bioclin.corpora.report import LossReport
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.spans import annotated_labels
from spacy_bioclin.types import GOLD_KEY, AnnotatedText, SpanAnnotation
from tests.corpora.errors import error_of, is_wrong

# 0    5   9    14 17      25
TEXT = "Dolor por metástasis hepática, 5mg."


@pytest.fixture(scope="module")
def nlp() -> Language:
    return spacy.blank("es")


def annotated(*spans: tuple[int, int, str], text: str = TEXT) -> AnnotatedText:
    found = (
        SpanAnnotation(f"T{i}", label, ((start, end),), text[start:end])
        for i, (start, end, label) in enumerate(spans, start=1)
    )
    return AnnotatedText("note", text, tuple(found), "note.ann")


def triples(spans: "list[Span]") -> list[tuple[str, str]]:
    return [(span.text, span.label_) for span in spans]


def test_flat_spans_fill_ents_and_the_group(nlp: Language) -> None:
    report = LossReport()
    doc = make_gold_doc(nlp, annotated((10, 29, "FINDING")), report=report, task="demo")
    assert triples(doc.ents) == triples(doc.spans["ents"]) == [("metástasis hepática", "FINDING")]
    assert doc.user_data[GOLD_KEY] == {
        "id": "note",
        "task": "demo",
        "layers": {"ents": [[10, 29, "FINDING", ""]]},
    }
    assert {token.ent_iob_ for token in doc if not token.ent_type_} == {"O"}
    assert (report.docs, report.read, report.kept, report.lost) == (1, 1, 1, 0)


def test_of_overlapping_spans_the_longest_then_the_earliest_is_in_ents(nlp: Language) -> None:
    # nested (10-20 in 10-30), crossing (6-20 against 10-30), twice the same
    report = LossReport()
    doc = make_gold_doc(
        nlp,
        annotated((10, 20, "A"), (10, 30, "B"), (6, 20, "C"), (0, 5, "D"), (0, 5, "D")),
        report=report,
    )
    assert triples(doc.ents) == [("Dolor", "D"), ("metástasis hepática,", "B")]
    assert len(doc.spans["ents"]) == 5
    counts = {k: report.count(k) for k in ("nested", "crossing", "duplicate", "not_in_ents")}
    assert counts == {"nested": 1, "crossing": 1, "duplicate": 1, "not_in_ents": 3}
    assert report.lost == 0
    tie = make_gold_doc(nlp, annotated((6, 20, "LATER"), (0, 9, "EARLIER")))
    assert triples(tie.ents) == [("Dolor por", "EARLIER")]


def test_overlaps() -> None:
    rows: list[tuple[list[tuple[int, int, str]], list[str]]] = [
        ([(0, 5, "A"), (5, 9, "A")], []),
        ([(0, 9, "A"), (0, 9, "A")], ["duplicate"]),
        ([(0, 9, "A"), (0, 9, "B")], ["nested"]),
        ([(0, 9, "A"), (0, 9, "B"), (0, 9, "A")], ["duplicate", "nested"]),
        ([(2, 4, "A"), (0, 9, "A"), (3, 4, "B")], ["nested", "nested"]),
        ([(0, 5, "A"), (4, 9, "A")], ["crossing"]),
        ([(0, 5, "A"), (4, 9, "A"), (4, 5, "A")], ["crossing", "nested"]),
        ([(0, 3, "A"), (2, 5, "A"), (4, 7, "A")], ["crossing", "crossing"]),
    ]
    wrong = [(spans, found) for spans, kinds in rows if (found := sorted(overlaps(spans))) != kinds]
    assert not wrong


def test_overlaps_and_flat_ents_against_brute_force(nlp: Language) -> None:
    rng = random.Random(0)
    text = " ".join("abcdefgh")
    for _ in range(300):
        words = [sorted(rng.sample(range(9), 2)) for _ in range(rng.randint(0, 6))]
        spans = [(2 * a, 2 * b - 1, rng.choice("XY")) for a, b in words]
        report = LossReport()
        doc = make_gold_doc(nlp, annotated(*spans, text=text), report=report)
        duplicates = sum(span in spans[:i] for i, span in enumerate(spans))
        distinct = set(spans)
        nested = {
            s
            for s in distinct
            for t in distinct
            if t[0] <= s[0] and s[1] <= t[1] and (s[:2] != t[:2] or s[2] > t[2])
        }
        crossing = {s for s in distinct - nested for t in distinct if t[0] < s[0] < t[1] < s[1]}
        found = {kind: report.count(kind) for kind in ("duplicate", "nested", "crossing")}
        assert found == {
            "duplicate": duplicates, "nested": len(nested), "crossing": len(crossing),
        }, spans  # fmt: skip
        flat: list[tuple[int, int, str]] = []
        for span in sorted(spans, key=lambda s: (s[0] - s[1], s[0])):  # the sort is stable
            if all(span[1] <= start or end <= span[0] for start, end, _ in flat):
                flat.append(span)
        ents = [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]
        assert ents == sorted(flat)
        assert report.count("not_in_ents") == len(spans) - len(flat)
        assert len(doc.spans["ents"]) == report.kept == report.read == len(spans)


def test_a_boundary_inside_a_token_moves_outwards_but_gold_keeps_the_offsets() -> None:
    nlp = spacy.blank("es")
    words = Doc(nlp.vocab, words=["Toma", "5mg"], spaces=[True, False])
    nlp.tokenizer = lambda text: words  # a tokenizer that does not cut doses
    report = LossReport()
    doc = make_gold_doc(
        nlp, annotated((5, 6, "DOSE"), (6, 8, "UNIT"), text="Toma 5mg"), report=report
    )
    assert triples(doc.ents) == [("5mg", "DOSE")]
    assert triples(doc.spans["ents"]) == [("5mg", "DOSE"), ("5mg", "UNIT")]
    assert doc.user_data[GOLD_KEY]["layers"]["ents"] == [[5, 6, "DOSE", ""], [6, 8, "UNIT", ""]]
    assert report.to_dict() == {
        "docs": 1, "read": 2, "kept": 2, "lost": 0, "snapped": 2, "nested": 0, "crossing": 0,
        "duplicate": 0, "not_in_ents": 1, "discontinuous": 0, "wrong_offset": 0,
        "rounded_id": 0, "left_out": 0, "empty": 0, "unread": 0, "skipped": 0, "unused_labels": [],
        "files": {"snapped": {"note.ann": 2}, "not_in_ents": {"note.ann": 1}},
    }  # fmt: skip


def test_blanks_at_the_edges_of_a_span_are_left_out(nlp: Language) -> None:
    report = LossReport()
    text = "uno\n\n dos  \n tres"
    doc = make_gold_doc(
        nlp, annotated((3, 12, "A"), (3, 5, "B"), (8, 8, "C"), text=text), report=report
    )
    assert triples(doc.ents) == [("dos", "A")]
    assert (report.count("snapped"), report.count("empty"), report.lost) == (1, 2, 2)
    assert len(doc.user_data[GOLD_KEY]["layers"]["ents"]) == 3


def test_fragments_are_covered_and_counted(nlp: Language) -> None:
    report = LossReport()
    span = SpanAnnotation("T1", "FINDING", ((0, 5), (21, 29)), "Dolor hepática", ("R1", "R2"))
    doc = make_gold_doc(nlp, AnnotatedText("note", TEXT, (span,)), report=report)
    assert triples(doc.ents) == [("Dolor por metástasis hepática", "FINDING")]
    assert doc.ents[0].kb_id_ == doc.spans["ents"][0].kb_id_ == "R1|R2"
    assert doc.user_data[GOLD_KEY]["layers"]["ents"] == [[0, 29, "FINDING", "R1|R2"]]
    assert (report.count("discontinuous"), report.count("wrong_offset")) == (1, 0)


def test_wrong_offsets_are_kept_and_counted(nlp: Language) -> None:
    report = LossReport()
    span = SpanAnnotation("T1", "FINDING", ((1, 5),), "Dolor")
    doc = make_gold_doc(nlp, AnnotatedText("7", TEXT, (span,), "a/b.txt"), report=report)
    assert triples(doc.ents) == [("Dolor", "FINDING")]
    assert report.to_dict()["files"] == {"snapped": {"b.txt#7": 1}, "wrong_offset": {"b.txt#7": 1}}
    with pytest.raises(BioclinError, match="1 of 1 spans do not cover the text"):
        report.check()


def test_phi_is_never_in_ents_and_other_layers_stay_missing(nlp: Language) -> None:
    doc = make_gold_doc(nlp, annotated((0, 5, "NAME")), layers={"*": "phi"})
    assert not doc.ents and set(doc.to_array([ENT_IOB])) == {0}
    assert list(doc.spans) == ["phi"] and triples(doc.spans["phi"]) == [("Dolor", "NAME")]
    both = make_gold_doc(
        nlp, annotated((0, 5, "NAME"), (10, 29, "X")), layers={"NAME": "phi", "*": "ents"}
    )
    assert triples(both.spans["phi"]) == [("Dolor", "NAME")]
    assert triples(both.ents) == [("metástasis hepática", "X")]
    with pytest.raises(BioclinError, match="no layer is set for label 'X'"):
        make_gold_doc(nlp, annotated((0, 5, "X")), layers={"NAME": "phi"})


def test_labels_without_a_layer_are_left_out_and_counted(nlp: Language) -> None:
    report = LossReport()
    source = annotated((0, 5, "NAME"), (10, 29, "X"), (10, 20, "Y"))
    doc = make_gold_doc(nlp, source, layers={"X": "ents", "*": None}, report=report)
    assert triples(doc.ents) == [("metástasis hepática", "X")] and list(doc.spans) == ["ents"]
    found = report.to_dict()
    assert (found["read"], found["kept"], found["left_out"], found["lost"]) == (3, 1, 2, 0)
    assert doc_to_annotated(doc, id="").annotations == source.annotations


def test_the_labels_that_a_document_was_annotated_for(nlp: Language) -> None:
    report = LossReport()
    source = annotated((0, 5, "NAME"), (10, 29, "X"))
    doc = make_gold_doc(
        nlp,
        source,
        layers={"NAME": "phi", "*": "ents"},
        annotated_labels=["Y", "NAME", "X", "Y"],
        report=report,
    )
    assert doc.user_data[GOLD_KEY]["annotated"] == {"phi": ["NAME"], "ents": ["X", "Y"]}
    assert annotated_labels(doc, None) == annotated_labels(doc, "ents") == {"X", "Y"}
    assert annotated_labels(doc, "phi") == {"NAME"} and annotated_labels(doc, "other") is None
    assert report.to_dict()["unused_labels"] == ["Y"]
    whole = make_gold_doc(nlp, source)
    assert "annotated" not in whole.user_data[GOLD_KEY] and annotated_labels(whole, None) is None
    assert annotated_labels(nlp("sin anotar"), None) is None


def test_annotated_labels_that_do_not_fit(nlp: Language) -> None:
    rows = [
        ({"*": "ents"}, ["NAME"], r"note.ann: has spans of 'X', but 'X' is not .*\(NAME\)"),
        ({"NAME": "phi", "*": "ents"}, ["X"], r"spans of 'NAME'.*--annotated"),
        ({"NAME": "phi", "X": "ents"}, ["X", "NAME", "Y"], "label 'Y' is annotated, but no layer"),
        ({"Y": None, "*": "ents"}, ["X", "NAME", "Y"], "label 'Y' is annotated, but no layer"),
    ]
    source = annotated((0, 5, "NAME"), (10, 29, "X"))
    wrong = [
        (layers, labels, found)
        for layers, labels, message in rows
        for found in [error_of(make_gold_doc, nlp, source, layers=layers, annotated_labels=labels)]
        if is_wrong(found, message)
    ]
    assert not wrong


def test_a_document_without_spans_is_all_o(nlp: Language) -> None:
    for text in ("", " ", "Sin hallazgos."):
        doc = make_gold_doc(nlp, AnnotatedText("note", text))
        assert not doc.ents and doc.spans["ents"] is not None and len(doc.spans["ents"]) == 0
        assert set(doc.to_array([ENT_IOB]).tolist()) <= {2}
        data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
        (read,) = DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab)
        assert read.text == text and "ents" in read.spans
        assert set(read.to_array([ENT_IOB]).tolist()) <= {2}


def test_brat_to_doc_to_brat(nlp: Language) -> None:
    ann = (
        "T2\tX 0 5;21 29\tDolor hepática\n#1\tAnnotatorNotes T2\t8000/6\n"
        "T1\tY 10 20\tmetástasis\nR1\tLoc Arg1:T2 Arg2:T1\n*\tEquiv T1 T2\nA1\tNegated T1\r\n"
    )
    source = parse_ann(ann, text_length=len(TEXT), source="note.ann")
    doc = make_gold_doc(nlp, AnnotatedText("note", TEXT, source, "note.ann"))
    data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (read,) = DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab)
    result = doc_to_annotated(read, id="other")
    assert (result.id, result.text, result.annotations) == ("note", TEXT, source)
    assert format_ann(result.annotations) == ann


def test_a_span_without_a_concept_id_hides_no_other(nlp: Language) -> None:
    doc = nlp(TEXT)
    doc.spans["linked"] = [Span(doc, 2, 4, label="Y", kb_id="8000/6")]
    doc.spans["other"] = [Span(doc, 2, 4, label="Y", kb_id="C1")]
    doc.ents = [Span(doc, 2, 4, label="Y"), Span(doc, 0, 1, label="X", kb_id="C2")]
    spans = [a for a in doc_to_annotated(doc, id="n").annotations if isinstance(a, SpanAnnotation)]
    assert [(span.label, span.concept_ids) for span in spans] == [
        ("X", ("C2",)),
        ("Y", ("8000/6",)),
    ]


def test_attributes_are_counted(nlp: Language) -> None:
    ann = (
        "T1\tX 0 5\tDolor\nA1\tNegated T1\nA2\tDegree T1 high\nA3\tProbability T1 0.9\n"
        "N1\tReference T1 SNOMED:22253000\tDolor\nN2\tReference T9 SNOMED:1\tno\n"
    )
    source = parse_ann(ann, text_length=len(TEXT), source="note.ann")
    report = LossReport()
    doc = make_gold_doc(nlp, AnnotatedText("note", TEXT, source, "note.ann"), report=report)
    assert report.to_dict()["files"] == {"unread": {"note.ann": 3}}
    assert doc.ents[0].kb_id_ == "22253000"


def test_a_gold_doc_with_new_spans_gives_the_new_spans(nlp: Language) -> None:
    doc = make_gold_doc(nlp, annotated((0, 5, "X")))
    doc.spans["ents"] = []
    doc.ents = [Span(doc, 2, 4, label="Y", kb_id="8000/6")]
    result = doc_to_annotated(doc, id="note")
    assert format_ann(result.annotations) == (
        "T1\tY 10 29\tmetástasis hepática\n#1\tAnnotatorNotes T1\t8000/6\n"
    )
