"""Encoders are found by their name in the catalogue, from any folder."""

import shutil
from pathlib import Path

import pytest

from spacy_bioclin.encoders.hub import local
from spacy_bioclin.encoders.loading import load_pretrained
from spacy_bioclin.errors import BioclinError


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, a home folder of bioclin, and no checkout."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("BIOCLIN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(local, "CHECKOUT", tmp_path / "no checkout")
    return tmp_path


def test_an_encoder_is_found_by_name(elsewhere: Path, tiny_encoder: Path) -> None:
    for place in (
        "home/encoders",
        "empty/encoders",
        "empty/assets/encoders",
        "no checkout/assets/encoders",
    ):
        here = elsewhere / place / "bsc-bio-ehr-es"
        shutil.copytree(tiny_encoder, here)
        for name in ("bsc-bio-ehr-es", "PlanTL-GOB-ES/bsc-bio-ehr-es"):
            assert Path(local.locate_encoder(name)).resolve() == here
            tokenizer, _ = load_pretrained(name, {})
            assert tokenizer.is_fast
        shutil.rmtree(elsewhere / place)


def test_a_folder_is_taken_before_a_name(elsewhere: Path, tiny_encoder: Path) -> None:
    shutil.copytree(tiny_encoder, elsewhere / "home" / "encoders" / "biobert")
    shutil.copytree(tiny_encoder, elsewhere / "empty" / "bsc-bio-ehr-es")
    assert local.locate_encoder("bsc-bio-ehr-es") == "bsc-bio-ehr-es"
    assert local.locate_encoder("organisation/unknown") == "organisation/unknown"


def test_a_missing_encoder_says_where_it_belongs(elsewhere: Path) -> None:
    for name, remedy in (
        ("bsc-bio-ehr-es", "run `bioclin fetch bsc-bio-ehr-es"),
        ("bioclin-compact", "copy assets/encoders/bioclin-compact from a clone"),
    ):
        with pytest.raises(BioclinError, match=remedy) as error:
            load_pretrained(name, {})
        assert str(elsewhere / "home" / "encoders" / name) in str(error.value)
