"""Bundles of FHIR R4B, worked out by hand, and checked with fhir.resources."""

import base64
import copy
import json
from collections import Counter
from typing import Any

import pytest
import spacy

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.docs import set_codes
from spacy_bioclin.linking.references import Code
from spacy_bioclin.runner.standards.fhir import FhirSettings, to_bundle
from spacy_bioclin.runner.standards.fhir_check import check_bundle
from spacy_bioclin.runner.standards.mapping import Namespace
from spacy_bioclin.runner.standards.omop import OmopSettings, to_note_nlp
from spacy_bioclin.settings import read_settings

from .notes import Given, make_doc

VERIFICATION = "http://terminology.hl7.org/CodeSystem/condition-ver-status"
UNKNOWN = {
    "coding": [
        {"system": "http://terminology.hl7.org/CodeSystem/data-absent-reason", "code": "unknown"}
    ]
}


def check(bundle: dict[str, Any]) -> None:
    """Check a Bundle; the test is skipped if fhir.resources is not installed."""
    pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")
    before = copy.deepcopy(bundle)
    check_bundle(json.loads(json.dumps(bundle)))
    check_bundle(bundle)
    assert bundle == before


def convert(
    doc: Any, counts: Counter[str] | None = None, subject: str | None = None, **settings: Any
) -> list[dict[str, Any]]:
    """The resources of a note that are not the note itself."""
    made = FhirSettings(**settings)
    bundle = to_bundle(doc, note_id="n1", settings=made, subject=subject, counts=counts)
    note, *rest = [entry["resource"] for entry in bundle["entry"]]
    assert note["resourceType"] == "DocumentReference"
    return rest


def status_of(resource: dict[str, Any]) -> str:
    [coding] = resource["verificationStatus"]["coding"]
    assert coding["system"] == VERIFICATION
    return str(coding["code"])


def test_codes_of_the_concept_are_codings_too() -> None:
    doc = make_doc("HTA", [("HTA", "DISEASE", "DOID:10763", [])])
    codes = [("ICD10CM", "I10", "exact"), ("MESH", "D1", "several"), ("ICD10", "I10", "broader")]
    rows = [Code("DOID:10763", "DOID", "10763", "exact")]
    rows += [Code("DOID:10763", *code) for code in [*codes, ("WARD", "7", "exact")]]
    set_codes(doc.ents[0], rows)
    [condition] = convert(doc)
    assert [coding["code"] for coding in condition["code"]["coding"]] == [
        "DOID:10763",
        "I10",
        "I10",
    ]
    assert "broader code ICD10:I10" in condition["note"][0]["text"]


def test_a_note_by_hand() -> None:
    doc = make_doc(
        "😀 AP: HTA",
        [("HTA", "DISEASE", "MESH:D006973", ["historical"])],
        sections=[("past_history", "11348-0", "AP:")],
    )
    before = doc.to_bytes()
    counts: Counter[str] = Counter()
    settings = FhirSettings(note_system="urn:hospital:notes")
    bundle = to_bundle(doc, note_id="n1", settings=settings, subject="Patient/17", counts=counts)
    note, condition = (entry["resource"] for entry in bundle["entry"])
    address = bundle["entry"][0]["fullUrl"]
    assert address == f"urn:uuid:{note['id']}"
    assert note == {
        "resourceType": "DocumentReference",
        "id": note["id"],
        "identifier": [{"system": "urn:hospital:notes", "value": "n1"}],
        "status": "current",
        "subject": {"reference": "Patient/17"},
        "content": [
            {
                "attachment": {
                    "contentType": "text/plain; charset=utf-8",
                    "size": 13,  # bytes: 4 of the emoji, and the blank that ends the Doc
                    "language": "es",
                }
            }
        ],
    }
    assert condition == {
        "resourceType": "Condition",
        "id": condition["id"],
        "meta": {
            "security": [
                {
                    "system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue",
                    "code": "AIAST",
                    "display": "Artificial Intelligence asserted",
                }
            ]
        },
        "extension": [
            {
                "url": "http://hl7.org/fhir/StructureDefinition/derivation-reference",
                "extension": [
                    {"url": "reference", "valueReference": {"reference": address}},
                    {"url": "offset", "valueInteger": 6},  # code points
                    {"url": "length", "valueInteger": 3},
                ],
            }
        ],
        "verificationStatus": {"coding": [{"system": VERIFICATION, "code": "confirmed"}]},
        "code": {
            "coding": [{"system": "https://www.nlm.nih.gov/mesh", "code": "D006973"}],
            "text": "HTA",
        },
        "subject": {"reference": "Patient/17"},
        "evidence": [{"detail": [{"reference": address}]}],
        "note": [{"text": "label DISEASE, id MESH:D006973, historical, section past_history"}],
    }
    assert bundle["entry"][1]["request"] == {
        "method": "PUT",
        "url": f"Condition/{condition['id']}",
    }
    assert counts == {"DocumentReference written": 1, "Condition written": 1}
    assert doc.to_bytes() == before
    check(bundle)


def test_the_status_of_a_condition() -> None:
    for kinds, status in (
        ([], "confirmed"),
        (["historical"], "confirmed"),
        (["negated"], "refuted"),
        (["uncertain"], "provisional"),
        (["negated", "uncertain"], "unconfirmed"),
        (["negated", "historical"], "refuted"),
    ):
        doc = make_doc("con TEP", [("TEP", "DISEASE", "", kinds)])
        [condition] = convert(doc)
        assert status_of(condition) == status
        assert "clinicalStatus" not in condition  # a history may go on or be over


def test_other_statuses_can_be_set() -> None:
    mentions: list[Given] = [("TEP", "DISEASE", "", []), ("HTA", "DISEASE", "", ["uncertain"])]
    found = convert(
        make_doc("TEP y HTA", mentions), affirmed="unconfirmed", uncertain="differential"
    )
    assert [status_of(each) for each in found] == ["unconfirmed", "differential"]


def test_a_finding_is_there_or_not() -> None:
    for kinds, value in (
        ([], {"valueBoolean": True}),
        (["negated"], {"valueBoolean": False}),
        (["uncertain"], {"dataAbsentReason": UNKNOWN}),
        (["negated", "uncertain"], {"dataAbsentReason": UNKNOWN}),
    ):
        doc = make_doc("con fiebre", [("fiebre", "SYMPTOM", "HP:0001945", kinds)])
        [observation] = convert(doc)
        assert (observation["resourceType"], observation["status"]) == (
            "Observation",
            "preliminary",
        )
        found = {
            key: each for key, each in observation.items() if "value" in key or "Reason" in key
        }
        assert found == value


def test_whether_a_drug_is_taken() -> None:
    for category, kinds, status in (
        ("home_medication", [], "active"),
        ("home_medication", ["historical"], "completed"),
        ("home_medication", ["uncertain"], "unknown"),
        ("home_medication", ["negated"], "not-taken"),
        ("evolution", [], "unknown"),
        ("evolution", ["negated"], "not-taken"),
    ):
        doc = make_doc(
            "LISTA: enalapril",
            [("enalapril", "DRUG", "", kinds)],
            sections=[(category, "", "LISTA:")],
        )
        [statement] = convert(doc)
        assert statement["status"] == status
        assert statement["medicationCodeableConcept"] == {"text": "enalapril"}


def test_what_is_left_out_is_counted() -> None:
    doc = make_doc(
        "ALERGIAS: penicilina BRCA1 dolor tos asma ictus TEP HTA insulina",
        [
            ("penicilina", "DRUG", "", []),
            ("BRCA1", "GENE", "", []),
            ("dolor", "SYMPTOM", "", ["hypothetical"]),
            ("tos", "SYMPTOM", "", []),
            ("asma", "DISEASE", "", ["family"]),
            ("ictus", "DISEASE", "", ["family", "negated"]),
            ("TEP", "DISEASE", "", ["family", "uncertain"]),
            ("HTA", "DISEASE", "", []),
            ("insulina", "CHEMICAL", "", ["family"]),
        ],
        sections=[("allergies", "48765-2", "ALERGIAS:")],
    )
    counts: Counter[str] = Counter()
    found = convert(doc, counts, resources={"SYMPTOM": None, "CHEMICAL": "MedicationStatement"})
    assert [each["resourceType"] for each in found] == [
        "AllergyIntolerance",
        "FamilyMemberHistory",
        "Condition",
    ]
    assert found[1]["condition"] == [{"code": {"text": "asma"}}]
    assert counts == {
        "left out, family: drug": 1,
        "left out, label GENE": 1,
        "left out, label SYMPTOM": 2,
        "left out, family: negated": 1,
        "left out, family: uncertain": 1,
        "mentions without an id": 3,
        "DocumentReference written": 1,
        "AllergyIntolerance written": 1,
        "FamilyMemberHistory written": 1,
        "Condition written": 1,
    }
    counts.clear()
    convert(doc, counts, allergy_sections=[], family=False)
    assert counts["left out, family: set to be left out"] == 4
    assert counts["left out, hypothetical"] == 1
    assert counts["AllergyIntolerance written"] == 1  # its sentence says so


def test_without_context_nothing_is_claimed() -> None:
    mentions: list[Given] = [
        ("fiebre", "SYMPTOM", "", []),
        ("TEP", "DISEASE", "", []),
        ("enalapril", "DRUG", "", []),
    ]
    doc = make_doc("sin fiebre TEP enalapril", mentions, with_context=False)
    counts: Counter[str] = Counter()
    observation, condition, statement = convert(doc, counts)
    assert observation["dataAbsentReason"] == UNKNOWN
    assert status_of(condition) == "unconfirmed"
    assert statement["status"] == "unknown"
    assert counts["notes without context"] == 1


def test_overlapping_and_composite_mentions_are_resources_of_their_own() -> None:
    doc = make_doc(
        "infarto agudo de miocardio",
        [
            ("infarto agudo", "DISEASE", "", []),
            ("infarto agudo de miocardio", "DISEASE", "SNOMEDCT:1|WARD:2", []),
            ("infarto agudo", "DISEASE", "", []),
            ("infarto agudo", "PROBLEM", "", []),
        ],
        spans_key="sc",
    )
    counts: Counter[str] = Counter()
    settings = FhirSettings(spans_key="sc", bundle="collection")
    bundle = to_bundle(doc, note_id="n1", settings=settings, counts=counts)
    assert "request" not in bundle["entry"][0]
    found = [entry["resource"] for entry in bundle["entry"][1:]]
    assert [each["code"] for each in found] == [
        {"text": "infarto agudo"},
        {"text": "infarto agudo"},
        {
            "coding": [{"system": "http://snomed.info/sct", "code": "1"}],
            "text": "infarto agudo de miocardio",
        },
        {"text": "infarto agudo de miocardio"},
    ]
    assert counts["mentions found twice"] == 1
    assert counts["ids of a terminology without a system"] == 1
    assert len({each["id"] for each in found}) == 4
    check(bundle)
    own = {"WARD": Namespace(system="urn:ward")}
    last = convert(doc, spans_key="sc", namespaces=own)[-1]
    assert last["code"]["coding"] == [{"system": "urn:ward", "code": "2"}]


def test_ids_are_those_of_the_note_and_the_place() -> None:
    doc = make_doc("con TEP", [("TEP", "DISEASE", "", [])])
    linked = make_doc("con TEP", [("TEP", "DISEASE", "DOID:9477", ["negated"])])
    settings, system = FhirSettings(), FhirSettings(note_system="urn:other")

    def ids(bundle: dict[str, Any]) -> list[str]:
        return [bundle["id"], *(entry["resource"]["id"] for entry in bundle["entry"])]

    first = ids(to_bundle(doc, note_id="n1", settings=settings))
    assert ids(to_bundle(linked, note_id="n1", settings=settings)) == first
    others = [
        first,
        ids(to_bundle(doc, note_id="n2", settings=settings)),
        ids(to_bundle(doc, note_id="n1", settings=system)),
    ]
    assert len({each for some in others for each in some}) == 9


def test_words_of_the_note_are_only_where_they_are_wanted() -> None:
    doc = make_doc(
        "secreto HTA rara", [("HTA rara", "DISEASE", "", []), ("secreto", "DISEASE", "DOID:1", [])]
    )
    counts: Counter[str] = Counter()
    settings = FhirSettings(words=False)
    bundle = to_bundle(doc, note_id="n1", settings=settings, counts=counts)
    assert counts["left out, neither code nor words"] == 1
    written = json.dumps(bundle)
    assert "rara" not in written and "secreto" not in written
    check(bundle)
    bundle = to_bundle(doc, note_id="n1", settings=FhirSettings(attach_text=True))
    [content] = bundle["entry"][0]["resource"]["content"]
    assert base64.b64decode(content["attachment"]["data"]).decode() == doc.text
    check(bundle)


def test_control_characters_are_not_part_of_a_code() -> None:
    doc = make_doc("con fiebre\x0b\r\nalta", [("fiebre\x0b\r\nalta", "SYMPTOM", "", [])])
    [observation] = convert(doc)
    assert observation["code"] == {"text": "fiebre alta"}


def test_a_note_without_mentions_or_text_is_a_bundle() -> None:
    for text in ("", "sin datos"):
        doc = spacy.blank("es")(text)
        bundle = to_bundle(doc, note_id="n1", settings=FhirSettings(attach_text=True))
        assert len(bundle["entry"]) == 1
        assert "subject" not in bundle["entry"][0]["resource"]
        check(bundle)


NOTE = """MOTIVO: fiebre.
AP: HTA. AF: madre con asma.
EA: Niega tos. No se puede descartar TEP. PCR 12,5 mg/L. Nódulo de 3-5 cm.
TRATAMIENTO HABITUAL: Amoxicilina 500 mg cada 8 horas vo 7 días. Enalapril 10-20 mg cada 3 semanas.
Ramipril 10 mg al día durante 2-3 meses.
"""


@pytest.fixture(scope="module")
def nlp() -> Any:
    """Rules for everything: no model is trained."""
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_sections")
    ruler = nlp.add_pipe("entity_ruler")
    labels = {
        "SYMPTOM": ["fiebre", "tos", "PCR 12,5 mg/L", "Nódulo de 3-5 cm"],
        "DISEASE": ["HTA", "asma", "TEP"],
        "DRUG": ["Amoxicilina", "Enalapril", "Ramipril"],
    }
    ruler.add_patterns(
        [{"label": label, "pattern": words} for label, found in labels.items() for words in found]
    )
    nlp.add_pipe("bioclin_context")
    nlp.add_pipe("bioclin_measurements", config={"drug_labels": ["drug"]})
    return nlp


def test_a_pipeline_of_rules_makes_a_valid_bundle(nlp: Any) -> None:
    counts: Counter[str] = Counter()
    doc = nlp(NOTE)
    bundle = to_bundle(
        doc, note_id="n1", settings=FhirSettings(), subject="Patient/1", counts=counts
    )
    check(bundle)
    assert {key: n for key, n in counts.items() if "written" in key} == {
        "DocumentReference written": 1,
        "Observation written": 4,
        "Condition written": 2,
        "FamilyMemberHistory written": 1,
        "MedicationStatement written": 3,
    }
    found = {
        doc.text[start : start + length]: entry["resource"]
        for entry in bundle["entry"][1:]
        for _, start, length in [
            [each.get("valueInteger") for each in entry["resource"]["extension"][0]["extension"]]
        ]
    }
    ucum = {"system": "http://unitsofmeasure.org"}
    mg, cm = {"unit": "mg", **ucum, "code": "mg"}, {"unit": "cm", **ucum, "code": "cm"}
    assert found["tos"]["valueBoolean"] is False
    assert status_of(found["TEP"]) == "provisional"
    assert found["PCR 12,5 mg/L"]["valueQuantity"] == {
        "value": 12.5,
        "unit": "mg/L",
        **ucum,
        "code": "mg/L",
    }
    assert found["Nódulo de 3-5 cm"]["valueRange"] == {
        "low": {"value": 3, **cm},
        "high": {"value": 5, **cm},
    }
    assert found["Amoxicilina"]["status"] == "active"
    assert found["Amoxicilina"]["dosage"] == [
        {
            "timing": {
                "repeat": {
                    "frequency": 3,
                    "period": 1,
                    "periodUnit": "d",
                    "boundsDuration": {"value": 7, "unit": "d", **ucum, "code": "d"},
                }
            },
            "route": {"text": "oral"},
            "doseAndRate": [{"doseQuantity": {"value": 500, **mg}}],
        }
    ]
    [dosage] = found["Enalapril"]["dosage"]
    assert dosage["timing"]["repeat"] == {"frequency": 1, "period": 3, "periodUnit": "wk"}
    assert dosage["doseAndRate"] == [
        {"doseRange": {"low": {"value": 10, **mg}, "high": {"value": 20, **mg}}}
    ]
    [dosage] = found["Ramipril"]["dosage"]
    day, month = {"unit": "mg/d", **ucum, "code": "mg/d"}, {"unit": "mo", **ucum, "code": "mo"}
    assert dosage["doseAndRate"] == [{"rateQuantity": {"value": 10, **day}}]
    bounds = {"low": {"value": 2, **month}, "high": {"value": 3, **month}}
    assert dosage["timing"]["repeat"]["boundsRange"] == bounds


def test_a_drug_has_one_status_in_both_standards(nlp: Any) -> None:
    doc = nlp(
        "ALERGIAS: Amoxicilina.\nPLAN: Suspender Enalapril por tos. Ramipril 5 mg 1-0-1/2 si HTA.\n"
    )
    bundle = to_bundle(doc, note_id="n1", settings=FhirSettings())
    check(bundle)
    found = [entry["resource"] for entry in bundle["entry"][1:]]
    drugs = [each for each in found if "text" not in each.get("code", {}) or "category" in each]
    allergy, stopped, taken = drugs
    assert allergy["resourceType"] == "AllergyIntolerance"
    assert allergy["verificationStatus"]["coding"][0]["code"] == "confirmed"
    assert allergy["patient"] and "subject" not in allergy
    assert (stopped["status"], stopped["statusReason"]) == ("stopped", [{"text": "tos"}])
    assert taken["status"] == "active"
    assert taken["dosage"] == [
        {
            "text": "5 mg",
            "timing": {"repeat": {"frequency": 1, "period": 1, "periodUnit": "d", "when": [when]}},
            "asNeededCodeableConcept": {"text": "HTA"},
            "doseAndRate": [{"doseQuantity": {"value": value}}],
        }
        for when, value in (("MORN", 1), ("EVE", 0.5))
    ]
    hidden = json.dumps(to_bundle(doc, note_id="n1", settings=FhirSettings(words=False)))
    assert "HTA" not in hidden and "tos" not in hidden
    settings = OmopSettings(nlp_system="test", labels=["DRUG"])
    rows = to_note_nlp(doc, note_id=1, first_id=1, settings=settings)
    assert [row.term_exists for row in rows] == ["N", "N", "Y"]
    assert [(row.term_modifiers or "").partition("Status=")[2].split(",")[0] for row in rows] == [
        "allergy",
        "stopped",
        "taking",
    ]


def test_a_wrong_bundle_is_an_error_without_its_values() -> None:
    pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")
    doc = make_doc("con TEP", [("TEP", "DISEASE", "", [])])
    bundle = to_bundle(doc, note_id="n1", settings=FhirSettings())
    bundle["entry"][1]["resource"]["code"]["secreto"] = "clave"
    with pytest.raises(BioclinError, match=r"Not a Bundle of FHIR R4B: see entry\.1") as caught:
        check_bundle(bundle)
    assert "clave" not in str(caught.value) and "TEP" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_wrong_setting_is_an_error() -> None:
    with pytest.raises(BioclinError, match=r"resources\.DISEASE = 'Problem': want one of"):
        read_settings(FhirSettings, {"resources": {"DISEASE": "Problem"}}, where="fhir.yml")
