"""De-identification with installed pipelines: which one, and which of its components."""

from pathlib import Path

import pytest
import spacy
from spacy.util import load_config

from spacy_bioclin.deid import make_pipeline, pipeline
from spacy_bioclin.deid.pipeline import find_installed, list_unneeded
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.vocab import find_folder
from tests.util import install_package, make_flagship, use_packages

NOTE = "Acude Xabina con neumonía. DNI 12345678-Z."
SAFE = "Acude [NOMBRE_SUJETO_ASISTENCIA] con neumonía. DNI [ID_SUJETO_ASISTENCIA]."


def test_the_largest_is_used_without_what_finds_no_phi(tmp_path, monkeypatch) -> None:
    made = make_flagship(tmp_path / "made")
    for size, version in (("sm", "1.2.0"), ("md", "0.3.0")):
        install_package(made, tmp_path / "site", f"es_bioclin_{size}", version)
    use_packages(monkeypatch, tmp_path / "site")
    assert find_installed("es", or_else="") == "es_bioclin_md"
    assert (find_folder("es_bioclin_md") / "config.cfg").is_file()
    nlp = make_pipeline("es")
    assert nlp.meta["version"] == "0.3.0"
    assert nlp.component_names == ["sentences", "ruler", "rules", "deid"]
    assert nlp(NOTE)._.deid.text == SAFE
    whole = spacy.load("es_bioclin_md")
    assert "context" in whole.pipe_names and whole(NOTE)._.deid.text == SAFE


def test_nothing_installed_is_an_error_that_names_the_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "is_package", lambda name: False)
    with pytest.raises(BioclinError, match=r"pip install en_bioclin_sm-.*or give rules_only=True"):
        make_pipeline("en")
    with pytest.raises(BioclinError, match="rules_only = True is for a language"):
        make_pipeline(spacy.blank("es"), rules_only=True)


def make_config(listens: str, **more: str) -> dict:
    def head(key: str, kind: str) -> dict:
        tok2vec = {"@layers": "chain.v1", "*": {"a": {"@architectures": kind}}}
        return {"factory": "bioclin_ner", "spans_key": key, "model": {"tok2vec": tok2vec}}

    parts = {
        "sentences": {"factory": "bioclin_sentences"},
        "transformer": {"factory": "transformer"},
        "ner": head("findings", "spacy-transformers.TransformerListener.v1"),
        "ents": {"factory": "bioclin_ents"},
        "phi": head("phi", listens),
        **{name: {"factory": factory} for name, factory in more.items()},
        "linker": {"factory": "bioclin_linker"},
        "deid": {"factory": "bioclin_deid", "spans_key": "phi"},
        "cleaner": {"factory": "bioclin_cleaner"},
    }
    return {"nlp": {"pipeline": list(parts)}, "components": parts}


def test_what_detectors_listen_to_is_kept() -> None:
    config = make_config("spacy-transformers.TransformerListener.v1")
    assert list_unneeded(config) == ["ner", "ents", "linker"]
    # A model may listen without a word of it in the config, as that of bioclin_hf_ner does.
    config = make_config("spacy-bioclin.Tok2VecEncoder.v1")
    assert list_unneeded(config) == ["ner", "ents", "linker"]
    # What a component of others reads is not known.
    config = make_config("spacy-bioclin.Tok2VecEncoder.v1", copies_ents_to_phi="of_others")
    assert list_unneeded(config) == []
    config = make_config("spacy-transformers.TransformerListener.v1")
    config["components"]["deid"]["spans_key"] = "findings"
    assert list_unneeded(config) == ["ents", "linker"]
    assert list_unneeded({}) == []


def test_the_configs_that_ship() -> None:
    for name in ("deid", "several", "demo"):
        config = load_config(Path(__file__).parents[2] / "configs" / f"{name}.cfg")
        unneeded = set(list_unneeded(config))
        assert not unneeded & {"sentences", "rules", "deid"}
        assert ("transformer" in unneeded) == (name == "several")
