"""Columns, PubTator, i2b2 XML, BioC: there and back on invented text; files of a corpus."""

from pathlib import Path

import pytest
import spacy
from bioc import BioCAnnotation, BioCCollection, BioCDocument, BioCLocation, BioCPassage, biocxml

from spacy_bioclin.corpora.agreement.i2b2_xml import format_i2b2, parse_i2b2, read_i2b2
from spacy_bioclin.corpora.bioc_format import format_bioc, parse_bioc
from spacy_bioclin.corpora.brat import format_ann, parse_ann
from spacy_bioclin.corpora.columns import (
    decode_tags,
    encode_tags,
    format_columns,
    parse_columns,
    read_columns,
)
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.corpora.docs import make_gold_doc, spans_of
from spacy_bioclin.corpora.formats import FORMATS, add_targets, find_files, relabel
from spacy_bioclin.corpora.pubtator import format_pubtator, parse_pubtator, read_pubtator
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import (
    AnnotatedText,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from tests.corpora.errors import error_of, is_wrong

COLUMNS = """\
-DOCSTART-\tO

Dolor\tB-FINDING
torácico\tI-FINDING
,\tO
tos\tB-FINDING

Niega\tO
fiebre\tB-FINDING

-DOCSTART-\tO

Alta\tO

"""

PUBTATOR = """\
7|t|Renal and hepatic failure after aspirin.
7|a|A case. Aspirin was stopped.
7\t0\t25\tRenal and hepatic failure\tDisease\tD1|D2\tRenal failure|hepatic failure
7\t32\t39\taspirin\tChemical\tD3
7\t49\t56\tAspirin\tChemical\tD3+D4
7\t57\t60\twas\tOther\t-1
7\tCID\tD3\tD1

8|t|Empty.
8|a|

"""

I2B2 = """\
<?xml version="1.0" encoding="UTF-8"?>
<deIdi2b2>
<TEXT><![CDATA[\ufeffPaciente: Ana <Gil>\r
\tEdad & sexo: 40 años]]></TEXT>
<TAGS>
  <NAME id="P0" start="11" end="14" text="Ana" TYPE="PATIENT" comment=""/>
  <AGE id="P1" start="36" end="38" text="40"/>
</TAGS>
</deIdi2b2>
"""


def surfaces(document: AnnotatedText) -> list[str]:
    return [document.text[s:e] for span in spans_of(document) for s, e in span.fragments]


def test_columns_there_and_back() -> None:
    first, second = parse_columns(COLUMNS, "notes.tsv")
    assert (first.id, first.text) == ("notes-1", "Dolor torácico , tos\nNiega fiebre")
    assert (second.id, second.text, spans_of(second)) == ("notes-2", "Alta", [])
    assert surfaces(first) == ["Dolor torácico", "tos", "fiebre"]
    assert {span.label for span in spans_of(first)} == {"FINDING"}
    assert format_columns([first, second]) == COLUMNS
    assert parse_columns("\ufeff" + COLUMNS, "notes.tsv") == [first, second]
    bom = AnnotatedText("notes-1", "\ufeffAlta")
    assert [each.text for each in parse_columns(format_columns([bom]), "notes.tsv")] == [bom.text]


def test_columns_without_docstart_are_a_document_a_sentence() -> None:
    content = "a\tNN\tx\tO\nb\tVB\ty\tB-X\n\nc\tNN\tz\tO\n\n"
    documents = parse_columns(content, "n.tsv")
    assert [document.text for document in documents] == ["a b", "c"]
    assert format_columns(documents) == content
    (blanks,) = parse_columns("a NN O\r\nb NN B-X\r\n", "n.tsv")
    assert surfaces(blanks) == ["b"]
    assert parse_columns("", "n.tsv") == parse_columns("\n\n", "n.tsv") == []


def test_schemes() -> None:
    schemes = [
        ("IOB1", "I-A I-A O I-A B-A I-B O"),
        ("IOB2", "B-A I-A O B-A B-A B-B O"),
        ("BIOES", "B-A E-A O S-A S-A S-B O"),
    ]
    entities = [(0, 2, "A"), (3, 4, "A"), (4, 5, "A"), (5, 6, "B")]
    words = [(2 * i, 2 * i + 1) for i in range(7)]
    spans = [(2 * first, 2 * behind - 1, label) for first, behind, label in entities]
    for scheme, tags in schemes:
        assert decode_tags(tags.split()) == entities
        assert encode_tags(words, spans, scheme) == tags.split()


def test_illegal_tags_are_read_as_conlleval_does() -> None:
    rows = [
        ("O I-A I-A", [(1, 3, "A")]),
        ("B-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("E-A I-A", [(0, 1, "A"), (1, 2, "A")]),
        ("B-A L-A U-A", [(0, 2, "A"), (2, 3, "A")]),
    ]
    wrong = [tags for tags, entities in rows if decode_tags(tags.split()) != entities]
    assert not wrong


def test_of_overlapping_spans_one_is_tagged() -> None:
    words = [(0, 1), (2, 3)]
    assert encode_tags(words, [(0, 1, "A"), (0, 3, "B")], "IOB2") == ["B-B", "I-B"]


def test_pubtator_there_and_back() -> None:
    first, second = parse_pubtator(PUBTATOR, "x.txt")
    spans = spans_of(first)
    assert surfaces(first) == [span.surface for span in spans]
    assert [s.concept_ids for s in spans] == [("D1", "D2"), ("D3",), ("D3+D4",), ()]
    (relation,) = (a for a in first.annotations if isinstance(a, RelationAnnotation))
    assert (relation.label, relation.args) == ("CID", (("Arg1", "D3"), ("Arg2", "D1")))
    assert (second.id, second.text) == ("8", "Empty.\n")
    assert format_pubtator([first, second]) == PUBTATOR
    assert parse_pubtator("\ufeff" + PUBTATOR, "x.txt") == [first, second]
    for ids in ("", " ", "|"):
        (without,) = parse_pubtator(f"7|t|Ab\n7|a|\n7\t0\t2\tAb\tX\t{ids}\n", "x.txt")
        assert spans_of(without)[0].concept_ids == ()


def test_i2b2_there_and_back(tmp_path: Path) -> None:
    document = parse_i2b2(I2B2, "n", "n.xml")
    assert document.text == "\ufeffPaciente: Ana <Gil>\r\n\tEdad & sexo: 40 años"
    assert surfaces(document) == ["Ana", "40"]
    assert [span.label for span in spans_of(document)] == ["PATIENT", "AGE"]
    assert format_i2b2(document) == I2B2
    (tmp_path / "n.xml").write_bytes(I2B2.encode())
    assert read_i2b2(tmp_path / "n.xml") == [document._replace(source=str(tmp_path / "n.xml"))]
    with pytest.raises(BioclinError, match="CDATA cannot"):
        format_i2b2(AnnotatedText("n", "a]]>b"))


def test_bioc_there_and_back() -> None:
    document = AnnotatedText(
        "n",
        "Dolor <y> fiebre 😀 á",
        (
            SpanAnnotation("T1", "FINDING", ((0, 5), (10, 16)), "Dolor fiebre", ("C1", "C2")),
            SpanAnnotation("T2", "FACE", ((17, 18),), "😀"),
            RelationAnnotation("R1", "with", (("a", "T1"), ("b", "T2"))),
        ),
        "n.xml",
    )
    for as_json in (True, False):
        content = format_bioc([document], as_json=as_json)
        (read,) = parse_bioc(content, "n.xml")
        assert (read.id, read.text) == ("n", document.text)
        assert read.annotations[1:] == document.annotations
        assert format_bioc([read], as_json=as_json) == content


def test_bioc_passages_stand_at_their_offsets() -> None:
    collection, document = BioCCollection(), BioCDocument()
    document.id = "n"
    for text, offset, word in (("Title", 0, 0), ("Fever and rash", 7, 7)):
        passage = BioCPassage.of_text(text, offset)
        span = BioCAnnotation()
        span.id, span.text, span.infons["type"] = f"T{offset}", text[:5], "X"
        span.add_location(BioCLocation(word, 5))
        passage.add_annotation(span)
        document.add_passage(passage)
    collection.add_document(document)
    (read,) = parse_bioc(biocxml.dumps(collection), "n.xml")
    assert read.text == "Title\n\nFever and rash"
    assert surfaces(read) == ["Title", "Fever"]
    content = format_bioc([read])
    (again,) = parse_bioc(content, "n.xml")
    assert again == read
    (written,) = biocxml.loads(content).documents
    assert [[a.text for a in p.annotations] for p in written.passages] == [["Title"], ["Fever"]]


PUB = "7|t|Ab\n7|a|Cd\n"
XML = "<r><TEXT><![CDATA[Ana]]></TEXT><TAGS>{}</TAGS></r>"
BIOC = (
    "<collection><source/><date/><key/><document><id>n</id><passage><offset>0</offset>"
    "<text>Ana</text>{}</passage></document></collection>"
)


def test_bad_files_name_file_and_line_or_are_skipped(tmp_path: Path) -> None:
    rows = [
        ("columns", "n.tsv", "a\tO\nb\n", "line 2: 1 columns, expected 2"),
        ("columns", "n.tsv", "a\tO\n\na\tx\tO\nb\tO\n", "line 4: 2 columns, expected 3"),
        ("columns", "n.tsv", "a\tFINDING\n", "line 1: the last column is not a tag"),
        ("columns", "n.tsv", "a\tB-\n", "line 1: the last column is not a tag"),
        ("columns", "n.tsv", "\tO\n", "line 1: the word is empty"),
        ("pubtator", "n.txt", "7|t|Ab\n7\t0\t2\tAb\tX\t-1\n", "line 1: a document has to begin"),
        ("pubtator", "n.txt", "\n7|t|Ab\n8|a|Cd\n", "line 2: a document has to begin"),
        ("pubtator", "n.txt", PUB + "7\t0\t2\tAb\n", "line 3: expected .* found 4 columns"),
        ("pubtator", "n.txt", PUB + "7\t0\t99\tAb\tX\t-1\n", "line 3: offsets 0-99 are not within"),
        ("pubtator", "n.txt", PUB + "7\t0\t2\tAb\t\t-1\n", "line 3: the mention has no type"),
        ("pubtator", "n.txt", PUB + "8\t0\t2\tAb\tX\t-1\n", "line 3: .* id of its document"),
        ("i2b2", "n.xml", "<r/>", "no <TEXT>"),
        ("i2b2", "n.xml", XML.format("<A>"), "line 1: malformed XML"),
        ("i2b2", "n.xml", XML.format('<A start="0"/>'), "line 1: <A> has no start and end"),
        ("i2b2", "n.xml", XML.format('<A start="0" end="9"/>'), "line 1: offsets 0-9 are not"),
        ("bioc", "n.xml", "<collection>", "malformed BioC"),
        ("bioc", "n.json", '{"documents": 1}', "malformed BioC"),
        ("bioc", "n.xml", BIOC.format('<annotation id="T1"/>'), "document n: .* has no type"),
        (
            "bioc",
            "n.xml",
            BIOC.format(
                '<annotation id="T1"><infon key="type">X</infon><location offset="2" length="9"/>'
                "</annotation>"
            ),
            "document n: annotation T1 is past the end",
        ),
        ("spacy", "n.spacy", "no docs", "not a DocBin"),
    ]
    wrong: list[object] = []
    for format, name, content, message in rows:
        (tmp_path / name).write_text(content, encoding="utf-8")
        found = error_of(FORMATS[format].read, tmp_path / name, _raise)
        skipped: list[str] = []
        FORMATS[format].read(
            tmp_path / name, lambda file, error, seen=skipped: seen.append(Path(file).name)
        )
        if is_wrong(found, f"{name}.*{message}") or skipped != [name]:
            wrong.append((format, content, found, skipped))
    assert not wrong


def _raise(name: str, error: BioclinError) -> None:
    raise error


def test_a_bad_document_does_not_take_its_neighbours_along(tmp_path: Path) -> None:
    skipped: list[str] = []
    bad = PUB + "7\t0\n\n" + PUB.replace("7", "8") + "\n"
    documents = parse_pubtator(bad, "n.txt", lambda file, error: skipped.append(file))
    assert [document.id for document in documents] == ["8"] and skipped == ["n.txt"]


def test_any_format_to_brat() -> None:
    documents = [
        *parse_columns(COLUMNS, "n.tsv"),
        *parse_pubtator(PUBTATOR, "n.txt"),
        parse_i2b2(I2B2, "n", ""),
    ]
    for document in documents:
        ann = format_ann(document.annotations)
        read = parse_ann(ann, text_length=len(document.text), source="n.ann")
        assert format_ann(read) == ann
        assert not any(isinstance(annotation, OtherAnnotation) for annotation in read)
        assert [a[1:] for a in spans_of(document)] == [
            a[1:] for a in read if isinstance(a, SpanAnnotation)
        ]
        for kind in (RelationAnnotation, NoteAnnotation):
            n_expected = sum(isinstance(a, kind) for a in document.annotations)
            assert sum(isinstance(a, kind) for a in read) >= n_expected


def test_foreign_ids_in_brat() -> None:
    annotations = (
        SpanAnnotation("T1", "X", ((0, 1),), "a\nb", ("C1",)),
        SpanAnnotation("P0", "X", ((0, 1),), "a"),
        RelationAnnotation("0", "L", (("a", "P0"), ("b", "T1"))),
        NoteAnnotation("", "comment", "P0", "x"),
        OtherAnnotation("layout:columns", "NN\nVB"),
    )
    assert format_ann(annotations) == (
        "T1\tX 0 1\ta b\nT2\tX 0 1\ta\nR1\tL a:T2 b:T1\n#1\tcomment T2\tx\n"
        "#2\tAnnotatorNotes T1\tC1\n"
    )
    with pytest.raises(BioclinError, match="label 'A B' holds a blank"):
        format_ann([SpanAnnotation("T1", "A B", ((0, 1),), "a")])


def test_docs_are_a_format(tmp_path: Path) -> None:
    span = SpanAnnotation("T7", "X", ((0, 3),), "Tos", ("C1",))
    source = AnnotatedText("note", "Tos seca", (span,))
    write_docs([make_gold_doc(spacy.blank("es"), source)], tmp_path / "n.spacy")
    (read,) = FORMATS["spacy"].read(tmp_path / "n.spacy", _raise)
    assert read == source


def test_find_files(tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/2.ann", "b/1.ann", "a.txt", "README.md", "c.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_files("brat", [tmp_path / "b", tmp_path])
    assert [file.stem for file in found] == ["1", "2", "a"]
    assert find_files("i2b2", [tmp_path]) == [tmp_path / "c.xml"]
    (tmp_path / "empty").mkdir()
    for path, message in (("empty", r"empty: no \.xml file"), ("none", "none: no such file")):
        with pytest.raises(BioclinError, match=message):
            find_files("i2b2", [tmp_path / path])


def test_relabel() -> None:
    spans = tuple(SpanAnnotation(f"T{i}", label, ((0, 1),)) for i, label in enumerate("ABC"))
    document = AnnotatedText("n", "x", spans)
    labels = [span.label for span in spans_of(relabel(document, {"A": "X", "*": "Y"}))]
    assert labels == ["X", "Y", "Y"]
    assert [span.label for span in spans_of(relabel(document, {"A": "X"}))] == ["X", "B", "C"]
    assert relabel(document, {}) is document


@pytest.mark.corpora
def test_a_real_file_of_columns(data_dir: Path) -> None:
    file = data_dir / "ncbi-disease" / "iob" / "devel.tsv"
    assert format_columns(read_columns(file)).encode() == file.read_bytes()


@pytest.mark.slow
@pytest.mark.corpora
def test_real_columns_byte_for_byte(data_dir: Path) -> None:
    files = sorted(data_dir.glob("*/iob/devel.tsv"))
    assert len(files) == 5
    for file in files:
        assert format_columns(read_columns(file)).encode() == file.read_bytes(), file


def change_lines(file: Path) -> tuple[list[str], list[str]]:
    """RETURNS: The lines of a PubTator file, and those after reading and writing."""
    # the NCBI corpus has blanks around five ids, and other empty lines than BC5CDR
    lines = file.read_text(encoding="utf-8").replace("\t ", "\t").replace(" \n", "\n")
    written = format_pubtator(read_pubtator(file)).replace(" \n", "\n")
    return [*filter(None, lines.split("\n"))], [*filter(None, written.split("\n"))]


@pytest.mark.corpora
def test_a_real_file_of_pubtator(data_dir: Path) -> None:
    (file,) = (data_dir / "ncbi-disease" / "original").glob("*develop*.txt")
    before, after = change_lines(file)
    assert len(before) > 900 and after == before


@pytest.mark.slow
@pytest.mark.corpora
def test_real_pubtator_line_by_line(data_dir: Path) -> None:
    for folder in ("bc5cdr/pubtator", "ncbi-disease/original"):
        files = sorted((data_dir / folder).glob("*.txt"))
        assert len(files) == 3
        for file in files:
            before, after = change_lines(file)
            assert after == before, file


@pytest.mark.corpora
def test_real_meddocan_xml_is_its_brat(data_dir: Path) -> None:
    files = sorted(data_dir.glob("meddocan/*/xml_examples/*.xml"))
    assert len(files) == 15
    for file in files:
        (document,) = read_i2b2(file)
        ann = file.parents[1] / "brat" / f"{file.stem}.ann"
        expected = {line.split("\t", 1)[1] for line in ann.read_text().splitlines()}
        spans = spans_of(document)
        assert {line.split("\t", 1)[1] for line in format_ann(spans).splitlines()} == expected
        assert parse_i2b2(format_i2b2(document), document.id, document.source) == document


def test_targets_of_relations_become_spans_once():
    ann = (
        "T1\tNegSynMarker 0 5\tNiega\n"
        "T2\tDISO 6 12\tfiebre\n"
        "T3\tDISO 15 18;25 30\ttos\n"
        "T4\tNegLexMarker 40 48\tdescarta\n"
        "R1\tScope Arg1:T1 Arg2:T2\n"
        "R2\tDiscScope Arg1:T1 Arg2:T3\n"
        "R3\tScope Arg1:T4 Arg2:T2\n"
        "R4\tOther Arg1:T2 Arg2:T3\n"
        "R5\tScope Arg1:T1 Arg2:T9\n"
    )
    document = AnnotatedText("1", "x" * 50, parse_ann(ann, text_length=50, source="1.ann"))
    labels = {"NegSynMarker": "scope", "NegLexMarker": "scope"}
    found = add_targets(document, labels).annotations
    assert found[: len(document.annotations)] == document.annotations
    assert found[len(document.annotations) :] == (
        SpanAnnotation("R1", "scope", ((6, 12),)),
        SpanAnnotation("R2", "scope", ((15, 18), (25, 30))),
    )
    assert add_targets(document, {}) is document
