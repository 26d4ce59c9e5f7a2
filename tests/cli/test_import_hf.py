"""`bioclin import-hf`, and what other commands do with its pipeline."""

import json
import zipfile

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from tests.ner.hf.test_component import LABELS, LONG, make_checkpoint
from tests.util import TEXTS

PHI = ["B-FECHAS", "I-FECHAS", "O", "I-TERRITORIO", "B-TERRITORIO"]


def bioclin(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("hf") / "checkpoint", "roberta")


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes")
    for i, text in enumerate([*TEXTS, LONG]):
        (folder / f"{i}.txt").write_text(text, "utf-8", newline="")
    return folder


@pytest.fixture(scope="module")
def pipeline(checkpoint, notes, tmp_path_factory):
    out = tmp_path_factory.mktemp("pipelines") / "pipeline"
    result = bioclin("import-hf", checkpoint, "-o", out, "--check", notes)
    assert result.exit_code == 0, result.output
    assert "0 of them or of ours differ" in result.output
    assert "longer texts: transformers" in result.output and "DRUG, PROBLEM" in result.output
    return out


def test_annotate(pipeline, notes, tmp_path):
    assert bioclin("annotate", pipeline, notes, "-o", tmp_path / "out.jsonl").exit_code == 0
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    nlp = spacy.load(pipeline)
    for record, text in zip(records, [*TEXTS, LONG], strict=True):
        found = [(e["start"], e["end"], e["label"]) for e in record["entities"]]
        wanted = [(ent.start_char, ent.end_char, ent.label_) for ent in nlp(text).ents]
        assert found == wanted and found
        assert all(0 < e["probability"] <= 1 for e in record["entities"])


@pytest.mark.usefixtures("_without_setuptools")
def test_package_and_load(pipeline, checkpoint, tmp_path):
    result = bioclin("package", pipeline, tmp_path, "--name", "hf", "--version", "0.1")
    assert result.exit_code == 0, result.output
    with zipfile.ZipFile(tmp_path / "es_bioclin_hf-0.1-py3-none-any.whl") as wheel:
        wheel.extractall(tmp_path / "unpacked")
    [folder] = (tmp_path / "unpacked" / "es_bioclin_hf").glob("es_bioclin_hf-*")
    copy, nlp = spacy.load(folder), spacy.load(pipeline)
    assert copy.meta["labels"]["ner"] == ["DRUG", "PROBLEM"]
    for text in TEXTS:
        found, wanted = copy(text).ents, nlp(text).ents
        assert [(e.start, e.end, e.label_) for e in found] == [
            (e.start, e.end, e.label_) for e in wanted
        ]
        assert [e._.probability for e in found] == pytest.approx([e._.probability for e in wanted])


def test_deid_masks_what_it_finds(tmp_path, notes):
    checkpoint = make_checkpoint(tmp_path / "checkpoint", labels=LABELS)
    (tmp_path / "labels.txt").write_text("\n".join(PHI) + "\n", "utf-8")
    args = ("--spans-key", "phi", "--labels", tmp_path / "labels.txt")
    result = bioclin("import-hf", checkpoint, "-o", tmp_path / "phi", *args)
    assert result.exit_code == 0, result.output
    doc = spacy.load(tmp_path / "phi")(TEXTS[0])
    labels = {span.label_ for span in doc.spans["phi"]}
    assert labels and labels <= {"FECHAS", "TERRITORIO"}
    out = tmp_path / "safe"
    result = bioclin("deid", notes, out, "--lang", "es", "--pipeline", tmp_path / "phi")
    assert result.exit_code == 0, result.output
    safe = (out / "0.txt").read_text("utf-8")
    assert all(f"[{label}]" in safe for label in labels)


def test_errors_come_without_a_traceback(checkpoint, pipeline, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("O\n\nB-X\n", "utf-8")
    for args, message in [
        ((tmp_path, "-o", tmp_path / "out"), "holds no config.json"),
        ((checkpoint, "-o", pipeline), "exists already"),
        ((checkpoint, "-o", tmp_path, "--overwrite"), "it holds no config.cfg"),
        ((checkpoint, "-o", tmp_path / "out", "--labels", labels), "line 2 is empty"),
        ((checkpoint, "-o", tmp_path / "out", "--labels", tmp_path / "no"), "cannot be read"),
        ((checkpoint, "-o", tmp_path / "out", "--aggregation", "none"), "want one of simple"),
        ((checkpoint, "-o", tmp_path / "out", "--lang", "de"), "no rules for language 'de'"),
        ((checkpoint, "-o", tmp_path / "out", "--check", tmp_path / "no"), "no such file"),
    ]:
        result = bioclin("import-hf", *args)
        assert result.exit_code == 1, (args, result.output)
        assert f"{message}" in " ".join(result.output.split())
        assert not (tmp_path / "out").exists()
