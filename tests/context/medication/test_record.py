"""`ent._.medication`: orders of drugs as notes write them."""

import json
from functools import cache
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_bioclin.cli.run.annotate import to_record
from spacy_bioclin.context.medication.words import ACTIONS, get_words
from spacy_bioclin.errors import BioclinError

OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}


@cache
def make_nlp(lang: str) -> Language:
    nlp = spacy.blank(lang, config=OURS)
    for name in ("bioclin_sentences", "bioclin_sections", "bioclin_context"):
        nlp.add_pipe(name)
    nlp.add_pipe("bioclin_measurements")
    return nlp


def annotate(lang: str, text: str, *drugs: str, label: str = "DRUG") -> Doc:
    doc = make_nlp(lang)(text)
    places = [(text.index(drug), text.index(drug) + len(drug)) for drug in drugs]
    doc.set_ents([doc.char_span(*place, label=label) for place in places])
    return doc


def read(lang: str, text: str, *drugs: str, label: str = "DRUG") -> list[dict[str, Any]]:
    """What is said of each drug, with measurements as text: "500 mg", "3 d"."""
    doc = annotate(lang, text, *drugs, label=label)
    found = [ent._.medication.to_dict() for ent in doc.ents]
    for each in found:
        for name in ("dose", "amount", "frequency", "duration"):
            if name in each:
                one = each[name]
                each[name] = f"{one['value']:g} {one.get('unit', '')}".strip()
        if "when" in each:
            each["when"] = [
                f"{one['code']} {one['amount']:g}" if "amount" in one else one["code"]
                for one in each["when"]
            ]
    return found


ORDERS: list[tuple[str, str, list[str], list[dict[str, Any]]]] = [
    (
        "es",
        "Cefuroxima 500 mg c/12h vo 8 días, dexketoprofeno 25 mg/8 h. Omeprazol 20 mg.",
        ["Cefuroxima", "dexketoprofeno"],
        [
            {"dose": "500 mg", "frequency": "2 d", "route": "oral", "duration": "8 d"},
            {"dose": "25 mg", "frequency": "3 d"},
        ],
    ),
    (
        "en",
        "Started on 250 mg of cefuroxime PO BID for ten days.",
        ["cefuroxime"],
        [
            {
                "dose": "250 mg",
                "frequency": "2 d",
                "route": "oral",
                "duration": "10 d",
                "action": "start",
            }
        ],
    ),
    (
        "es",
        "Colirio de latanoprost 1 gota por la noche y 2 inhalaciones de budesonida cada 12 horas.",
        ["latanoprost", "budesonida"],
        [
            {
                "form": "drops",
                "route": "ophthalmic",
                "dose": "1 [drp]",
                "when": ["NIGHT"],
                "frequency": "1 d",
            },
            {"dose": "2 {puff}", "route": "inhaled", "frequency": "2 d"},
        ],
    ),
    (
        "en",
        "torsemide 20 bid, apixaban 5 BD, rosuvastatin 10 nocte",
        ["torsemide", "apixaban", "rosuvastatin"],
        [
            {"dose": "20", "frequency": "2 d"},
            {"dose": "5", "frequency": "2 d"},
            {"dose": "10", "when": ["NIGHT"], "frequency": "1 d"},
        ],
    ),
    (
        "es",
        "Dexketoprofeno 25 mg cada 8 horas si cefalea, máximo 3 al día",
        ["Dexketoprofeno"],
        [{"dose": "25 mg", "frequency": "3 d", "as_needed": True, "reason": "cefalea"}],
    ),
    (
        "es",
        "En caso de náuseas, ondansetrón 4 mg",
        ["ondansetrón"],
        [{"dose": "4 mg", "as_needed": True, "reason": "náuseas"}],
    ),
    (
        "en",
        "Hydroxyzine 25 mg q8h PRN itching",
        ["Hydroxyzine"],
        [{"dose": "25 mg", "frequency": "3 d", "as_needed": True, "reason": "itching"}],
    ),
    (
        "es",
        "Acenocumarol: medio al desayuno y 1 a la cena",
        ["Acenocumarol"],
        [{"when": ["CM 0.5", "CV 1"], "frequency": "2 d"}],
    ),
    (
        "es",
        "Torasemida 10 mg 1-1/2-0, insulina mixta 20-0-14 UI",
        ["Torasemida", "insulina mixta"],
        [
            {"dose": "10 mg", "when": ["MORN 1", "NOON 0.5"], "frequency": "2 d"},
            {"when": ["MORN 20", "EVE 14"], "frequency": "2 d"},
        ],
    ),
    (
        "en",
        "Glipizide 5 mg before breakfast, calcium 500 mg with meals",
        ["Glipizide", "calcium"],
        [
            {"dose": "5 mg", "when": ["ACM"], "frequency": "1 d"},
            {"dose": "500 mg", "when": ["C"]},
        ],
    ),
    (
        "en",
        "Ibuprofen 400 mg tablets, 2 tabs every 8 hours for ankle pain",
        ["Ibuprofen"],
        [
            {
                "dose": "400 mg",
                "amount": "2 {tablet}",
                "form": "tablet",
                "frequency": "3 d",
                "reason": "ankle pain",
            }
        ],
    ),
    (
        "es",
        "Prednisona 40 mg 4 días, 20 mg 4 días, 10 mg 4 días",
        ["Prednisona"],
        [{"dose": "40 mg", "duration": "4 d", "taper": True}],
    ),
    (
        "en",
        "Flucloxacillin 500 qds 5/7, fosfomycin 3 g stat",
        ["Flucloxacillin", "fosfomycin"],
        [
            {"dose": "500", "frequency": "4 d", "duration": "5 d"},
            {"dose": "3 g", "frequency": "1", "status": "unknown"},
        ],
    ),
    (
        "es",
        "Suspender glimepirida y pioglitazona. Se inicia empagliflozina 10 mg/día.",
        ["glimepirida", "pioglitazona", "empagliflozina"],
        [
            {"action": "stop", "status": "stopped"},
            {"action": "stop", "status": "stopped"},
            {"action": "start", "dose": "10 mg/d"},
        ],
    ),
    (
        "en",
        "Switched from losartan to sacubitril. Spironolactone held for hyperkalemia.",
        ["losartan", "sacubitril", "Spironolactone"],
        [
            {"action": "stop", "status": "stopped"},
            {"action": "start"},
            {"action": "hold", "status": "held", "reason": "hyperkalemia"},
        ],
    ),
    (
        "es",
        "Subir carvedilol de 6 a 12 mg. No suspender ticagrelor. Retirar litio si temblor.",
        ["carvedilol", "ticagrelor", "litio"],
        [
            {"action": "change", "dose": "12 mg"},
            {"action": "continue"},
            {"status": "unknown"},
        ],
    ),
    (
        "es",
        "Alergias: no conocidas. Toma naproxeno 500 mg",
        ["naproxeno"],
        [{"dose": "500 mg"}],
    ),
    (
        "en",
        "Allergic to cefazolin and codeine. DVT prophylaxis: dalteparin SC.",
        ["cefazolin", "codeine", "dalteparin"],
        [{"status": "allergy"}, {"status": "allergy"}, {"route": "subcutaneous"}],
    ),
    (
        "es",
        "Profilaxis con bemiparina 3500 UI. Respuesta PR a nivolumab. Evitar metamizol.",
        ["bemiparina", "nivolumab", "metamizol"],
        [{"dose": "3500 [IU]"}, {"status": "unknown"}, {"status": "not_taken"}],
    ),
    (
        "es",
        "Metamizol si dolor, clopidogrel 75 comida",
        ["Metamizol", "clopidogrel"],
        [
            {"as_needed": True, "reason": "dolor"},
            {"dose": "75", "when": ["CD"], "frequency": "1 d"},
        ],
    ),
    (
        "en",
        "Warfarin 5 mg qPM (hold if INR >3)",
        ["Warfarin"],
        [{"dose": "5 mg", "when": ["EVE"], "frequency": "1 d"}],
    ),
    (
        "en",
        "Vancomycin d/c'd, cefepime 2 g IV q8h day 3/7. RA: on etanercept.",
        ["Vancomycin", "cefepime", "etanercept"],
        [
            {"action": "stop", "status": "stopped"},
            {"dose": "2 g", "route": "intravenous", "frequency": "3 d", "duration": "7 d"},
            {},
        ],
    ),
    (
        "es",
        "RAM: sulfamidas, yodo. No usa naproxeno.",
        ["sulfamidas", "yodo", "naproxeno"],
        [{"status": "allergy"}, {"status": "allergy"}, {"status": "not_taken"}],
    ),
    (
        "en",
        "on tamsulosin, unable to void x 9 h",
        ["tamsulosin"],
        [{}],
    ),
]


@pytest.mark.parametrize(("lang", "text", "drugs", "wanted"), ORDERS)
def test_orders(lang: str, text: str, drugs: list[str], wanted: list[dict[str, Any]]) -> None:
    assert read(lang, text, *drugs) == [{"status": "taking", **each} for each in wanted]


def test_offsets_and_the_first_of_two_drugs_in_one() -> None:
    text = "Amoxicilina/clavulánico 875/125 mg cada 8 horas."
    [ent] = annotate("es", text, "Amoxicilina/clavulánico", label="CHEMICAL").ents
    dose = ent._.medication.dose
    assert text[dose.start_char : dose.end_char] == "875/125 mg" and dose.value == 875


def test_a_chemical_in_blood_has_no_dose() -> None:
    assert read("es", "sodio 140, potasio 4,2 mEq/L", "sodio", "potasio", label="CHEMICAL") == [
        {"status": "unknown"},
        {"status": "unknown"},
    ]


def test_only_drugs_have_medication_and_a_span_need_not_be_an_entity() -> None:
    doc = annotate("es", "Fiebre 3 días. Paracetamol 1 g.", "Fiebre", label="DISEASE")
    assert doc.ents[0]._.medication is None
    start = doc.text.index("Para")
    assert doc.char_span(start, start + 11, label="DRUG")._.medication.dose.value == 1


def test_medication_needs_sentences() -> None:
    nlp = spacy.blank("es", config=OURS)
    nlp.add_pipe("bioclin_measurements")
    doc = nlp("Paracetamol 1 g.")
    doc.set_ents([Span(doc, 0, 1, "CHEMICAL")])
    with pytest.raises(BioclinError, match="bioclin_sentences"):
        assert doc.ents[0]._.medication


def test_it_is_in_the_records_of_the_command() -> None:
    doc = annotate("es", "Toma ramipril 5 mg si HTA, tos.", "ramipril", "tos")
    drug, _ = json.loads(json.dumps(to_record(doc, "1")))["entities"]
    assert drug["medication"]["dose"] == {"value": 5.0, "unit": "mg"}
    assert (drug["medication"]["status"], drug["medication"]["reason"]) == ("taking", "HTA")


def test_every_language_has_all_words() -> None:
    for langs in (("es",), ("en",), ("es", "en")):
        words = get_words(langs)
        assert set(words.action.groupindex) == set(ACTIONS)
        assert set(words.form_routes.values()) <= set(words.routes.values())
