"""A wheel in a new environment: what works is told from what does not."""

import subprocess
import sys

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.packaging import check, probe
from spacy_bioclin.packaging.check import check_wheel, install_apart, offline_environment
from spacy_bioclin.packaging.probe import EXACT, ROUNDING, Found, Mismatch, compare

CHECKS = [
    "install",
    "load",
    "requirements",
    "nlp(text)",
    "nlp.pipe(texts)",
    "nlp.pipe(texts, n_process=2)",
    "to_bytes, from_bytes",
    "to_disk, load",
    "DocBin",
    "same as --against",
]
DISEASE = Found("ents", 4, 9, "DISEASE", "")
DRUG = Found("ents", 4, 9, "DRUG", "")


@pytest.mark.slow
def test_good_wheel_passes_every_check(demo_wheel, pipeline, tmp_path):
    env = tmp_path / "env"
    before = find_demo(sys.executable)
    results = list(check_wheel(demo_wheel, against=pipeline, env=env))
    assert [(one.name, one.note) for one in results if not one.passed] == []
    assert [one.name for one in results] == CHECKS
    # It stays, and the package is in it, not in the environment of who checks.
    assert find_demo(env / "bin/python").startswith(str(env))
    assert find_demo(sys.executable) == before


def find_demo(python):
    """Where an environment has the demo's package; None if a reader has not installed it."""
    code = (
        "from importlib.util import find_spec as f; print((s := f('es_bioclin_demo')) and s.origin)"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_check_that_hangs_is_one_that_failed(demo_wheel, monkeypatch):
    monkeypatch.setattr(check, "install_apart", lambda wheel, env: sys.executable)
    *_, last = check.check_wheel(demo_wheel, timeout=0.001)
    assert not last.passed
    assert "did not end within 0.001 s" in last.note


def test_files_that_are_no_wheels_and_folders_in_use_are_errors(demo_wheel, tmp_path):
    with pytest.raises(BioclinError, match="no such file"):
        next(check_wheel(tmp_path / "none.whl"))
    (tmp_path / "x.whl").write_bytes(b"")
    with pytest.raises(BioclinError, match="not the name of a wheel"):
        next(check_wheel(tmp_path / "x.whl"))
    with pytest.raises(BioclinError, match="not a virtual environment"):
        install_apart(demo_wheel, tmp_path)
    assert (tmp_path / "x.whl").exists()
    with pytest.raises(BioclinError, match=r"no config\.cfg"):
        next(check_wheel(demo_wheel, against=tmp_path))


@pytest.mark.slow
def test_a_wheel_that_pip_refuses(tmp_path):
    broken = tmp_path / "es_bioclin_demo-0.1-py3-none-any.whl"
    broken.write_bytes(b"PK")
    with pytest.raises(BioclinError, match="pip cannot install"):
        next(check_wheel(broken))


def test_differences_are_found():
    ours = [{DISEASE: 0.9}, {}]
    compare(ours, [{DISEASE: 0.9 + EXACT / 2}, {}], EXACT)
    with pytest.raises(Mismatch, match=r"1 probabilities differ, by 0\.1"):
        compare(ours, [{DISEASE: 0.8}, {}], EXACT)
    with pytest.raises(Mismatch, match="2 spans are found by one side"):
        compare(ours, [{DRUG: 0.9}, {}], EXACT)
    with pytest.raises(Mismatch, match="2 documents became 1"):
        compare(ours, ours[:1], EXACT)
    with pytest.raises(Mismatch, match="1 probabilities differ"):
        compare(ours, [{DISEASE: None}, {}], EXACT)


def test_only_undecided_spans_may_go_by_rounding():
    compare([{DISEASE: 0.51}], [{}], ROUNDING)
    with pytest.raises(Mismatch):
        compare([{DISEASE: 0.51}], [{}], EXACT)
    with pytest.raises(Mismatch):
        compare([{DISEASE: 0.6}], [{}], ROUNDING)


def test_missing_requirement_is_named(tmp_path, monkeypatch):
    for name, wanted in (("ours", "nowhere-to-be-found>=1"), ("other", "spacy>=99")):
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1\nRequires-Dist: {wanted}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Mismatch, match="nowhere-to-be-found>=1 is not installed"):
        probe.check_requirements("ours")
    with pytest.raises(Mismatch, match="wants spacy>=99, but"):
        probe.check_requirements("other")
    assert "spacy" in probe.check_requirements("spacy-bioclin")


def test_ways_out_are_shut():
    kept = offline_environment(
        {"HTTPS_PROXY": "a", "no_proxy": "b", "PIP_INDEX_URL": "c", "X": "d"}
    )
    assert kept["HF_HUB_OFFLINE"] == kept["PIP_NO_INDEX"] == "1"
    assert {"HTTPS_PROXY", "no_proxy", "PIP_INDEX_URL"}.isdisjoint(kept)
    assert kept["X"] == "d"


@pytest.mark.slow
def test_network_is_refused():
    code = (
        "import socket, sys; from spacy_bioclin.packaging.probe import Mismatch, refuse_network\n"
        "sys.addaudithook(refuse_network)\n"
        "for call, args in (('getaddrinfo', ('localhost', 80)), ('create_connection', "
        "(('::1', 9),))):\n"
        "    try: getattr(socket, call)(*args)\n"
        "    except Mismatch as error: print(call, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["getaddrinfo", "the", "pipeline"],
        ["create_connection", "the", "pipeline"],
    ], done.stderr
