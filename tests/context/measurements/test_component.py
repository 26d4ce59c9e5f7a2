"""`bioclin_measurements`: spans, attributes and how long they live."""

import json
import pickle
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_bioclin.cli.run.annotate import to_record
from spacy_bioclin.context.measurements.measurement import KINDS
from spacy_bioclin.errors import BioclinError

OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
TEXT = (
    "Varón de 65 años. TA 120/80. Lesión de 3 x 4 cm. Hb < 11,5 g/dl el 12/03/2014. "
    "Paracetamol 500 mg/8 h vo 3 días."
)


def make_nlp(lang: str = "es", blank: bool = False, **config: object) -> Language:
    nlp = spacy.blank(lang, config={} if blank else OURS)
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_measurements", config=config)
    return nlp


def values(doc: Doc, key: str = "measurements") -> list[Any]:
    return [(span.text, span.label_, span._.measurement) for span in doc.spans[key]]


@pytest.fixture(scope="module")
def nlp() -> Language:
    return make_nlp()


@pytest.fixture
def doc(nlp: Language) -> Doc:
    return nlp(TEXT)


def test_spans_and_values(doc: Doc) -> None:
    spans = {span.text: span._.measurement for span in doc.spans["measurements"]}
    assert [span.label_ for span in doc.spans["measurements"]] == [
        each.kind for each in doc._.measurements
    ]
    assert spans["3 x 4 cm"].value == (3.0, 4.0)
    assert spans["120/80"][:5] == ("blood_pressure", 120.0, 80.0, None, "mm[Hg]")
    assert spans["< 11,5 g/dl"].comparator == "<" and spans["12/03/2014"].value == "2014-03-12"
    assert spans["3 días"].iso_duration == "P3D" and spans["65 años"].iso_duration == "P65Y"
    assert {span.label_ for span in doc.spans["measurements"]} <= set(KINDS)
    for one in doc._.measurements:
        assert TEXT[one.start_char : one.end_char] in spans


def test_other_spans_are_no_measurements(doc: Doc) -> None:
    assert doc[0:2]._.measurement is None
    assert Span(doc, 0, 1, "date")._.measurement is None


def test_what_survives() -> None:
    nlp = make_nlp("en")
    doc = nlp(TEXT)
    docs = DocBin(docs=[doc], store_user_data=False)
    vocab = spacy.blank("xx").vocab
    again = [
        next(docs.get_docs(vocab)),
        Doc(vocab).from_bytes(doc.to_bytes()),
        doc.copy(),
        pickle.loads(pickle.dumps(nlp))(TEXT),  # as it goes to another process
    ]
    for one in again:
        assert values(one) == values(doc) and one._.measurements == doc._.measurements


def test_a_changed_group_is_read_again(doc: Doc) -> None:
    before = values(doc)
    doc.spans["measurements"] = list(doc.spans["measurements"])[1:]
    assert values(doc) == before[1:]


def test_to_disk(tmp_path: Path) -> None:
    nlp = make_nlp(units={"uds antitóxicas": "[IU]"}, spans_key="values")
    nlp.to_disk(tmp_path / "pipeline")
    doc = spacy.load(tmp_path / "pipeline")("3 uds antitóxicas")
    assert [span._.measurement.unit for span in doc.spans["values"]] == ["[IU]"]


def test_deidentified_doc() -> None:
    nlp = spacy.blank("es", config=OURS)
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_measurements", config={"units": {"uds antitóxicas": "[IU]"}})
    nlp.add_pipe("bioclin_phi_rules")
    nlp.add_pipe("bioclin_deid", config={"policy": {"default": "mask"}})
    nlp.get_pipe("bioclin_deid").key = b"a key for the tests, no more than that"  # type: ignore[attr-defined]
    doc = nlp("Acude el 12/03/2014. Hb 11,5 g/dl y 3 uds antitóxicas. TA 120/80.")
    safe = doc._.deid.doc
    assert "12/03/2014" not in safe.text and "2014-03-12" not in repr(safe.to_dict())
    found = [span._.measurement for span in safe.spans["measurements"]]
    units = [one.unit for one in found if one is not None]
    assert units == ["g/dL", "[IU]", "mm[Hg]"]
    for one in filter(None, found):
        assert 0 <= one.start_char < one.end_char <= len(safe.text)


def test_tokens_that_hold_two_measurements() -> None:
    doc = make_nlp(blank=True)("amoxicilina 500mg/8h.")
    spans = list(doc.spans["measurements"])
    assert {span.text for span in spans} == {"500mg/8h"} or len({s.text for s in spans}) == 2
    found = [doc.text[one.start_char : one.end_char] for one in doc._.measurements]
    assert found == ["500mg", "/8h"]
    assert [span._.measurement.kind for span in spans] == ["quantity", "frequency"]


def test_relative_dates(nlp: Language) -> None:
    doc = make_nlp(note_date="2024-03-05")(
        "Ayer fiebre. Operado hace 3 días, hace más de un año y hace 2 meses."
    )
    dates = [one for one in doc._.measurements if one.kind == "date"]
    assert [(one.value, one.comparator) for one in dates] == [
        ("2024-03-04", None),
        ("2024-03-02", None),
        ("2023", "<"),
        ("2024-01", None),
    ]
    assert sum(one.kind == "duration" for one in doc._.measurements) == 3
    assert not any(one.kind == "date" for one in nlp(doc.text)._.measurements)
    given = nlp.make_doc("hace 3 días")
    given._.note_date = date(2020, 1, 2)
    assert nlp(given)._.measurements[0].value == "2019-12-30"


def test_english_relative_dates() -> None:
    doc = make_nlp("en", note_date="2024-03-05")("Seen yesterday, operated 2 weeks ago.")
    dates = [one.value for one in doc._.measurements if one.kind == "date"]
    assert dates == ["2024-03-04", "2024-02-20"]


def test_bad_note_date_does_not_show_it(nlp: Language) -> None:
    doc = nlp.make_doc("hace 3 días")
    doc._.note_date = "Ana Ruiz"
    with pytest.raises(BioclinError, match="note_date is not a date") as error:
        nlp(doc)
    assert "Ana" not in str(error.value)


def test_bad_settings() -> None:
    settings: list[tuple[dict[str, Any], str]] = [
        ({"langs": ["it"]}, "language 'it'.* langs .*es, en"),
        ({"langs": []}, "language"),
        ({"units": {"uds": "5 mg"}}, r"units.uds = '5 mg'.*UCUM"),
        ({"units": {"a=b": "mg"}}, "'a=b' is not a unit"),
        ({"note_date": "5 de mayo"}, "note_date = '5 de mayo' is not a date"),
        ({"spans_key": 3}, "spans_key"),
    ]
    for config, message in settings:
        with pytest.raises((BioclinError, ValueError), match=message):
            make_nlp(**config)


def test_another_language() -> None:
    nlp = spacy.blank("it")
    with pytest.raises(BioclinError, match="no rules for the language 'it'"):
        nlp.add_pipe("bioclin_measurements")
    nlp.add_pipe("bioclin_measurements", config={"langs": ["es", "en"]})
    doc = nlp("1.200 mg cada 8 horas, two weeks, twice a day")
    assert [one.value for one in doc._.measurements] == [1200.0, 3.0, 2.0, 2.0]


def test_records_of_the_command(nlp: Language, doc: Doc) -> None:
    record = to_record(doc, "1")
    found = json.loads(json.dumps(record))["measurements"]
    assert [one["text"] for one in found] == [span.text for span in doc.spans["measurements"]]
    size = next(one for one in found if one["kind"] == "size")
    assert (size["value"], size["unit"]) == ([3.0, 4.0], "cm")
    assert to_record(nlp(""), "2")["measurements"] == []
    assert "measurements" not in to_record(spacy.blank("es")("5 mg"), "3")


def test_it_does_not_change_other_things(nlp: Language, doc: Doc) -> None:
    assert doc.text == TEXT and not doc.ents and list(doc.spans) == ["measurements"]
    assert values(nlp(doc)) == values(nlp(TEXT))  # run twice
    assert nlp("").spans["measurements"].attrs["measurements"] == []
