"""brat standoff, byte for byte both ways."""

import re
from collections import Counter
from pathlib import Path

import pytest

from spacy_bioclin.corpora.brat import (
    count_rounded_ids,
    format_ann,
    format_brat,
    parse_ann,
    read_brat,
    read_brat_file,
)
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import (
    AnnotatedText,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from tests.corpora.errors import error_of, is_wrong

ANN = (
    "T3\tFARMACO 4 9\tácido\n"
    "#1\tAnnotatorNotes T3\tCHEBI:37527\n"
    "T1\tSCOPE 0 3;10 12\tuno de\n"
    "#2\tAnnotatorNotes T1\t<null>\n"
    "R1\tScope Arg1:T1 Arg2:T3\n"
    "E1\tEvent:T1 Theme:T3\n"
    "A1\tNegated T1\n"
    "*\tEquiv T1 T3\n"
)


def test_every_kind_of_line() -> None:
    annotations = parse_ann(ANN, text_length=20, source="a.ann")
    assert annotations == (
        SpanAnnotation("T3", "FARMACO", ((4, 9),), "ácido", ("CHEBI:37527",)),
        NoteAnnotation("#1", "AnnotatorNotes", "T3", "CHEBI:37527"),
        SpanAnnotation("T1", "SCOPE", ((0, 3), (10, 12)), "uno de"),
        NoteAnnotation("#2", "AnnotatorNotes", "T1", "<null>"),
        RelationAnnotation("R1", "Scope", (("Arg1", "T1"), ("Arg2", "T3"))),
        OtherAnnotation("E1", "E1\tEvent:T1 Theme:T3"),
        OtherAnnotation("A1", "A1\tNegated T1"),
        OtherAnnotation("*", "*\tEquiv T1 T3"),
    )


def test_same_bytes() -> None:
    anns = [
        ANN,
        ANN.replace("\n", "\r\n"),
        ANN.rstrip("\n"),
        "\ufeff" + ANN,
        ANN.replace("\n", "\n\n"),
        "\n" + ANN + "\r\n \n",
        ANN.replace("Arg2:T3", "Arg2:T3\t"),
        "T1\tX 0 3\ta\tb\n",
        "T1\tX 0 3\ta  \n",
        "T1\tX 0 0\t\n",
        "T1\tX 0 3\ta\u2028\x0b\x85b\n",
        "unknown line\n\tanother \n",
        "",
        "\n",
        "\r\n\n",
    ]
    wrong = [ann for ann in anns if format_ann(parse_ann(ann, text_length=20, source="a")) != ann]
    assert not wrong


def test_crlf_is_no_part_of_an_annotation() -> None:
    span, _ = parse_ann("T1\tX 0 3\tuno\r\n", text_length=3, source="a.ann")
    assert span == SpanAnnotation("T1", "X", ((0, 3),), "uno")


def test_a_byte_order_mark_hides_no_annotation() -> None:
    _, span = parse_ann("\ufeffT1\tX 0 3\tuno\n", text_length=3, source="a.ann")
    assert isinstance(span, SpanAnnotation) and span.id == "T1"


def test_concept_ids_come_from_notes() -> None:
    notes = [
        ("54115009", ("54115009",)),
        ("8000/6/H", ("8000/6/H",)),
        ("C0000001  C0000002", ("C0000001", "C0000002")),
        ("146801000119103 NARROW", ("146801000119103",)),
        ("94222008+94381002 COMPOSITE", ("94222008", "94381002")),
        ("37193007+NO_CODE+76642003 EXACT+NO_CODE+NARROW", ("37193007", "76642003")),
        ("NO_CODE NO_CODE", ()),
        ("N+O N+O", ()),
        ("NOMAP NOMAP", ()),
        ("1.63195610001191E+016 EXACT", ()),  # rounded by a spreadsheet
        ("37193007+1.59978E+16 COMPOSITE", ("37193007",)),
        ("<null>", ()),
        ("check", ()),
        ("seen in 2 notes", ()),
        ("", ()),
    ]
    wrong: list[object] = []
    for note, ids in notes:
        ann = f"T1\tX 0 3\tuno\n#1\tAnnotatorNotes T1\t{note}\n"
        parsed = parse_ann(ann, text_length=3, source="a.ann")
        assert isinstance(parsed[0], SpanAnnotation) and format_ann(parsed) == ann
        found = (parsed[0].concept_ids, count_rounded_ids(parsed))
        if found != (ids, len(re.findall(r"\dE\+", note))):
            wrong.append((note, found))
    assert not wrong


def test_concept_ids_of_other_formats_become_notes() -> None:
    spans = [
        SpanAnnotation("T1", "X", ((0, 1),), "a", ("D1", "D2")),
        NoteAnnotation("#4", "AnnotatorNotes", "T1", "check"),
        SpanAnnotation("T2", "X", ((1, 2),), "b"),
    ]
    assert format_ann(spans).splitlines()[-1] == "#5\tAnnotatorNotes T1\tD1 D2"
    assert format_ann(spans[1:]).count("#") == 1


def test_files_with_bom_crlf_and_tabs(tmp_path: Path) -> None:
    text = "\ufeffUno\r\n\tdós 😀 e\u0301\r\n"
    ann = f"T1\tX 1 4\t{text[1:4]}\nT2\tX 7 10\t{text[7:10]}\nT3\tX 11 12\t😀\n"
    (tmp_path / "a.b.txt").write_bytes(text.encode())
    (tmp_path / "a.b.ann").write_bytes(ann.encode())
    (read,) = read_brat(tmp_path / "a.b.txt")
    assert (read.id, read.text) == ("a.b", text)
    spans = [a for a in read.annotations if isinstance(a, SpanAnnotation)]
    assert [text[s:e] for span in spans for s, e in span.fragments] == ["Uno", "dós", "😀"]
    for suffix, content in format_brat(read).items():
        assert content.encode() == (tmp_path / f"a.b{suffix}").read_bytes()
    assert read_brat_file(tmp_path / "a.b.txt") == read  # the annotations beside the text
    (tmp_path / "a.b.ann").unlink()
    assert read_brat_file(tmp_path / "a.b.txt") == AnnotatedText(
        "a.b", text, (), str(tmp_path / "a.b.txt")
    )


def test_malformed_lines_are_errors_without_text() -> None:
    rows = [
        ("T1\tX 0 3\tuno\nT2\t0 3\tuno\n", "line 2: malformed T line, expected T1<TAB>Label"),
        ("T1\tX 0 3\n", "line 1: malformed T line"),
        ("T1 X 0 3 uno\n", "line 1: malformed T line"),
        ("\n\nT1\tX 0 99\tuno\n", r"line 3: offset 99 is past the end of the text \(20 char"),
        ("T1\tX 3 0\tuno\n", "line 1: start 3 is after end 0"),
        (" T1\tX 0 3\tuno\n", "line 1: malformed T line"),
        ("R1\tX\n", "line 1: malformed R line, expected R1"),
        ("#1\tAnnotatorNotes\n", "line 1: malformed # line"),
    ]
    wrong = [
        (ann, found)
        for ann, message in rows
        for found in [error_of(parse_ann, ann, text_length=20, source="a.ann")]
        if is_wrong(found, f"a.ann, {message}", "uno")
    ]
    assert not wrong


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "lone.ann").write_text("")
    (tmp_path / "alone.txt").write_text("Uno")
    (tmp_path / "latin.txt").write_bytes("Uno\ndós\n".encode("latin-1"))
    (tmp_path / "latin.ann").write_text("")
    for name, message in (
        ("lone.ann", "lone.txt: no such file"),
        ("alone.txt", "alone.ann: no such file"),
        ("codes.tsv", r"codes.tsv: brat files end in"),
        ("latin.txt", r"latin.txt, line 2: not UTF-8 \(byte 5\)"),
    ):
        with pytest.raises(BioclinError, match=message):
            read_brat(tmp_path / name)
        skipped = Counter[str]()
        assert read_brat(tmp_path / name, lambda file, _, seen=skipped: seen.update([file])) == []
        assert skipped == {name: 1}


def find_changed(folder: Path, n_files: int) -> list[Path]:
    """RETURNS: Files of a corpus, of so many, that are not the same bytes after reading."""
    files = sorted(folder.rglob("*.ann"))
    assert len(files) == n_files
    changed = []
    for ann in files:
        (read,) = read_brat(ann)
        contents = [path.read_bytes() for path in (ann.with_suffix(".txt"), ann)]
        if [read.text.encode(), format_ann(read.annotations).encode()] != contents:
            changed.append(ann)
    return changed


@pytest.mark.corpora
def test_a_real_corpus_byte_for_byte(data_dir: Path) -> None:
    assert not find_changed(data_dir / "ehealthkd-2021", 8)


@pytest.mark.corpora
@pytest.mark.slow
def test_real_corpora_byte_for_byte(data_dir: Path) -> None:
    corpora = {
        "meddocan": 1000,
        "pharmaconer": 1000,
        "cantemist": 1301,
        "nubes": 615,
        "jnlpba/standoff": 2404,
        "quaero/corpus": 2536,
    }
    for corpus, n_files in corpora.items():
        assert not find_changed(data_dir / corpus, n_files)
