"""What a format cannot hold is left out and counted, or an error that names it."""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from spacy_bioclin.corpora.agreement.i2b2_xml import format_i2b2, parse_i2b2
from spacy_bioclin.corpora.bioc_format import format_bioc
from spacy_bioclin.corpora.brat import format_ann, parse_ann, read_brat
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.export import write_corpus
from spacy_bioclin.corpora.formats import FORMATS, find_files
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import (
    AnnotatedText,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from tests.corpora.errors import error_of, is_wrong

TEXT = "Dolor y fiebre"
WHOLE = SpanAnnotation("T2", "B", ((0, 5),), "Dolor")
FRAGMENTED = SpanAnnotation("T7", "A", ((0, 5), (8, 14)), "Dolor fiebre")
NAMES = {
    "pubtator": "x.txt",
    "columns": "x.tsv",
    "i2b2": "x",
    "brat": "x",
    "bioc": "x.xml",
    "inception": "x",
}


def read_back(format: str, path: Path) -> list[SpanAnnotation]:
    (file,) = find_files(format, [path])
    (document,) = FORMATS[format].read(file, _raise)
    return spans_of(document)


def _raise(name: str, error: BioclinError) -> None:
    raise error


def test_spans_that_a_format_cannot_hold(tmp_path: Path) -> None:
    rows = [
        ("i2b2", FRAGMENTED),
        ("columns", FRAGMENTED),
        ("pubtator", FRAGMENTED),
        ("columns", WHOLE._replace(id="T7", label="a\tb")),
        ("pubtator", WHOLE._replace(id="T7", label="a\nb")),
        ("brat", WHOLE._replace(id="T7", label="Cell Line")),
    ]
    for number, (format, span) in enumerate(rows):
        text = f"{TEXT}\n" if format == "pubtator" else TEXT  # a title, and no abstract
        document = AnnotatedText("note", text, (span, WHOLE))
        folder = tmp_path / str(number)
        folder.mkdir()
        out = folder / NAMES[format]
        with pytest.raises(BioclinError, match=rf"note: {format} cannot .* \(T7; .*--allow-loss"):
            write_corpus([document], out, format)
        assert not out.exists()
        n_docs, lost = write_corpus([document], out, format, allow_loss=True)
        assert (n_docs, lost) == (1, Counter(spans=1))
        assert [each[1:3] for each in read_back(format, out)] == [("B", ((0, 5),))]


def test_what_is_about_a_label_with_blanks_is_left_out_of_brat(tmp_path: Path) -> None:
    annotations = (
        WHOLE,
        WHOLE._replace(id="T7", label="Cell Line", concept_ids=("C1",)),
        RelationAnnotation("R1", "with", (("Arg1", "T2"), ("Arg2", "T7"))),
        RelationAnnotation("R2", "is a", (("Arg1", "T2"), ("Arg2", "T2"))),
        RelationAnnotation("R3", "with", (("Arg1", "T2"), ("Arg2", "T2"))),
        NoteAnnotation("#1", "AnnotatorNotes", "T7", "bad"),
        NoteAnnotation("#2", "AnnotatorNotes", "T2", "good"),
    )
    document = AnnotatedText("note", TEXT, annotations)
    _, lost = write_corpus([document], tmp_path / "x", "brat", allow_loss=True)
    assert lost == {"spans": 1, "concept ids": 1, "relations": 2, "notes": 1}
    assert (tmp_path / "x" / "note.ann").read_text() == (
        "T2\tB 0 5\tDolor\nR3\twith Arg1:T2 Arg2:T2\n#2\tAnnotatorNotes T2\tgood\n"
    )


def test_a_line_break_in_a_mention_is_a_blank_in_pubtator(tmp_path: Path) -> None:
    span = SpanAnnotation("T1", "A", ((0, 8),), "Dolor\nde")
    write_corpus([AnnotatedText("7", "Dolor\nde", (span,))], tmp_path / "x.txt", "pubtator")
    assert read_back("pubtator", tmp_path / "x.txt")[0].surface == "Dolor de"


def test_repeated_ids_get_ids_of_their_own_in_brat(tmp_path: Path) -> None:
    spans = (
        SpanAnnotation("0", "A", ((0, 5),), "Dolor", ("C1",)),
        SpanAnnotation("0", "B", ((8, 14),), "fiebre", ("C2",)),
        SpanAnnotation("T1", "C", ((6, 7),), "y"),
        SpanAnnotation("T1", "D", ((6, 7),), "y", ("C3",)),
        SpanAnnotation("T 9", "E", ((6, 7),), "y"),
    )
    write_corpus([AnnotatedText("note", TEXT, spans)], tmp_path / "x", "brat")
    read = read_back("brat", tmp_path / "x")
    assert [(each.id, *each[1:]) for each in read] == [
        (id, *span[1:]) for id, span in zip(("T2", "T3", "T1", "T4", "T5"), spans, strict=True)
    ]


def test_a_repeated_id_in_brat_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match=r"a\.ann, line 2: another line has the id T1 too"):
        parse_ann("T1\tX 0 1\ta\nT1\tX 1 2\tb\n", text_length=2, source="a.ann")


def test_concept_ids_that_a_format_changes_are_an_error(tmp_path: Path) -> None:
    span = WHOLE._replace(concept_ids=("C1|C2",))
    for allow_loss in (False, True):
        with pytest.raises(BioclinError, match=r"note: bioc cannot hold the concept ids .* 2 w"):
            write_corpus(
                [AnnotatedText("note", TEXT, (span,))],
                tmp_path / "x.xml",
                "bioc",
                allow_loss=allow_loss,
            )
    assert not (tmp_path / "x.xml").exists()


def test_characters_that_xml_cannot_hold(tmp_path: Path) -> None:
    fields = ("text", "surface", "label", "concept", "note")
    for format, field in itertools.product(("bioc", "i2b2"), fields):
        bad = dict.fromkeys(fields, "") | {field: "\x0c"}
        annotations = (
            SpanAnnotation("T1", f"A{bad['label']}", ((0, 1),), f"a{bad['surface']}"),
            WHOLE._replace(concept_ids=(f"C1{bad['concept']}",)),
            NoteAnnotation("#1", "comment", "T1", f"ok{bad['note']}"),
        )
        document = AnnotatedText("note", f"{TEXT}{bad['text']} 😀\r\n\t\x85", annotations)
        found = error_of(
            write_corpus, [document], tmp_path / NAMES[format], format, allow_loss=True
        )
        assert not is_wrong(found, r"note: XML .* U\+000C; write .* brat", "Dolor"), (format, field)
        write_corpus([document], tmp_path / f"{format}-{field}.json", "bioc")


def test_an_infon_that_xml_cannot_hold() -> None:
    raw = json.dumps([0, len(TEXT), {"a": "\x0c"}])
    document = AnnotatedText("note", TEXT, (OtherAnnotation("layout:passage", raw),))
    with pytest.raises(BioclinError, match=r"infon of a passage; write a \.json file"):
        format_bioc([document])


def test_labels_that_are_no_element_in_i2b2() -> None:
    labels = ["1-Sintoma/agudo", "a b", "a:b", "{x}y", "ENTITY", "Año", "<&"]
    for label in labels:
        document = AnnotatedText("note", TEXT, (WHOLE._replace(label=label),))
        content = format_i2b2(document)
        read = parse_i2b2(content, "note", "note.xml")
        assert spans_of(read) == spans_of(document)
        assert format_i2b2(read) == content


NORMALIZED = (
    "T1\tX 0 5\tDolor\n"
    "T2\tX 8 14\tfiebre\n"
    "N1\tReference T1 SNOMED:22253000\tDolor\n"
    "N2\tReference T2 HPO:HP:0001945\tFiebre\n"
    "N3\tReference T2 HP:0001945\tFiebre\n"
    "#1\tAnnotatorNotes T2\t386661006\n"
)


def test_normalization_lines_give_concept_ids(tmp_path: Path) -> None:
    annotations = parse_ann(NORMALIZED, text_length=14, source="a.ann")
    document = AnnotatedText("note", TEXT, annotations)
    assert [span.concept_ids for span in spans_of(document)] == [
        ("22253000",),
        ("386661006", "HP:0001945"),
    ]
    assert format_ann(annotations) == NORMALIZED
    for format in ("bioc", "inception"):
        if format == "inception":
            pytest.importorskip("cassis", reason="dkpro-cassis is not installed")
        _, lost = write_corpus([document], tmp_path / NAMES[format], format)
        assert not lost
    assert read_back("bioc", tmp_path / "x.xml")[0].concept_ids == ("22253000",)


def test_a_lone_star_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "a.ann").write_text("T1\tX 0 1\ta\n*\n")
    with pytest.raises(BioclinError, match=r"a\.ann, line 2: malformed \* line, expected \*<TAB>"):
        read_brat(tmp_path / "a.ann")
