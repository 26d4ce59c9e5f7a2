"""Files of ShARe/CLEF 2013, invented from its documentation."""

from pathlib import Path

import pytest

from spacy_bioclin.corpora.agreement.share_clef import parse_share_clef, read_share_clef
from spacy_bioclin.corpora.convert import convert_to_docs, make_nlp
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.errors import BioclinError
from tests.corpora.errors import error_of

NAME = "00001-000002-ECHO_REPORT"
TEXT = "LV dilated , mild pericardial\r\neffusion .\nNo stroke ."
PIPE = f"""\
{NAME}.txt||Disease_Disorder||C0031039||18||39
{NAME}.txt||Disease_Disorder||CUI-less||0||2||3||10
{NAME}.txt||Disease_Disorder||C0038454||45||51
"""


def test_disorders() -> None:
    document = parse_share_clef(TEXT, PIPE, NAME, "x.pipe.txt")
    found = [[document.text[s:e] for s, e in span.fragments] for span in spans_of(document)]
    assert found == [["pericardial\r\neffusion"], ["LV", "dilated"], ["stroke"]]
    assert [span.concept_ids for span in spans_of(document)] == [("C0031039",), (), ("C0038454",)]
    assert {span.label for span in spans_of(document)} == {"Disease_Disorder"}
    assert parse_share_clef(TEXT, PIPE.replace(".txt|", "|"), NAME, "x") == document._replace(
        source="x"
    )


def test_malformed_lines() -> None:
    rows = [
        ("{}||Disease_Disorder||C1||0", "x.txt, line 5: expected file||label||concept||start||end"),
        ("{}||Disease_Disorder||C1||0||2||3", "further pairs of start and end; found 6 fields"),
        ("{}||||C1||0||2", "found 5 fields"),
        ("{}||Disease_Disorder||C1||0||900", "x.txt, line 5: offsets 0-900 are not within the"),
        ("{}||Disease_Disorder||C1||2||0", "x.txt, line 5: offsets 2-0 are not within the"),
        ("{}||Disease_Disorder||C1||0||-2", "x.txt, line 5: an offset is not a whole number"),
        ("other.txt||Disease_Disorder||C1||0||2", "does not begin with the name of its note"),
    ]
    wrong = [
        (line, found)
        for line, message in rows
        for found in [
            error_of(parse_share_clef, TEXT, f"{PIPE}\n{line.format(NAME)}\n", NAME, "x.txt")
        ]
        if message not in found or "stroke" in found
    ]
    assert not wrong


def test_folders(tmp_path: Path) -> None:
    for name in (f"{NAME}.txt", f"{NAME}.pipe.txt", f"{NAME}.pipe"):
        notes = tmp_path / name
        for folder, file, content in (("text", f"{NAME}.txt", TEXT), ("pipe", name, PIPE)):
            (notes / folder).mkdir(parents=True)
            (notes / folder / file).write_bytes(content.encode())
        convert_to_docs("share-clef", [notes / "text"], notes / "x.spacy", lang="en")
        [doc] = read_docs(notes / "x.spacy", make_nlp("en").vocab)
        assert doc.text == TEXT
        assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [
            ("LV dilated", ""), ("pericardial\r\neffusion", "C0031039"), ("stroke", "C0038454"),
        ]  # fmt: skip


def test_files_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text(TEXT, "utf-8")
    with pytest.raises(BioclinError, match=r"neither a\.txt nor a\.pipe\.txt is in .*pipe; make"):
        read_share_clef(tmp_path / "text" / "a.txt")
    with pytest.raises(BioclinError, match="want a text; its annotations are found by its name"):
        read_share_clef(tmp_path / "pipe" / "a.txt")
    (tmp_path / "pipe").mkdir()
    (tmp_path / "pipe" / "a.txt").write_text("", "utf-8")
    [document] = read_share_clef(tmp_path / "text" / "a.txt")
    assert (document.id, document.annotations) == ("a", ())
