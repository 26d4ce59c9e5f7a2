"""Rows of NOTE_NLP, worked out by hand, and loaded into tables with the CDM's columns."""

import sqlite3
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
import spacy

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.docs import set_codes
from spacy_bioclin.linking.references import Code
from spacy_bioclin.runner.standards.mapping import (
    CodeSettings,
    ConceptMap,
    Namespaces,
    Target,
)
from spacy_bioclin.runner.standards.omop import NoteNlpRow, OmopSettings, to_note_nlp

from .notes import make_doc

MOMENT = datetime(2026, 11, 25, 9, 30)
CONCEPTS = ConceptMap(
    {
        ("HP", "HP:0001945"): [Target(437663, 0)],
        ("MESH", "D006973"): [Target(320128, 45618364)],
        ("ward", "B"): [Target(1, 0), Target(2, 0)],
        ("LOINC", "11348-0"): [Target(3000001, 3000001)],
    }
)
# NOTE_NLP of the CDM 5.4, and of the tables that it refers to the columns that are referred to.
DDL = """
CREATE TABLE concept (concept_id integer NOT NULL PRIMARY KEY);
CREATE TABLE note (note_id integer NOT NULL PRIMARY KEY);
CREATE TABLE note_nlp (
    note_nlp_id integer NOT NULL PRIMARY KEY,
    note_id integer NOT NULL REFERENCES note (note_id),
    section_concept_id integer NULL REFERENCES concept (concept_id),
    snippet varchar(250) NULL CHECK (length(snippet) <= 250),
    "offset" varchar(50) NULL CHECK (length("offset") <= 50),
    lexical_variant varchar(250) NOT NULL CHECK (length(lexical_variant) <= 250),
    note_nlp_concept_id integer NULL REFERENCES concept (concept_id),
    note_nlp_source_concept_id integer NULL REFERENCES concept (concept_id),
    nlp_system varchar(250) NULL CHECK (length(nlp_system) <= 250),
    nlp_date date NOT NULL,
    nlp_datetime timestamp NULL,
    term_exists varchar(1) NULL CHECK (length(term_exists) <= 1),
    term_temporal varchar(50) NULL CHECK (length(term_temporal) <= 50),
    term_modifiers varchar(2000) NULL CHECK (length(term_modifiers) <= 2000)
);
"""


def make_settings(**changes: Any) -> OmopSettings:
    return OmopSettings(nlp_system="demo 1.0", nlp_datetime=MOMENT, **changes)


def test_the_codes_of_a_concept_find_its_concept_in_the_table() -> None:
    doc = make_doc("HTA", [("HTA", "DISEASE", "DOID:10763", [])])
    codes = [("ICD10CM", "I10", "exact"), ("MESH", "D006973", "exact"), ("HP", "1", "several")]
    set_codes(doc.ents[0], [Code("DOID:10763", *code) for code in codes])
    [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=make_settings(), concepts=CONCEPTS)
    assert row.note_nlp_concept_id == 320128 and row.term_modifiers is not None
    assert row.term_modifiers.endswith(",Codes=ICD10CM:I10 MESH:D006973")


def load(rows: list[NoteNlpRow], concept_ids: tuple[int, ...]) -> sqlite3.Connection:
    """Load rows into the tables of the CDM; a row that does not fit is an error."""
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(DDL)
    database.executemany("INSERT INTO concept VALUES (?)", [(each,) for each in concept_ids])
    database.executemany("INSERT INTO note VALUES (?)", {(row.note_id,) for row in rows})
    values = [
        tuple(str(each) if isinstance(each, date) else each for each in row)  # a datetime is a date
        for row in rows
    ]
    database.executemany(f"INSERT INTO note_nlp VALUES ({','.join('?' * 14)})", values)
    return database


def test_the_columns_are_those_of_the_cdm_in_their_order() -> None:
    columns = [row[1] for row in load([], ()).execute("PRAGMA table_info(note_nlp)")]
    assert list(NoteNlpRow._fields) == columns


def test_a_note_by_hand() -> None:
    doc = make_doc(
        "😀 AP: HTA EA: Niega fiebre , TEP y asma",
        [
            ("HTA", "DISEASE", "MESH:D006973", ["historical"]),
            ("fiebre", "SYMPTOM", "HP:0001945", ["negated"]),
            ("TEP", "DISEASE", "", ["uncertain"]),
            ("asma", "DISEASE", "DOID:2841", ["family", "hypothetical"]),
        ],
        sections=[("past_history", "11348-0", "AP:"), ("present_illness", "10164-2", "EA:")],
    )
    before = doc.to_bytes()
    counts: Counter[str] = Counter()
    rows = to_note_nlp(
        doc,
        note_id=7,
        first_id=100,
        settings=make_settings(),
        concepts=CONCEPTS,
        counts=counts,
    )
    past, ill = "Section=past_history", "Section=present_illness"
    # Offsets count code points: the emoji is one.
    assert [row[:8] for row in rows] == [
        (100, 7, 3000001, None, "6", "HTA", 320128, 45618364),
        (101, 7, 0, None, "20", "fiebre", 437663, 0),
        (102, 7, 0, None, "29", "TEP", 0, 0),
        (103, 7, 0, None, "35", "asma", 0, 0),
    ]
    assert {row[8:11] for row in rows} == {("demo 1.0", date(2026, 11, 25), MOMENT)}
    assert [row[11:] for row in rows] == [
        ("Y", "past", f"History=true,Label=DISEASE,Code=MESH:D006973,{past}"),
        ("N", "present", f"Negation=true,Label=SYMPTOM,Code=HP:0001945,{ill}"),
        ("Y", "present", f"Uncertain=true,Label=DISEASE,{ill}"),
        ("N", None, f"Subject=family,Conditional=true,Label=DISEASE,Code=DOID:2841,{ill}"),
    ]
    assert counts == {
        "rows": 4,
        "mentions without an id": 1,
        "mentions whose id is not in the table of concepts": 1,
        "rows without a concept": 2,
        "rows without the concept of their section": 3,
    }
    assert doc.to_bytes() == before
    database = load(rows, (0, 320128, 45618364, 437663, 3000001))
    asked = "SELECT lexical_variant FROM note_nlp WHERE term_exists = 'Y' ORDER BY note_nlp_id"
    assert database.execute(asked).fetchall() == [("HTA",), ("TEP",)]


def test_only_what_the_patient_has_exists() -> None:
    for attribute, exists in (
        *(("family", "N"), ("negated", "N"), ("hypothetical", "N")),
        *(("uncertain", "Y"), ("historical", "Y")),
    ):
        doc = make_doc("asma", [("asma", "DISEASE", "", [attribute])])
        settings: dict[str, Any] = {"settings": make_settings(), "concepts": CONCEPTS}
        (row,) = to_note_nlp(doc, note_id=7, first_id=1, counts=Counter(), **settings)
        assert row.term_exists == exists, attribute


def test_overlapping_and_composite_mentions_and_those_of_several_concepts() -> None:
    doc = make_doc(
        "infarto agudo de miocardio",
        [
            ("infarto agudo", "DISEASE", "WARD:B", []),
            ("infarto agudo de miocardio", "DISEASE", "HP:0001945|MESH:D006973", []),
            ("infarto agudo", "DISEASE", "WARD:B", []),
            ("miocardio", "ANATOMY", "", []),
        ],
        spans_key="sc",
    )
    counts: Counter[str] = Counter()
    rows = to_note_nlp(
        doc,
        note_id=1,
        first_id=1,
        settings=make_settings(spans_key="sc", labels=["DISEASE"]),
        concepts=CONCEPTS,
        counts=counts,
    )
    found = [(row.note_nlp_id, row.lexical_variant, row.note_nlp_concept_id) for row in rows]
    assert found == [
        (1, "infarto agudo", 1),
        (2, "infarto agudo", 2),
        (3, "infarto agudo de miocardio", 437663),
        (4, "infarto agudo de miocardio", 320128),
    ]
    expected = {"rows": 4, "mentions found twice": 1, "left out, label ANATOMY": 1}
    assert counts == expected


def test_without_components_nothing_is_claimed() -> None:
    doc = make_doc("Niega fiebre", [("fiebre", "SYMPTOM", "", [])], with_context=False)
    counts: Counter[str] = Counter()
    [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=make_settings(), counts=counts)
    assert row.section_concept_id is row.term_exists is row.term_temporal is None
    assert row.term_modifiers == "Label=SYMPTOM"
    assert counts["notes without context"] == 1
    assert load([row], (0,)).execute("SELECT count(*) FROM note_nlp").fetchone() == (1,)


def test_a_note_without_the_layer_is_counted() -> None:
    doc = spacy.blank("es")("Niega fiebre")
    for spans_key in (None, "sc"):
        counts: Counter[str] = Counter()
        settings = make_settings(spans_key=spans_key)
        assert to_note_nlp(doc, note_id=1, first_id=1, settings=settings, counts=counts) == []
        assert counts["notes without the layer of mentions"] == 1
    empty = spacy.blank("es")("")
    assert to_note_nlp(empty, note_id=1, first_id=1, settings=make_settings()) == []


def test_what_is_longer_than_its_column_is_cut_and_counted() -> None:
    words, label = "ñ" * 260, "L" * 2100
    doc = make_doc(f"{words} y fin", [(words, label, "", [])])
    counts: Counter[str] = Counter()
    settings = make_settings(snippet=True)
    [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=settings, counts=counts)
    assert row.lexical_variant == row.snippet == "ñ" * 250
    assert row.term_modifiers == "Label=" + "L" * 1994
    assert counts["lexical_variant cut to 250 characters"] == 1
    assert counts["snippet cut to 250 characters"] == 1
    assert counts["term_modifiers cut to 2000 characters"] == 1
    load([row], (0,))


def test_a_snippet_has_the_mention_and_as_much_as_fits() -> None:
    for before, after in ((0, 0), (0, 90), (90, 0), (90, 90), (3, 90)):
        text = "abc " * before + "fiebre " + "xyz " * after
        doc = make_doc(text.strip(), [("fiebre", "SYMPTOM", "", [])])
        settings = make_settings(snippet=True)
        [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=settings)
        assert row.snippet is not None and "fiebre" in row.snippet and row.snippet in doc.text
        assert len(row.snippet) == min(250, len(doc.text))
        [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=make_settings())
        assert row.snippet is None


def test_sections_may_have_concepts_of_their_own_and_modifiers_are_quoted() -> None:
    doc = make_doc(
        "AP: HTA",
        [("HTA", "A,B=50%", "", [])],
        sections=[("past_history", "11348-0", "AP:")],
    )
    settings = make_settings(sections={"past_history": 5})
    [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=settings, concepts=CONCEPTS)
    assert row.section_concept_id == 5
    assert row.term_modifiers == "Label=A%2CB%3D50%25,Section=past_history"


def test_a_section_without_any_code_is_concept_0() -> None:
    doc = make_doc("JC: HTA", [("HTA", "DISEASE", "", [])], sections=[("diagnosis", "", "JC:")])
    [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=make_settings(), concepts=CONCEPTS)
    assert row.section_concept_id == 0


def test_values_and_probabilities_are_modifiers() -> None:
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_measurements")
    doc = nlp("PCR < 0,5 mg/dL")
    doc.spans["sc"] = [doc[:]]
    doc.spans["sc"].attrs["scores"] = [0.98765]
    [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=make_settings(spans_key="sc"))
    assert row.term_modifiers == "Value=0.5,Comparator=<,Unit=mg/dL,Probability=0.9877"


def test_a_time_zone_is_changed_to_utc() -> None:
    doc = make_doc("fiebre", [("fiebre", "SYMPTOM", "", [])])
    moment = datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    settings = OmopSettings(nlp_system="demo", nlp_datetime=moment)
    [row] = to_note_nlp(doc, note_id=1, first_id=1, settings=settings)
    assert (row.nlp_date, row.nlp_datetime) == (date(2025, 12, 31), datetime(2025, 12, 31, 23, 30))


def test_an_id_that_its_column_does_not_hold_is_an_error() -> None:
    doc = make_doc("fiebre , tos", [("fiebre", "SYMPTOM", "", []), ("tos", "SYMPTOM", "", [])])
    last = 2**31 - 1
    to_note_nlp(doc, note_id=last, first_id=last - 1, settings=make_settings())
    with pytest.raises(BioclinError, match="note_nlp_id = 2147483648: the column holds at most"):
        to_note_nlp(doc, note_id=1, first_id=last, settings=make_settings())
    with pytest.raises(BioclinError, match=r"note_id = 2147483648: .* set bigint = true"):
        to_note_nlp(doc, note_id=last + 1, first_id=1, settings=make_settings())
    to_note_nlp(doc, note_id=last + 1, first_id=last, settings=make_settings(bigint=True))


def test_loinc_codes_are_found_under_any_name_of_loinc() -> None:
    assert CONCEPTS.find(Namespaces(CodeSettings()).normalize("lnc", "11348-0"))
