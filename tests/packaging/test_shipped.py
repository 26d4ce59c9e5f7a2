"""The wheels of assets/pipelines: small, without pickles, and at work in a clean environment."""

import hashlib
import json
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import spacy_bioclin
from spacy_bioclin.packaging.check import install_apart, offline_environment

FOLDER = Path(__file__).parents[2] / "assets" / "pipelines"
WHEELS = sorted(FOLDER.glob("*.whl"))
LARGEST = 40e6  # bytes
NOTES = {
    "es": "Paciente Juan García López, NHC 1234567. Niega fiebre. Se pauta amoxicilina 500 mg.",
    "en": "Patient John Smith, MRN 1234567, has no fever. Treated with ibuprofen for headache.",
}
NAMES = {"es": ("Juan", "García", "López", "1234567"), "en": ("John", "Smith", "1234567")}
# Run in an environment that has the wheel alone, apart from what it needs.
CODE = """
import json, sys
import spacy

nlp = spacy.load(sys.argv[1])
doc = nlp(sys.argv[2])
entities = [(ent.text, ent.label_, ent._.negated, ent.kb_id_) for ent in doc.ents]
print(json.dumps({"entities": entities, "safe": doc._.deid.text, "pipes": nlp.pipe_names}))
"""


def test_there_is_one_of_each_language() -> None:
    assert [path.name.split("-")[0] for path in WHEELS] == ["en_bioclin_sm", "es_bioclin_sm"]


def test_hashes_are_those_of_the_wheels() -> None:
    lines = (FOLDER / "SHA256SUMS").read_text("utf-8").splitlines()
    listed = {name.strip(): digest for digest, name in (line.split(maxsplit=1) for line in lines)}
    assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in WHEELS}


@pytest.mark.parametrize("path", WHEELS, ids=lambda path: path.name)
def test_wheel_is_small_holds_no_pickle_and_fits_this_version(path: Path) -> None:
    assert path.stat().st_size <= LARGEST
    with ZipFile(path) as wheel:
        names = wheel.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = wheel.read(metadata).decode()
        [card] = [wheel.read(name) for name in names if name.endswith("/MODEL_CARD.md")]
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".pt"))]
    assert b"### What it has seen" in card
    required = map(Requirement, HeaderParser().parsestr(text).get_all("Requires-Dist") or [])
    [ours] = [one for one in required if one.name.replace("_", "-") == "spacy-bioclin"]
    assert ours.specifier.contains(spacy_bioclin.__version__)


def check_annotations(lang: str, found: dict[str, Any]) -> None:
    assert not [name for name in NAMES[lang] if name in found["safe"]], found["safe"]
    entities = {text.lower(): (label, negated) for text, label, negated, _ in found["entities"]}
    fever, drug = ("fiebre", "amoxicilina") if lang == "es" else ("fever", "ibuprofen")
    assert entities[fever][1] is True
    assert entities[drug] == ("DRUG", False)
    assert [kb_id for *_, kb_id in found["entities"] if kb_id]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["es_bioclin_sm", "en_bioclin_sm"])
def test_wheel_works(package: str, shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [config] = shipped.glob(f"{package}/{package}-*/config.cfg")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["", str(config.parent), NOTES[package[:2]]])
        exec(CODE, {})
    check_annotations(package[:2], json.loads(capsys.readouterr().out))


@pytest.mark.full
@pytest.mark.parametrize("path", WHEELS, ids=lambda path: path.name)
def test_wheel_works_in_a_clean_environment(path: Path, tmp_path: Path) -> None:
    package = path.name.split("-")[0]
    python = install_apart(path, tmp_path / "env")
    command = [str(python), "-c", CODE, package, NOTES[package[:2]]]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=offline_environment({"PYTHONUTF8": "1"}),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check_annotations(package[:2], json.loads(done.stdout))
