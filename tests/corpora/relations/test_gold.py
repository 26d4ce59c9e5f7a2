"""Relations of a file -> gold Doc, by hand-worked examples."""

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_bioclin.annotations.relations import (
    ConceptRelation,
    GoldRelation,
    get_gold_concept_relations,
    get_gold_relations,
)
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.brat import parse_ann
from spacy_bioclin.corpora.convert import convert_to_docs
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.docs import doc_to_annotated, make_gold_doc
from spacy_bioclin.corpora.readers import cut_doc
from spacy_bioclin.corpora.report import LossReport
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import (
    GOLD_KEY,
    AnnotatedText,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)

# 0    5   9    14 17      25
TEXT = "Dolor por metástasis hepática, 5mg."
SPANS = "T1\tX 0 5\tDolor\nT2\tX 10 20\tmetástasis\nT3\tY 21 29\thepática\n"
PAIN, METASTASIS, HEPATIC = (0, 5, "X"), (10, 20, "X"), (21, 29, "Y")


@pytest.fixture(scope="module")
def nlp() -> Language:
    return spacy.blank("es")


def brat(lines: str, spans: str = SPANS) -> AnnotatedText:
    found = parse_ann(spans + lines, text_length=len(TEXT), source="note.ann")
    return AnnotatedText("note", TEXT, found, "note.ann")


def counts(report: LossReport) -> dict[str, Any]:
    """The counts of relations that are not 0."""
    return {
        key.removeprefix("relation_").removeprefix("relations_"): n
        for key, n in report.to_dict().items()
        if key.startswith("relation") and n
    }


def test_without_the_option_docs_have_no_relations(nlp: Language) -> None:
    report = LossReport()
    doc = make_gold_doc(nlp, brat("R1\tLoc Arg1:T2 Arg2:T3\n"), report=report)
    assert set(doc.user_data[GOLD_KEY]) == {"id", "task", "layers"}
    assert get_gold_relations(doc) is None and get_gold_concept_relations(doc) is None
    assert counts(report) == {} and "relations_read" not in report.to_dict()


def test_relations_between_spans_and_events(nlp: Language) -> None:
    report = LossReport()
    lines = (
        "R1\tLoc Arg1:T2 Arg2:T3\nE1\tX:T1 \nE2\tX:T2 Cause:E1\nR2\tBefore Arg1:E1 Arg2:E2\n"
        "*\tSame E2 T3\nR3\tLoc Arg1:E2 Arg2:T3\nR4\tLoc Arg1:T3 Arg2:T2\n"
    )
    doc = make_gold_doc(nlp, brat(lines), relations="all", report=report)
    assert get_gold_relations(doc) == [
        GoldRelation("Loc", METASTASIS, HEPATIC),
        GoldRelation("Cause", METASTASIS, PAIN),  # an argument of the event E2
        GoldRelation("Before", PAIN, METASTASIS),
        GoldRelation("Same", METASTASIS, HEPATIC),
        GoldRelation("Loc", HEPATIC, METASTASIS),  # the other direction; R3 is R1 again
    ]
    assert get_gold_concept_relations(doc) is None
    assert counts(report) == {"read": 6, "kept": 5, "duplicate": 1}
    assert report.to_dict()["files"]["relation_duplicate"] == {"note.ann": 1}
    report.check()


def test_the_number_of_a_role_is_no_part_of_its_label(nlp: Language) -> None:
    doc = make_gold_doc(nlp, brat("E1\tX:T1 Theme:T2 Theme2:T3\n"), relations="all")
    assert get_gold_relations(doc) == [
        GoldRelation("Theme", PAIN, METASTASIS),
        GoldRelation("Theme", PAIN, HEPATIC),
    ]


def test_a_star_line_without_arguments_is_counted(nlp: Language) -> None:
    for raw, counted in (("*", "no_label"), ("*\tSame", "nary")):
        report = LossReport()
        document = brat("")
        document = document._replace(annotations=(*document.annotations, OtherAnnotation("*", raw)))
        make_gold_doc(nlp, document, relations="all", report=report)
        assert counts(report) == {"read": 1, "lost": 1, counted: 1}


def test_relations_survive_the_disk(nlp: Language) -> None:
    source = brat("R1\tLoc Arg1:T2 Arg2:T3\n")
    doc = make_gold_doc(nlp, source, relations="all")
    data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (read,) = DocBin().from_bytes(data).get_docs(nlp.vocab)
    assert get_gold_relations(read) == [GoldRelation("Loc", METASTASIS, HEPATIC)]
    assert doc_to_annotated(read, id="?").annotations == source.annotations


def test_fragments_and_labels_are_those_of_the_layer(nlp: Language) -> None:
    span = SpanAnnotation("T1", "X", ((0, 5), (21, 29)))
    other = SpanAnnotation("T2", "Y", ((31, 34),))
    relation = RelationAnnotation("R1", "Loc", (("Arg1", "T2"), ("Arg2", "T1")))
    doc = make_gold_doc(nlp, AnnotatedText("n", TEXT, (span, other, relation)), relations=["Loc"])
    assert doc.user_data[GOLD_KEY]["relations"] == [["Loc", [31, 34, "Y"], [0, 29, "X"]]]
    fields = [fields[:3] for fields in doc.user_data[GOLD_KEY]["layers"]["ents"]]
    assert fields == [[0, 29, "X"], [31, 34, "Y"]]


def test_what_cannot_be_kept_is_counted(nlp: Language) -> None:
    report = LossReport()
    lines = (
        "R1\tLoc Arg1:T1 Arg2:T2\nR2\tLoc Arg1:T1 Arg2:T3\nR3\tLoc Arg1:T1 Arg2:T9\n"
        "R4\tLoc Arg1:T1 Arg2:T2 Arg3:T2\n*\tSame T1 T2 T3\n*\tLoc T1 T2 T3\n"
        "R5\tLoc Arg1:T3 Arg2:T9\nR6\tLoc Arg1:T4 Arg2:T1\n"
    )
    spans = SPANS + "T4\tX 5 5\t\n"  # touches no token
    doc = make_gold_doc(
        nlp, brat(lines, spans), layers={"X": "ents", "*": None}, relations=["Loc"], report=report
    )
    assert get_gold_relations(doc) == [GoldRelation("Loc", PAIN, METASTASIS)]
    # no span: T9 of R3 and R5, T4 of R6; left out: T3 of R2; not two arguments: R4 and a line *
    assert counts(report) == {
        "read": 8, "kept": 1, "lost": 5, "other": 1, "left_out": 1, "no_span": 3, "nary": 2,
    }  # fmt: skip
    report.read = report.kept  # of the spans, T4 is lost too
    report.files["left_out"].clear()
    with pytest.raises(BioclinError, match=r"5 of 8 relations are lost \(limit 0.1%\).*--allow"):
        report.check()
    report.check(allow_loss=True)


def test_an_annotated_document_can_have_no_relation(nlp: Language) -> None:
    report = LossReport()
    doc = make_gold_doc(nlp, brat(""), relations="all", report=report)
    assert get_gold_relations(doc) == [] and get_gold_concept_relations(doc) is None
    assert report.to_dict()["relations_read"] == 0
    doc = make_gold_doc(nlp, brat(""), relations="all", level="concept")
    assert get_gold_relations(doc) is None and get_gold_concept_relations(doc) == []
    doc = make_gold_doc(nlp, brat(""), relations="all", level="either")
    assert get_gold_relations(doc) == [] and get_gold_concept_relations(doc) == []


def concepts(*pairs: tuple[str, str]) -> AnnotatedText:
    spans = (
        SpanAnnotation("T1", "X", ((0, 5),), "Dolor", ("D1",)),
        SpanAnnotation("T2", "X", ((10, 20),), "metástasis", ("D2", "D3")),
        SpanAnnotation("T3", "Y", ((21, 29),), "hepática", ("D4",)),
    )
    relations = (
        RelationAnnotation(f"R{i}", "CID", (("Arg1", a), ("Arg2", b)))
        for i, (a, b) in enumerate(pairs, start=1)
    )
    return AnnotatedText("7", TEXT, (*spans, *relations), "x.txt")


def test_relations_between_concepts(nlp: Language) -> None:
    report = LossReport()
    document = concepts(("D1", "D3"), ("D1", "D4"), ("D1", "D5"), ("D1", "D3"), ("D2", "D1"))
    layers = {"X": "ents", "Y": None}
    settings: dict[str, Any] = {"layers": layers, "relations": ["CID"], "report": report}
    doc = make_gold_doc(nlp, document, level="concept", **settings)
    assert get_gold_concept_relations(doc) == [
        ConceptRelation("CID", "D1", "D3"), ConceptRelation("CID", "D2", "D1"),
    ]  # fmt: skip
    assert get_gold_relations(doc) is None
    assert counts(report) == {
        "read": 5, "kept": 2, "lost": 1, "duplicate": 1, "left_out": 1, "no_span": 1,
    }  # fmt: skip
    assert report.to_dict()["files"]["relation_no_span"] == {"x.txt#7": 1}


def test_a_format_of_both_kinds_has_the_key_of_what_occurs(nlp: Language) -> None:
    settings: dict[str, Any] = {"relations": "all", "level": "either"}
    doc = make_gold_doc(nlp, concepts(("D1", "D2")), **settings)
    assert "relations" not in doc.user_data[GOLD_KEY] and get_gold_concept_relations(doc)
    doc = make_gold_doc(nlp, concepts(("T1", "T2")), **settings)
    assert get_gold_relations(doc) == [GoldRelation("CID", PAIN, METASTASIS)]
    assert get_gold_concept_relations(doc) is None


def test_parts_have_the_relations_within_them(nlp: Language) -> None:
    lines = "R1\tLoc Arg1:T2 Arg2:T3\nR2\tFar Arg1:T1 Arg2:T2\nR3\tLoc Arg1:T3 Arg2:T3\n"
    doc = make_gold_doc(nlp, brat(lines), relations="all")
    first, second = cut_doc(doc, 2)[:2]  # "Dolor por ", "metástasis hepática"
    assert first.user_data[GOLD_KEY]["relations"] == []
    assert second.user_data[GOLD_KEY]["relations"] == [
        ["Loc", [0, 10, "X"], [11, 19, "Y"]], ["Loc", [11, 19, "Y"], [11, 19, "Y"]],
    ]  # fmt: skip
    assert second.text[11:19] == "hepática" and get_gold_concept_relations(second) is None
    assert len(doc.user_data[GOLD_KEY]["relations"]) == 3
    document = concepts(("D1", "D2"), ("D4", "D3"))
    doc = make_gold_doc(nlp, document, relations="all", level="concept")
    first, second = cut_doc(doc, 2)[:2]
    assert get_gold_concept_relations(first) == [] and get_gold_relations(first) is None
    assert get_gold_concept_relations(second) == [ConceptRelation("CID", "D4", "D3")]


def write_note(folder: Path, ann: str) -> Path:
    folder.mkdir()
    (folder / "note.txt").write_text(TEXT, "utf-8")
    (folder / "note.ann").write_text(SPANS + ann, "utf-8")
    return folder


def test_convert_with_relations(tmp_path: Path) -> None:
    notes = write_note(tmp_path / "notes", "R1\tLoc Arg1:T2 Arg2:T3\nR2\tFar Arg1:T1 Arg2:T2\n")
    for option, labels in (("all", ["Loc", "Far"]), ("Far,Loc", ["Loc", "Far"]), ("Far", ["Far"])):
        out = tmp_path / f"{option}.spacy"
        words = ["convert", "brat", str(notes), str(out), "--lang", "es", "--relations", option]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        (doc,) = read_docs(out, spacy.blank("es").vocab)
        assert [relation.label for relation in get_gold_relations(doc) or ()] == labels
        assert "relations_kept" in done.output


def test_labels_that_no_relation_has(tmp_path: Path) -> None:
    notes = write_note(tmp_path / "notes", "R1\tLoc Arg1:T2 Arg2:T3\nR2\tFar Arg1:T1 Arg2:T2\n")
    out = tmp_path / "x.spacy"
    with pytest.raises(BioclinError, match=r"--relations is loc, but .* are Far, Loc: choose"):
        convert_to_docs("brat", [notes], out, lang="es", relations=["loc"])
    assert not out.exists()
    reports: list[LossReport] = []
    convert_to_docs(
        "brat", [notes], out, lang="es", relations=["Loc", "loc"], on_report=reports.append
    )
    assert reports[0].to_dict()["unused_relations"] == ["loc"]


def test_bad_options(tmp_path: Path) -> None:
    rows = [
        (["--relations", "Loc,,Far"], "--relations wants labels"),
        (["--relations", "all", "--to", "bioc"], "--relations: only Docs have this"),
    ]
    notes = write_note(tmp_path / "notes", "")
    for options, message in rows:
        out = tmp_path / ("x.json" if "bioc" in options else "x.spacy")
        words = ["convert", "brat", str(notes), str(out), "--lang", "es", *options]
        done = CliRunner().invoke(app, words)
        assert done.exit_code != 0 and message in f"{done.output}{done.exception}"
