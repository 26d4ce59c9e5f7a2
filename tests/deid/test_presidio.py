"""Our pipelines speak Presidio."""

import importlib
import sys

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_bioclin.deid import presidio
from spacy_bioclin.deid.detect import phi_rules
from spacy_bioclin.deid.labels import load_types, scheme_labels
from spacy_bioclin.deid.presidio import BioclinRecognizer, entity_of
from spacy_bioclin.errors import BioclinError

TEXT = "Juan García, DNI 12345678Z, visto el 3/5/2019 en Soria."
FOUND = [  # text, label, detector, confidence
    ("Juan García", "NOMBRE_SUJETO_ASISTENCIA", "", 0.875),
    ("12345678Z", "ID_SUJETO_ASISTENCIA", "es_dni_label", 1.0),
    ("12345678Z", "ID_SUJETO_ASISTENCIA", "", 0.5),
    ("3/5/2019", "FECHAS", "date_numeric", 0.75),
    ("Soria", "TERRITORIO", "", 0.25),
]


@Language.component("fake_phi")
def fake_phi(doc: Doc) -> Doc:
    spans = []
    for text, label, detector, _ in FOUND:
        start = doc.text.find(text)
        spans.append(doc.char_span(start, start + len(text), label=label, span_id=detector))
    doc.spans["phi"] = spans
    doc.spans["phi"].attrs["scores"] = np.array([each[3] for each in FOUND], dtype=np.float32)
    return doc


@pytest.fixture
def nlp() -> Language:
    pipeline = spacy.blank("es")
    pipeline.add_pipe("fake_phi")
    return pipeline


def test_results(nlp: Language) -> None:
    recognizer = BioclinRecognizer(nlp)
    results = recognizer.analyze(TEXT, [])
    assert [(TEXT[r.start : r.end], r.entity_type, r.score) for r in results] == [
        ("Juan García", "PERSON", 0.875),
        ("12345678Z", "ES_NIF", 1.0),
        ("12345678Z", "ID", 0.5),
        ("3/5/2019", "DATE_TIME", 0.75),
        ("Soria", "LOCATION", 0.25),
    ]
    assert results[1].recognition_metadata == {
        "recognizer_name": "BioclinRecognizer",
        "recognizer_identifier": recognizer.id,
        "label": "ID_SUJETO_ASISTENCIA",
        "detector": "es_dni_label",
    }
    assert "García" not in str(results[0].analysis_explanation)


def test_only_what_is_asked_for(nlp: Language) -> None:
    recognizer = BioclinRecognizer(nlp, "es", entities=["PERSON", "LOCATION"])
    assert recognizer.get_supported_entities() == ["LOCATION", "PERSON"]
    assert {r.entity_type for r in recognizer.analyze(TEXT, [])} == {"PERSON", "LOCATION"}
    assert {r.entity_type for r in recognizer.analyze(TEXT, ["PERSON", "DATE_TIME"])} == {"PERSON"}


def test_analyzer_engine_takes_it(nlp: Language) -> None:
    """Offline: no model is loaded, no other recognizer is there."""
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine

    registry = RecognizerRegistry(supported_languages=["es"])
    engine = NoOpNlpEngine(models=[{"lang_code": "es", "model_name": "no_op"}])
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["es"])
    analyzer.registry.add_recognizer(BioclinRecognizer(nlp, "es"))
    results = analyzer.analyze(TEXT, language="es", entities=["PERSON", "ES_NIF", "DATE_TIME"])
    found = {(TEXT[r.start : r.end], r.entity_type) for r in results}
    assert found == {("Juan García", "PERSON"), ("12345678Z", "ES_NIF"), ("3/5/2019", "DATE_TIME")}


def test_a_folder_is_loaded_and_rules_alone_will_do(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pipeline = spacy.blank("es")
    assert pipeline.add_pipe("bioclin_phi_rules").__class__ is phi_rules.PhiRules
    pipeline.to_disk(tmp_path)
    results = BioclinRecognizer(tmp_path, "es").analyze(TEXT, [])
    found = {(TEXT[r.start : r.end], r.entity_type) for r in results}
    assert {("12345678Z", "ES_NIF"), ("3/5/2019", "DATE_TIME")} <= found


def test_every_type_and_label_has_an_entity() -> None:
    assert all(entity_of(phi_type).isupper() for phi_type in load_types())
    for scheme in ("meddocan", "i2b2", "hipaa"):
        assert all(entity_of(label) for label in scheme_labels(scheme))
    assert entity_of("EDAD_SUJETO_ASISTENCIA") == entity_of("AGE") == "AGE"
    assert entity_of("ID_TITULACION_PERSONAL_SANITARIO") == "MEDICAL_LICENSE"
    assert entity_of("CREDIT_CARD") == "CREDIT_CARD" and entity_of("ADDRESS") == "LOCATION"
    assert entity_of("vehicle") == entity_of("ID_ASEGURAMIENTO") == "ID"
    assert entity_of("MY_OWN") == "MY_OWN"
    assert entity_of("ID_SUJETO_ASISTENCIA", "ner+es_nie") == "ES_NIE"
    assert entity_of("ID_SUJETO_ASISTENCIA", "es_niece") == "ID"
    assert set(presidio.ENTITIES) <= set(load_types())


def test_unknown_entities_and_missing_groups_say_so(nlp: Language) -> None:
    with pytest.raises(BioclinError, match="PERSONA"):
        BioclinRecognizer(nlp, entities=["PERSONA"])
    with pytest.raises(BioclinError, match="component of the pipeline"):
        BioclinRecognizer(spacy.blank("es")).analyze(TEXT, [])


def test_without_presidio_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    monkeypatch.delitem(sys.modules, "spacy_bioclin.deid.presidio")
    with pytest.raises(BioclinError, match=r"spacy-bioclin\[presidio\]"):
        importlib.import_module("spacy_bioclin.deid.presidio")
