"""A package of a pipeline and the versions of spacy-bioclin that it works with."""

import warnings

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError, BioclinWarning
from spacy_bioclin.vocab import check_requirement, make_requirement
from tests.util import install_package, make_flagship, use_packages


def meta(*requirements: object) -> dict:
    return {"lang": "es", "name": "x", "version": "1", "requirements": list(requirements)}


def test_the_range_ends_at_the_next_minor_version() -> None:
    assert make_requirement("0.2.0") == "spacy-bioclin>=0.2.0,<0.3"
    assert make_requirement("0.2.7") == "spacy-bioclin>=0.2.7,<0.3"


def test_versions_in_the_range_are_not_mentioned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for installed in ("0.2.1", "0.2.9", "0.2.2.dev1"):
            check_requirement(meta("spacy>=3", "spacy_bioclin>=0.2.1,<0.3"), installed)
            check_requirement(meta(), installed)
            check_requirement(meta("not / a requirement", 3), installed)
            check_requirement({"requirements": None}, installed)


def test_other_versions_are_an_error_or_a_warning_that_say_what_to_install() -> None:
    wanted = make_requirement("0.2.1")
    older = r"es_x 1 works with spacy-bioclin<0.3,>=0.2.1, but 0.2.0 is installed: pip install \"s"
    with pytest.raises(BioclinError, match=older):
        check_requirement(meta(wanted), "0.2.0")
    with pytest.raises(BioclinError, match=r"but 0\.9\.0 is installed"):
        check_requirement(meta(make_requirement("0.10.0")), "0.9.0")
    newer = (
        r"but 0.3.0 is installed, so .* install a newer es_x, .* pip install \"spacy-bioclin<0.3"
    )
    for installed in ("0.3.0", "0.3.0.dev1", "1.0"):
        with pytest.warns(BioclinWarning, match=newer.replace("0.3.0 is", f"{installed} is")):
            check_requirement(meta(wanted), installed)


def test_loading_says_it_once(tmp_path, monkeypatch) -> None:
    made, site = make_flagship(tmp_path / "made"), tmp_path / "site"
    install_package(made, site, "es_bioclin_sm", "9.0", "spacy-bioclin>=9.0.0,<9.1")
    install_package(made, site, "es_bioclin_old", "0.1", "spacy-bioclin>=0.0.1,<0.1")
    use_packages(monkeypatch, site)
    with pytest.raises(BioclinError, match=r"es_bioclin_sm 9.0 works with .* pip install"):
        spacy.load("es_bioclin_sm")
    with pytest.warns(BioclinWarning) as caught:
        spacy.load("es_bioclin_old")
    assert len([w for w in caught if issubclass(w.category, BioclinWarning)]) == 1
    (tmp_path / "note.txt").write_text("Acude hoy.")
    command = ["deid", str(tmp_path / "note.txt"), str(tmp_path / "safe.txt"), "--lang", "es"]
    done = CliRunner().invoke(app, command)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 1 and not (tmp_path / "safe.txt").exists()
    assert "cannot load the pipeline 'es_bioclin_sm': es_bioclin_sm 9.0 works with" in said
    assert "pip install" in said and "Give the folder" not in said
