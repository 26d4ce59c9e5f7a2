"""`bioclin export`: from notes to an annotation tool, and with `bioclin convert` back to Docs."""

import json
import stat
from pathlib import Path

import pytest
import spacy
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.spans import annotated_labels

pytestmark = pytest.mark.usefixtures("kept_pipelines")
LABEL = "NOMBRE_SUJETO_ASISTENCIA"
NOTES = {"uno": "Xabina 😀 niega fiebre.\r\nVuelve Xabina.\r\n", "dos": "Sin datos."}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nlp = spacy.blank("es")
    nlp.add_pipe("span_ruler", config={"spans_key": "phi"}).add_patterns(
        [{"label": LABEL, "pattern": "Xabina"}]
    )
    nlp.to_disk(folder := tmp_path_factory.mktemp("export") / "pipeline")
    return folder


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return folder


def run(*args: object, status: int = 0) -> str:
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == status, done.output
    return " ".join(done.output.split())


def test_there_and_back(pipeline: Path, notes: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks"
    printed = run("export", pipeline, notes, out, "--to", "label-studio", "--layer", "phi")
    assert "2 notes written to" in printed and "Xabina" not in printed
    assert sorted(path.name for path in out.iterdir()) == ["documents.json", "labels.xml"]
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    tasks = json.loads((out / "documents.json").read_text("utf-8"))
    assert [task["data"]["bioclin"]["id"] for task in tasks] == ["dos", "uno"]
    assert "\r" not in tasks[1]["data"]["text"]
    # An annotator accepts all predictions of one note, and has not seen the other.
    tasks[1]["annotations"] = [{"result": tasks[1]["predictions"][0]["result"]}]
    export = tmp_path / "project.json"
    export.write_text(json.dumps(tasks), "utf-8")
    gold = tmp_path / "gold.spacy"
    arguments = ("convert", "label-studio", export, gold, "--lang", "es", "--layer", "phi")
    assert "task 1: is not annotated" in run(*arguments, status=1)
    run(*arguments, "--skip-bad", "--annotated", LABEL)
    (doc,) = read_docs(gold, Vocab())
    assert doc.text == NOTES["uno"]
    found = [(span.start_char, span.label_) for span in doc.spans["phi"]]
    assert found == [(0, LABEL), (31, LABEL)]
    assert annotated_labels(doc, "phi") == {LABEL}


def test_gold_docs_go_to_a_tool_and_back(pipeline: Path, notes: Path, tmp_path: Path) -> None:
    brat = tmp_path / "brat"
    run("export", pipeline, notes, brat, "--to", "brat")
    run("convert", "brat", brat, tmp_path / "gold.spacy", "--lang", "es", "--layer", "phi")
    for tool in ("doccano", "prodigy"):
        out = tmp_path / f"{tool}.jsonl"
        run("convert", "spacy", tmp_path / "gold.spacy", out, "--to", tool)
        assert len(out.read_text("utf-8").splitlines()) == 2


def test_only_the_suggested_notes(pipeline: Path, notes: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen.jsonl"
    chosen.write_text('{"rank": 1, "id": "uno"}\n')
    out = tmp_path / "tasks.jsonl"
    run("export", pipeline, notes, out, "--to", "doccano", "--only", chosen)
    (row,) = map(json.loads, out.read_text("utf-8").splitlines())
    assert row["bioclin"]["id"] == "uno"
    chosen.write_text('{"rank": 1, "id": "tres"}\n')
    arguments = ("export", pipeline, notes, out, "--to", "doccano", "--overwrite")
    assert "1 of its 1 notes are not in" in run(*arguments, "--only", chosen, status=1)
    chosen.write_text("no list")
    assert "is not a list of `bioclin suggest`" in run(*arguments, "--only", chosen, status=1)


def test_ids_with_other_line_ends(pipeline: Path, tmp_path: Path) -> None:
    ids = ["a\u2028b", "c\x85d", "e"]
    source, chosen = tmp_path / "notes.jsonl", tmp_path / "chosen.jsonl"
    rows = [{"id": id, "text": "Sin datos."} for id in ids]
    for path in (source, chosen):
        lines = (
            json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows[: 3 - (path == chosen)]
        )
        path.write_bytes("".join(lines).encode("utf-8"))
    out = tmp_path / "tasks.jsonl"
    arguments = ("export", pipeline, source, out, "--to", "doccano", "--id-column", "id")
    run(*arguments, "--only", chosen)
    found = [
        json.loads(line)["bioclin"]["id"] for line in out.read_bytes().decode().split("\n")[:-1]
    ]
    assert found == ids[:2]


def test_an_empty_id_is_not_the_number_of_a_note(pipeline: Path, tmp_path: Path) -> None:
    source = tmp_path / "notes.csv"
    source.write_text("id,text\n2,Tos.\n,Fiebre.\n")
    arguments = ("export", pipeline, source, tmp_path / "x.jsonl", "--to", "doccano")
    assert "line 3: no 'id' (empty)" in run(*arguments, "--id-column", "id", status=1)


def test_what_is_wrong_is_said(pipeline: Path, notes: Path, tmp_path: Path) -> None:
    arguments = ("export", pipeline, notes)
    assert "--to is 'lightag'" in run(*arguments, tmp_path / "x", "--to", "lightag", status=1)
    assert "ending in .jsonl" in run(*arguments, tmp_path / "x", "--to", "doccano", status=1)
    printed = run(*arguments, tmp_path / "x", "--to", "brat", "--layer", "nowhere")
    assert "warning: no note has the layer nowhere" in printed
    taken = run(*arguments, tmp_path / "x", "--to", "brat", status=1)
    assert "--overwrite" in taken
