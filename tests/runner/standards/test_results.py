"""Results of tests in FHIR and OMOP, and in the JSON of a run."""

from collections import Counter
from datetime import date
from pathlib import Path

import spacy

from spacy_bioclin.runner.notes.describe import describe_results
from spacy_bioclin.runner.standards.fhir import FhirSettings
from spacy_bioclin.runner.standards.mapping import Namespaces, read_concept_map
from spacy_bioclin.runner.standards.results import to_measurements

from .test_fhir import check, convert

TEXT = "TA 131/77. Urato 9,1 mg/dL (2,4-5,7) H el 03/02/2023. VIH negativo. NYHA III. Fiebre 38,4."


def make_doc(text: str = TEXT) -> spacy.tokens.Doc:
    nlp = spacy.blank(
        "es", config={"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
    )
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "TEST", "pattern": "Urato", "id": "x"}])  # type: ignore[attr-defined]
    ruler.add_patterns([{"label": "SYMPTOM", "pattern": "Fiebre 38,4"}])  # type: ignore[attr-defined]
    nlp.add_pipe("bioclin_measurements")
    doc = nlp(text)
    for token in doc:
        if token.text == "Urato":
            token.ent_kb_id_ = "LOINC:3084-1"
    return doc


def test_observations() -> None:
    doc = make_doc()
    found = {each["code"]["text"]: each for each in convert(doc)}
    assert list(found) == ["Fiebre 38,4", "TA", "Urato", "VIH", "NYHA"]
    low, high = found["TA"]["component"]
    assert low["code"]["coding"][0]["code"] == "8480-6"
    assert high["valueQuantity"]["value"] == 77 and high["valueQuantity"]["code"] == "mm[Hg]"
    assert found["TA"]["category"][0]["coding"][0]["code"] == "vital-signs"
    urate = found["Urato"]
    assert urate["code"]["coding"] == [{"system": "http://loinc.org", "code": "3084-1"}]
    assert urate["valueQuantity"]["value"] == 9.1 and urate["effectiveDateTime"] == "2023-02-03"
    assert urate["interpretation"][0]["coding"][0]["code"] == "H"
    [limits] = urate["referenceRange"]
    assert (limits["low"]["value"], limits["high"]["value"]) == (2.4, 5.7)
    assert found["VIH"]["valueCodeableConcept"]["text"] == "negative"
    assert found["NYHA"]["valueString"] == "III"
    assert len({each["id"] for each in found.values()}) == len(found)
    from spacy_bioclin.runner.standards.fhir import to_bundle

    check(to_bundle(doc, note_id="n1", settings=FhirSettings()))


def test_measurement_rows(tmp_path: Path) -> None:
    settings = FhirSettings()
    path = tmp_path / "concepts.csv"
    path.write_text(
        "source_code,source_vocabulary_id,target_concept_id,source_concept_id\n"
        "3084-1,LOINC,3037556,3037556\n8480-6,LOINC,3004249,\nmg/dL,UCUM,8840,\n"
        "260385009,SNOMED,9189,\n",
        encoding="utf-8",
    )
    counts: Counter[str] = Counter()
    rows = to_measurements(
        make_doc(),
        person_id=5,
        first_id=11,
        note_date=date(2024, 5, 6),
        settings=settings,
        concepts=read_concept_map(path, Namespaces(settings)),
        counts=counts,
    )
    assert [row.measurement_id for row in rows] == list(range(11, 17))
    systolic, diastolic, urate, hiv, nyha, _ = rows
    assert (systolic.measurement_concept_id, systolic.value_as_number) == (3004249, 131)
    assert (diastolic.measurement_concept_id, diastolic.value_source_value) == (0, "diastolic 77")
    assert urate[2:4] == (3037556, date(2023, 2, 3)) and urate.unit_concept_id == 8840
    assert (urate.range_low, urate.range_high, urate.unit_source_value) == (2.4, 5.7, "mg/dL")
    assert (hiv.value_as_concept_id, hiv.value_as_number) == (9189, None)
    assert nyha.value_source_value == "III" and nyha.measurement_date == date(2024, 5, 6)
    assert counts["measurement rows"] == 6


def test_rows_of_a_run() -> None:
    first = describe_results(make_doc())[0]
    assert (first["text"], first["value"], first["high"], first["start"]) == ("TA", 131.0, 77.0, 3)
