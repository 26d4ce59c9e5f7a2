"""`doc._.results`: names with values, units, flags, reference ranges and dates."""

from typing import Any

import pytest
from spacy.tokens import Span

from spacy_bioclin.context.measurements.results.doc import get_name_span, is_vital
from spacy_bioclin.context.measurements.results.result import Result

from .test_component import make_nlp

NLP = {lang: make_nlp(lang) for lang in ("es", "en")}


def find(lang: str, text: str) -> tuple[Result, ...]:
    found: tuple[Result, ...] = NLP[lang](text)._.results
    for one in found:
        assert one.name == text[one.name_start : one.name_end] or one.name == "TNM"
        assert 0 <= one.start_char < one.end_char <= len(text)
    return found


def brief(lang: str, text: str) -> list[tuple[Any, ...]]:
    """Name, value, second number and unit."""
    return [(one.name, one.value, one.high, one.unit) for one in find(lang, text)]


@pytest.mark.parametrize(
    ("lang", "text", "want"),
    [
        (
            "es",
            "PA 126/74 FC 91 FR 19 Sat 95% Tª 36,9",
            [
                ("PA", 126, 74, "mm[Hg]"),
                ("FC", 91, None, "/min"),
                ("FR", 19, None, "/min"),
                ("Sat", 95, None, "%"),
                ("Tª", 36.9, None, "Cel"),
            ],
        ),
        ("en", "T 99.1 HR 77", [("T", 99.1, None, "[degF]"), ("HR", 77, None, "/min")]),
        ("es", "Glucemia 21h: 187", [("Glucemia", 187, None, None)]),
        (
            "es",
            "Cloro 104, K 4,4 Mg 2,1",
            [("Cloro", 104, None, None), ("K", 4.4, None, None), ("Mg", 2.1, None, None)],
        ),
        ("en", "Na/K 141/3.9", [("Na", 141, None, None), ("K", 3.9, None, None)]),
        ("en", "Creatinine (mg/dL): 0.7", [("Creatinine", 0.7, None, "mg/dL")]),
        (
            "en",
            "Lactate 6.2 -> 3.0 mmol/L",
            [("Lactate", 6.2, None, "mmol/L"), ("Lactate", 3.0, None, "mmol/L")],
        ),
        ("es", "Urea 90 (previa 60)", [("Urea", 90, None, None), ("Urea", 60, None, None)]),
        ("en", "LVEF 40-45%", [("LVEF", 40, 45, "%")]),
        (
            "es",
            "NYHA II. pT2 N0 M0. Apgar 7/9.",
            [
                ("NYHA", "II", None, None),
                ("TNM", "pT2N0M0", None, None),
                ("Apgar", (7, 9), None, None),
            ],
        ),
        (
            "en",
            "Urine culture negative, flu A +",
            [("Urine culture", "negative", None, None), ("flu A", "positive", None, None)],
        ),
        # no results: wishes, doses, times, devices
        ("es", "Avisar si FC > 130 o TAS < 85. Objetivo INR 2,5.", []),
        ("en", "Recheck K in 2/7, Foley 14 Fr, give 3 g of Mg.", []),
        ("es", "K 2,9 --> 20 mEq de ClK", [("K", 2.9, None, None)]),
    ],
)
def test_names_and_values(lang: str, text: str, want: list[tuple[Any, ...]]) -> None:
    assert brief(lang, text) == want


def test_reference_flag_date_and_maximum() -> None:
    one, two, three, four = find(
        "es",
        "Sodio 129 mmol/L (135-145) L; LDH 410 * U/L VN: <250; EVA 6/10; PSA 3,9 (04/03/2021)",
    )
    assert (one.low_limit, one.high_limit, one.flag) == (135, 145, "L")
    assert (two.unit, two.flag, two.low_limit, two.high_limit) == ("U/L", "A", None, 250)
    assert (three.value, three.out_of) == (6, 10)
    assert four.date == "2021-03-04"


def test_tables() -> None:
    by_date = find("en", "          01/02/2024  01/09/2024\nALT       61          33\n")
    assert [(one.value, one.date) for one in by_date] == [(61, "2024-01-02"), (33, "2024-01-09")]
    by_name = find("es", "Hora\tTA\tFC\n09:00\t131/70\t66\n")
    assert [(one.name, one.value, one.high) for one in by_name] == [
        ("TA", 131, 70),
        ("FC", 66, None),
    ]
    [row] = find("es", "| Urato | 8,1 | mg/dL | 2,4-5,7 | H |")
    assert row[2:6] == (8.1, None, None, "mg/dL")
    assert (row.low_limit, row.high_limit, row.flag) == (2.4, 5.7, "H")


def test_entities_and_context() -> None:
    nlp = NLP["en"]
    text = "Zonulin 48. Vit D 5000 daily."
    assert [one.name for one in nlp(text)._.results] == ["Vit D"]
    doc = nlp.make_doc(text)
    doc.ents = [doc.char_span(0, 7, label="TEST"), doc.char_span(12, 17, label="DRUG")]
    [one] = nlp(doc)._.results
    assert one[:3] == ("Zonulin", "quantity", 48)
    assert not is_vital(doc, one) and get_name_span(doc, one) == Span(doc, 0, 1)
    context = make_nlp("en")
    context.add_pipe("bioclin_context")
    assert context("Mother with A1c of 9.4%.")._.results == ()


def test_a_doc_that_the_component_has_not_seen() -> None:
    assert NLP["es"].make_doc("Hb 12")._.results == ()
