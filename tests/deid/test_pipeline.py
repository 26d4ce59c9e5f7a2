"""`make_pipeline` assembles rules, a tagger's pipeline, the policy and the key."""

import subprocess
import sys
from pathlib import Path

import pytest
import spacy

from spacy_bioclin.deid import make_pipeline
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


@pytest.mark.parametrize(
    ("lang", "text"),
    [("en", "Note [ID 123456]."), ("en", "ID: 123456"), ("es", "Id. paciente: 99887766")],
)
def test_numbers_after_id_are_found(lang: str, text: str) -> None:
    assert not any(
        char.isdigit() for char in make_pipeline(lang, rules_only=True)(text)._.deid.text
    )
    assert make_pipeline(lang, rules_only=True)("ID 2019")._.deid.text == "ID 2019"
