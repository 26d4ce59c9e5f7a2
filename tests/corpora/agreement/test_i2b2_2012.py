"""Files of i2b2 2012, invented from its documentation."""

import itertools
from pathlib import Path

import pytest

from spacy_bioclin.corpora.agreement.i2b2_2012 import parse_i2b2_2012, read_i2b2_2012
from spacy_bioclin.corpora.convert import convert_to_docs, make_nlp
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import AnnotatedText, NoteAnnotation, RelationAnnotation
from tests.corpora.errors import error_of, is_wrong

NOTE = "Admission Date :\n07/03/1999\nChest pain & fever ; given <50 ml> saline ."
SPANS = [  # element, text, type, further values
    ("EVENT", "Admission", "OCCURRENCE", 'modality="FACTUAL" polarity="POS"'),
    ("SECTIME", "07/03/1999", "ADMISSION", 'dvalue="1999-07-03"'),
    ("EVENT", "Chest pain &amp; fever", "PROBLEM", 'modality="FACTUAL" polarity="POS"'),
    ("EVENT", "saline", "TREATMENT", 'modality="FACTUAL" polarity="NEG"'),
    ("TIMEX3", "07/03/1999", "DATE", 'val="1999-07-03" mod="NA"'),
]
LINK = '<TLINK id="TL0" fromID="X2" fromText="Chest" toID="X0" toText="Admission" type="BEFORE" />'


def make_xml(text: str, shift: int, *, of: str = "") -> str:
    """Make a file whose offsets, in `of` or the text, have something added."""
    tags = []
    for number, (element, surface, type, values) in enumerate(SPANS):
        start = (of or text).index(surface.replace("&amp;", "&"))
        end = start + len(surface.replace("&amp;", "&"))
        place = f'start="{start + shift}" end="{end + shift}" text="{surface}"'
        tags.append(f'<{element} id="X{number}" {place} type="{type}" {values} />')
    return (
        '<?xml version="1.0" encoding="UTF-8" ?>\n<ClinicalNarrativeTemporalAnnotation>\n'
        f"<TEXT><![CDATA[{text}]]></TEXT>\n<TAGS>\n"
        + "\n".join([*tags, LINK])
        + "\n</TAGS>\n</ClinicalNarrativeTemporalAnnotation>\n"
    )


def covered(document: AnnotatedText) -> list[str]:
    return [document.text[s:e] for span in spans_of(document) for s, e in span.fragments]


WANTED = ["Admission", "07/03/1999", "Chest pain & fever", "saline", "07/03/1999"]


def test_offsets_from_0_or_1() -> None:
    for text, shift in itertools.product(
        (NOTE, f"\n{NOTE}\n", f"\ufeff{NOTE} año e\u0301 👍"), (0, 1, -1)
    ):
        if text.startswith("Admission") and shift == -1:
            text = f" {text}"
        document = parse_i2b2_2012(make_xml(text, shift), "1", "1.xml")
        assert document.text == text
        assert covered(document) == WANTED == [span.surface for span in spans_of(document)]


def test_line_breaks_of_two_characters_that_count_as_one() -> None:
    text = NOTE.replace("\n", "\r\n")
    for shift in (0, 1):
        document = parse_i2b2_2012(make_xml(text, shift, of=NOTE), "1", "1.xml")
        assert document.text == text and covered(document) == WANTED


def test_what_a_document_has() -> None:
    document = parse_i2b2_2012(make_xml(NOTE, 1), "1", "1.xml")
    assert [span.label for span in spans_of(document)] == [
        "OCCURRENCE", "ADMISSION", "PROBLEM", "TREATMENT", "DATE",
    ]  # fmt: skip
    notes = [a for a in document.annotations if isinstance(a, NoteAnnotation)]
    assert {(n.kind, n.text) for n in notes if n.target == "X3"} == {
        ("element", "EVENT"), ("modality", "FACTUAL"), ("polarity", "NEG"),
    }  # fmt: skip
    assert ("val", "X4", "1999-07-03") in {(n.kind, n.target, n.text) for n in notes}
    [link] = [a for a in document.annotations if isinstance(a, RelationAnnotation)]
    assert link == RelationAnnotation("TL0", "BEFORE", (("fromID", "X2"), ("toID", "X0")))


def test_files_that_are_not_well_formed() -> None:
    for broken in ("Chest pain & fever", 'Chest "pain" & <fever'):
        text = NOTE.replace("Chest pain & fever", broken)
        xml = make_xml(NOTE, 1).replace(NOTE, text).replace("Chest pain &amp; fever", broken)
        if len(broken) > len("Chest pain & fever"):
            # Two characters longer: the offsets behind it move.
            shift = len(broken) - len("Chest pain & fever")
            start = NOTE.index("saline") + 1
            xml = xml.replace(f'start="{start}" end="{start + 6}"',
                              f'start="{start + shift}" end="{start + shift + 6}"')  # fmt: skip
            start = NOTE.index("Chest") + 1
            xml = xml.replace(f'start="{start}" end="{start + 18}"',
                              f'start="{start}" end="{start + 18 + shift}"')  # fmt: skip
        document = parse_i2b2_2012(xml, "1", "1.xml")
        assert covered(document) == [*WANTED[:2], broken, *WANTED[3:]]
        assert len([a for a in document.annotations if isinstance(a, RelationAnnotation)]) == 1


def test_one_tag_that_counts_in_another_way() -> None:
    xml = make_xml(NOTE, 1)
    start = NOTE.index("saline") + 1
    moved = xml.replace(f'"{start}" end="{start + 6}"', f'"{start - 1}" end="{start + 5}"')
    document = parse_i2b2_2012(moved, "1", "1.xml")
    assert moved != xml and covered(document) == WANTED
    # A text that is nowhere near is left at its offsets, and counted as a wrong one.
    document = parse_i2b2_2012(xml.replace('text="saline"', 'text="water"'), "1", "1.xml")
    assert covered(document) == WANTED and spans_of(document)[3].surface == "water"


def test_malformed_files() -> None:
    rows = [
        ("<![CDATA[", "", r"1.xml: no <TEXT><!\[CDATA"),
        ('start="1" ', "", r"1.xml, line 7: <EVENT> has no start and end"),
        ('start="1" ', 'start="²" ', r"1.xml, line 7: <EVENT> has no start and end"),
        ('toID="X0" ', "", r"1.xml, line 12: <TLINK> has no fromID or no toID"),
        ('end="10" text="Admission"', 'end="999" text="Admission"', r"1.xml, line 7: an offset"),
        ("<TAGS>", "<!ENTITY x 'y'><TAGS>", r"1.xml: defines XML entities"),
        ('id="X0" start', "id=X0 & start", r"1.xml, line 7: malformed XML, and not like <EVENT"),
    ]
    wrong: list[object] = []
    for old, new, message in rows:
        xml = make_xml(NOTE, 1)
        assert old in xml
        found = error_of(parse_i2b2_2012, xml.replace(old, new), "1", "1.xml")
        if is_wrong(found, message, "saline", "Chest"):
            wrong.append((old, new, found))
    xml = make_xml(NOTE, 1)
    found = error_of(parse_i2b2_2012, xml[: xml.index("<TAGS>")] + "&", "1", "1.xml")
    assert not is_wrong(found, "malformed XML|no tag", "saline", "Chest")
    assert not wrong


def test_a_changed_text() -> None:
    with pytest.raises(BioclinError, match=r"1.xml, line 7: no tag has the text that is at its"):
        parse_i2b2_2012(make_xml(NOTE, 7), "1", "1.xml")


def test_a_folder(tmp_path: Path) -> None:
    for name, shift in (("1", 0), ("2", 1)):
        (tmp_path / f"{name}.xml").write_text(make_xml(f"\n{NOTE}\n", shift), "utf-8")
        (tmp_path / f"{name}.xml.tlink").write_text("", "utf-8")
    assert read_i2b2_2012(tmp_path / "1.xml")[0].id == "1"
    convert_to_docs(
        "i2b2-2012",
        [tmp_path],
        tmp_path / "x.spacy",
        lang="en",
        layers={"PROBLEM": "ents", "TREATMENT": "ents", "OCCURRENCE": "ents", "*": None},
        relations=["BEFORE"],
    )
    for doc in read_docs(tmp_path / "x.spacy", make_nlp("en").vocab):
        assert [ent.text for ent in doc.ents] == ["Admission", "Chest pain & fever", "saline"]
