"""`make_pipeline` assembles rules, a tagger's pipeline, the policy and the key."""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Span

from spacy_bioclin.deid import make_pipeline
from spacy_bioclin.deid.fit import calibrate
from spacy_bioclin.deid.pipeline import find_deid
from spacy_bioclin.errors import BioclinError

TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
NOTE = "Acude Xabina. DNI 12345678-Z."


def make_tagger() -> spacy.Language:
    nlp = spacy.blank("es", config=TOKENIZER)
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "phi", "overwrite": True})
    ruler.add_patterns([{"label": "NOMBRE_SUJETO_ASISTENCIA", "pattern": "Xabina"}])
    return nlp


def test_rules_alone_mask_everything() -> None:
    nlp = make_pipeline("es", rules_only=True)
    assert nlp.pipe_names == ["bioclin_phi_rules", "bioclin_deid"]
    assert nlp(NOTE)._.deid.text == "Acude Xabina. DNI [ID_SUJETO_ASISTENCIA]."


def test_a_policy_is_settings_or_a_file_and_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "policy.yml"
    path.write_text("default: redact\n")
    for policy in ({"default": "redact"}, path):
        nlp = make_pipeline("es", rules_only=True, policy=policy)
        nlp.to_disk(tmp_path / "nlp")
        for made in (nlp, spacy.load(tmp_path / "nlp")):
            assert made(NOTE)._.deid.text == "Acude Xabina. DNI ."
    with pytest.raises(BioclinError, match="did you mean mask_number"):
        make_pipeline("es", rules_only=True, policy={"default": "mask_numbers"})


def test_a_tagger_gets_what_it_does_not_have() -> None:
    nlp = make_tagger()
    assert make_pipeline(nlp, key=b"0123456789abcdef") is nlp
    assert nlp.pipe_names == ["span_ruler", "bioclin_phi_rules", "bioclin_deid"]
    assert find_deid(nlp).key == b"0123456789abcdef"
    assert nlp(NOTE)._.deid.text.startswith("Acude [NOMBRE_SUJETO_ASISTENCIA]. DNI [")


def test_a_tagger_keeps_what_it_has() -> None:
    nlp = make_tagger()
    nlp.add_pipe("bioclin_deid", name="safe", config={"policy": {"default": "redact"}})
    make_pipeline(nlp)
    assert nlp.pipe_names == ["span_ruler", "bioclin_phi_rules", "safe"]
    assert nlp(NOTE)._.deid.text == "Acude . DNI ."
    make_pipeline(nlp, policy={"default": "mask"})
    assert nlp(NOTE)._.deid.text == "Acude [NOMBRE_SUJETO_ASISTENCIA]. DNI [ID_SUJETO_ASISTENCIA]."


def test_mistakes() -> None:
    with pytest.raises(BioclinError, match="'fr': want one of es, en"):
        make_pipeline("fr")
    with pytest.raises(BioclinError, match="no bioclin_deid"):
        find_deid(spacy.blank("es"))


def test_the_package_imports_nothing_of_spacy_by_itself() -> None:
    code = "import sys, spacy_bioclin.deid; print('spacy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_detectors_whose_phi_would_stay_are_refused() -> None:
    nlp = make_pipeline(make_tagger())
    with nlp.select_pipes(disable="span_ruler"), pytest.raises(BioclinError, match="span_ruler: a"):
        make_pipeline(nlp)
    nlp.disable_pipe("bioclin_deid")
    with pytest.raises(BioclinError, match="bioclin_deid: a disabled"):
        make_pipeline(nlp)
    nlp = spacy.blank("es", config=TOKENIZER)
    nlp.add_pipe("bioclin_deid")
    nlp.add_pipe("span_ruler", config={"spans_key": "phi"})
    with pytest.raises(BioclinError, match="span_ruler: what it finds after bioclin_deid stays"):
        make_pipeline(nlp)


def test_numbers_after_id_are_found() -> None:
    pipelines = {lang: make_pipeline(lang, rules_only=True) for lang in ("es", "en")}
    notes = [("en", "Note [ID 123456]."), ("en", "ID: 123456"), ("es", "Id. paciente: 99887766")]
    for lang, text in notes:
        assert not any(char.isdigit() for char in pipelines[lang](text)._.deid.text)
        assert pipelines[lang]("ID 2019")._.deid.text == "ID 2019"


def calibrated(tmp_path: Path) -> Path:
    nlp = make_tagger()
    nlp.add_pipe("bioclin_phi_rules", name="rules")
    nlp.add_pipe("bioclin_deid", name="deid")
    doc = nlp.make_doc(NOTE)
    start = NOTE.index("12345678")
    number = doc.char_span(start, len(NOTE) - 1, label="ID_SUJETO_ASISTENCIA")
    doc.spans["phi"] = [Span(doc, 1, 2, label="NOMBRE_SUJETO_ASISTENCIA"), number]
    calibrate(nlp, [doc], 0.99, operating_point="balanced")
    assert find_deid(nlp).detectors == ["span_ruler", "rules"]
    nlp.to_disk(tmp_path / "calibrated")
    return tmp_path / "calibrated"


MISSING = (
    r"\[components.deid\] span_ruler: .*calibrated with this detector.*excluded, disabled"
    r".*allow_missing = true in \[components.deid\].*make_pipeline\('es', rules_only=True\)"
)


@pytest.mark.slow
def test_a_missing_detector_is_named_by_other_processes(tmp_path: Path) -> None:
    nlp = spacy.load(calibrated(tmp_path), exclude=["span_ruler"])
    with pytest.raises(Exception, match=MISSING) as error:
        list(nlp.pipe([NOTE] * 2, n_process=2))
    assert "Xabina" not in str(error.value)


def test_a_detector_of_calibration_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = calibrated(tmp_path)
    nlp = spacy.load(folder)
    assert "Xabina" not in nlp(NOTE)._.deid.text
    assert "Xabina" not in pickle.loads(pickle.dumps(nlp))(NOTE)._.deid.text
    for copied in (copy.deepcopy(nlp), pickle.loads(pickle.dumps(nlp))):
        copied.disable_pipe("span_ruler")
        with pytest.raises(BioclinError, match="span_ruler: the pipeline was"):
            copied(NOTE)
    assert "Xabina" not in nlp(NOTE)._.deid.text
    for way in ("exclude", "disable"):
        part: dict[str, Any] = {way: ["span_ruler"]}
        nlp = spacy.load(folder, **part)
        with pytest.raises(BioclinError, match=MISSING) as error:
            nlp(NOTE)
        assert "Xabina" not in str(error.value)
        settings = {"components.deid.allow_missing": True}
        nlp = spacy.load(folder, config=settings, **part)
        assert nlp(NOTE)._.deid.text == "Acude Xabina. DNI [ID_SUJETO_ASISTENCIA]."
    with pytest.raises(BioclinError, match="span_ruler: the pipeline was calibrated"):
        make_pipeline(spacy.load(folder, exclude=["span_ruler"]))
    nlp = spacy.load(folder)
    make_pipeline(nlp).remove_pipe("rules")
    with pytest.raises(BioclinError, match="rules: the pipeline was calibrated"):
        nlp(NOTE)
    find_deid(nlp).allow_missing = True
    assert nlp(NOTE)._.deid.text == "Acude [NOMBRE_SUJETO_ASISTENCIA]. DNI 12345678-Z."


def test_the_record_of_detectors_is_checked_and_may_be_missing(tmp_path: Path) -> None:
    folder = calibrated(tmp_path)
    file = folder / "deid" / "calibration.json"
    state = json.loads(file.read_text())
    file.write_text(json.dumps({**state, "detectors": [1]}))
    with pytest.raises(BioclinError, match="json is damaged"):
        spacy.load(folder)
    del state["detectors"]  # of 0.2
    file.write_text(json.dumps(state))
    assert "Xabina" in spacy.load(folder, exclude=["span_ruler"])(NOTE)._.deid.text


def test_a_pipeline_without_any_detector_is_refused() -> None:
    nlp = make_tagger()
    nlp.add_pipe("bioclin_deid")
    message = r"\[components.bioclin_deid\] .* no component has written doc.spans\['phi'"
    assert "Xabina" not in nlp(NOTE)._.deid.text
    with pytest.raises(BioclinError, match=message):
        nlp(NOTE, disable=["span_ruler"])
    nlp.remove_pipe("span_ruler")
    doc = nlp.make_doc(NOTE)
    doc._.patient = {"id": "12"}  # nothing to look for
    for note in (NOTE, doc):
        with pytest.raises(BioclinError, match=message):
            nlp(note)
    assert nlp(" \n")._.deid.text == " \n"
    doc.spans["phi"] = []
    assert nlp(doc)._.deid.text == NOTE
    find_deid(nlp).allow_missing = True
    assert nlp(NOTE)._.deid.text == NOTE
