"""`bioclin run`: every form of input and output, notes that fail, what is refused."""

import json
import sys

import pytest
import spacy
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.outputs import lock_output
from spacy_bioclin.runner.engines.local import LocalEngine
from tests.hostile.run.stage import read_all
from tests.runner.engines.plugin import install
from tests.runner.fixtures import write_rows

pytestmark = pytest.mark.usefixtures("kept_pipelines")
NOTE = "Antecedentes:\nNo tos. Fiebre de 38 ºC."
#       0             14 17 20 21       30 33
OTHER = "Tos y neumonía."
ROWS = [
    {"id": "a", "text": NOTE, "ward": "UCI", "n": 1},
    {"id": "b", "text": "", "ward": "", "n": 2},
    {"id": "c", "text": OTHER, "ward": "3, norte", "n": 3},
]
WANTED = [
    ("a", 17, 20, "SIGN", "ents"),
    ("a", 32, 37, "quantity", "measurements"),
    ("c", 0, 3, "SIGN", "ents"),
    ("c", 6, 14, "DISEASE", "ents"),
]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", list(sys.path))
        install(tmp_path_factory.mktemp("packages"))  # with --skip-bad, it works in another process
        yield make_pipeline(tmp_path_factory.mktemp("pipeline") / "model")


def make_pipeline(folder):
    nlp = spacy.blank("es")
    nlp.add_pipe("test_deadly_note")
    nlp.add_pipe("bioclin_sentences")
    patterns = [
        {"label": "SIGN", "pattern": [{"LOWER": "tos"}]},
        {"label": "DISEASE", "pattern": "neumonía", "id": "K1"},
    ]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    for name in ("bioclin_sections", "bioclin_context", "bioclin_measurements"):
        nlp.add_pipe(name)
    nlp.to_disk(folder)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def succeed(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done


def fail(*arguments):
    done = run(*arguments)
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
    [line] = done.stderr.splitlines()
    return line


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def list_entities(path):
    names = ("start", "end", "label", "layer")
    return [
        (row["id"], *(entity[name] for name in names))
        for row in read_lines(path)
        for entity in row["entities"]
    ]


@pytest.fixture
def source(tmp_path):
    return write_rows(tmp_path / "notes.jsonl", ROWS)


@pytest.mark.parametrize("name", ["n.csv", "folder", "n.spacy"])  # others are below
def test_every_form_of_input(name, pipeline, tmp_path):
    columns = ["--id-column", "id"]
    if name == "n.spacy":
        write_docs(map(spacy.blank("es"), [row["text"] for row in ROWS]), tmp_path / name)
        columns = []
    elif name == "folder":
        columns = []
    if name != "n.spacy":
        write_rows(tmp_path / name, ROWS)
    out = tmp_path / "out.jsonl"
    succeed(pipeline, tmp_path / name, out, *columns)
    wanted = WANTED
    if name == "n.spacy":  # these Docs have no ids
        wanted = [({"a": "1", "c": "3"}[id], *rest) for id, *rest in WANTED]
    assert list_entities(out) == wanted
    about = json.loads((tmp_path / "out.jsonl.run.json").read_text())
    assert about["records"] == {"read": 3, "written": 3, "quarantined": 0, "empty": 1}
    assert about["words"] == 7 + 3
    assert about["entities"] == {"ents": {"SIGN": 2, "DISEASE": 1}, "measurements": {"quantity": 1}}
    left = {path.name for path in tmp_path.iterdir()} - {name}
    assert left == {"out.jsonl", "out.jsonl.run.json"}


def test_json_lines(pipeline, source, tmp_path):
    out = tmp_path / "out.jsonl"
    succeed(pipeline, source, out, "--keep", "ward", "--entity-text")
    first, second, third = read_lines(out)
    assert list(first) == ["record", "id", "ward", "entities", "results"]
    [result] = first["results"]
    assert result["value"] == 38.0 and result["unit"] == "Cel" and result["start"] == 32
    assert (first["record"], first["id"], first["ward"]) == (1, "1", "UCI")
    says = {"uncertain": False, "historical": False, "hypothetical": False, "family": False}
    assert first["entities"] == [
        {
            **{"start": 17, "end": 20, "label": "SIGN", "layer": "ents", "text": "tos"},
            **{"probability": None, "section": "past_history", "negated": True, **says},
        },
        {
            **{"start": 32, "end": 37, "label": "quantity", "layer": "measurements"},
            **{"text": "38 ºC", "probability": None, "section": "past_history"},
            **{"negated": False, **says, "value": 38.0, "unit": "Cel"},
        },
    ]
    assert second == {"record": 2, "id": "2", "ward": "", "entities": []}
    assert [entity["text"] for entity in third["entities"]] == ["Tos", "neumonía"]
    succeed(pipeline, source, out, "--note-text", "--overwrite")
    assert [row["text"] for row in read_lines(out)] == [row["text"] for row in ROWS]
    assert "text" not in read_lines(out)[0]["entities"][0]


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.parquet"])
def test_parquet(name, pipeline, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    source = write_rows(tmp_path / name, ROWS)
    out = tmp_path / "out"
    options = ("--to", "parquet", "--id-column", "id", "--keep", "n", "--note-text")
    succeed(pipeline, source, out, *options, "--entity-text")
    notes = pq.read_table(out / "notes").to_pylist()
    number = int if name == "notes.parquet" else str  # the type of the input, or a string
    assert [(row["record"], row["id"], row["n"], row["text"]) for row in notes] == [
        (i, row["id"], number(row["n"]), row["text"]) for i, row in enumerate(ROWS, start=1)
    ]
    assert [row["characters"] for row in notes] == [len(row["text"]) for row in ROWS]
    entities = pq.read_table(out / "entities").to_pylist()
    names = ("id", "start", "end", "label", "layer")
    assert [tuple(row[name] for name in names) for row in entities] == WANTED
    assert [row["record"] for row in entities] == [1, 1, 3, 3]
    assert [row["negated"] for row in entities] == [True, False, False, False]
    assert [row["text"] for row in entities] == ["tos", "38 ºC", "Tos", "neumonía"]
    assert (entities[1]["value"], entities[1]["unit"]) == ("38.0", "Cel")
    assert pq.read_table(out / "relations").num_rows == 0


def test_docs(pipeline, source, tmp_path):
    out = tmp_path / "out.spacy"
    succeed(pipeline, source, out, "--id-column", "id", "--keep", "n")
    [shard] = out.iterdir()
    docs = list(DocBin().from_disk(shard).get_docs(spacy.blank("es").vocab))
    assert [doc.text for doc in docs] == [row["text"] for row in ROWS]
    found = [(ent.text, ent.label_) for doc in docs for ent in doc.ents]
    assert found == [("tos", "SIGN"), ("Tos", "SIGN"), ("neumonía", "DISEASE")]
    assert docs[0].ents[0]._.negated and not docs[2].ents[0]._.negated
    assert docs[2].user_data["note"] == {"record": 3, "id": "c", "columns": {"n": 3}}
    succeed(pipeline, out, tmp_path / "again.jsonl")
    assert len(list_entities(tmp_path / "again.jsonl")) == 4


def test_brat(pipeline, tmp_path):
    rows = [*ROWS, {"id": "A", "text": "Tos.", "ward": "", "n": 4}, ROWS[1]]
    source = write_rows(tmp_path / "notes.jsonl", rows)
    out = tmp_path / "out"
    succeed(pipeline, source, out, "--to", "brat", "--id-column", "id")
    # "A" is "a" on some disks, and "b" is there twice.
    assert sorted(path.name for path in out.glob("*.txt")) == [
        *("A-2.txt", "a.txt", "b-2.txt", "b.txt", "c.txt")
    ]
    assert (out / "a.txt").read_bytes() == NOTE.encode()
    assert (out / "a.ann").read_text("utf-8") == (
        "T1\tSIGN 17 20\ttos\nT2\tquantity 32 37\t38 ºC\nA1\tNegated T1\n"
    )
    assert (out / "A-2.txt").read_text() == "Tos." and (out / "b.ann").read_text() == ""


def test_bad_notes_are_named_or_quarantined(pipeline, tmp_path, monkeypatch):
    """Here all in this process: with --skip-bad, the pipeline would be in one of its own."""
    make, apart_of_runs = LocalEngine.__init__, []

    def make_here(self, workers, *, apart):
        apart_of_runs.append(apart)
        make(self, workers)

    monkeypatch.setattr(LocalEngine, "__init__", make_here)
    rows = [*ROWS[:2], {"id": "x", "text": "veneno Prado"}, {"id": "y"}, ROWS[2]]
    source = write_rows(tmp_path / "notes.jsonl", rows)
    with source.open("a") as file:
        file.write("not JSON\n")
    out = tmp_path / "out.jsonl"
    options = (pipeline, source, out, "--id-column", "id")
    line = fail(*options)
    assert f"{source}, line 4: no 'text'" in line and "--skip-bad" in line
    lines = source.read_text().splitlines(keepends=True)
    source.write_text("".join([*lines[:3], lines[4]]))
    line = fail(*options)
    assert line.startswith("bioclin: line 3: the pipeline failed with ValueError (bioclin_test_")
    source.write_text("".join(lines))
    assert {path.name for path in tmp_path.iterdir()} == {"notes.jsonl"}

    done = succeed(*options, "--skip-bad")
    assert "skipped: 3 of 6 notes" in done.stderr
    assert [(row["record"], row["id"]) for row in read_lines(out)] == [(1, "a"), (2, "b"), (5, "c")]
    quarantine = tmp_path / "out.jsonl.quarantine.jsonl"
    assert quarantine.stat().st_mode & 0o777 == 0o600
    third, fourth, sixth = read_lines(quarantine)
    assert (third["record"], third["place"], third["id"]) == (3, "line 3", "x")
    assert third["reason"].startswith("line 3: the pipeline failed with ValueError (bioclin_test_")
    assert (fourth["record"], "no 'text'" in fourth["reason"]) == (4, True)
    assert sixth == {"record": 6, "place": "line 6", "reason": f"{source}, line 6: not JSON"}
    about = (tmp_path / "out.jsonl.run.json").read_text()
    assert json.loads(about)["records"] == {"read": 6, "written": 3, "quarantined": 3, "empty": 1}
    for content in (done.output, quarantine.read_text(), about):
        assert "Prado" not in content and "veneno" not in content

    source.write_text("".join(lines[:2]))
    succeed(*options, "--skip-bad", "--overwrite")
    assert not quarantine.exists()  # that of the earlier run
    assert apart_of_runs == [False, False, True, True]


def test_limit(pipeline, tmp_path):
    out = tmp_path / "out.jsonl"
    source = write_rows(tmp_path / "notes.tsv", ROWS)
    succeed(pipeline, source, out, "--limit", "2")
    assert [row["record"] for row in read_lines(out)] == [1, 2]
    assert json.loads((tmp_path / "out.jsonl.run.json").read_text())["limit"] == 2


@pytest.mark.parametrize("to", ["jsonl", "parquet"])
def test_a_dry_run_writes_nothing(to, pipeline, source, tmp_path):
    done = succeed(pipeline, source, tmp_path / f"out.{to}", "--to", to, "--dry-run")
    assert {path.name for path in tmp_path.iterdir()} == {"notes.jsonl"}
    lines = done.stdout.splitlines()
    n_chars = len(NOTE)
    counts = f"{n_chars} characters, 7 words; ents SIGN 1, measurements quantity 1"
    assert f"first note (line 1): {counts}" in lines
    [sample] = [line for line in lines if line.startswith("sample:")]
    assert sample.startswith("sample: 3 notes, 10 words in ")
    assert lines[-1].startswith("estimate: 3 notes; 0.00 h in one process")
    assert "neumonía" not in done.output


def test_outputs_are_refused(pipeline, source, tmp_path):
    out = tmp_path / "out.jsonl"
    assert "its ending does not say the form; --to" in fail(pipeline, source, tmp_path / "out")
    assert "--to csv: want one of jsonl" in fail(pipeline, source, out, "--to", "csv")
    line = fail(pipeline, source, tmp_path / "out.txt", "--to", "jsonl")
    assert "want an ending .jsonl" in line
    for column in ("record", "entities"):
        line = fail(pipeline, source, out, "--keep", column)
        assert "a column of this name; rename it" in line
    for column in ("language", "characters", "windows", "outside"):  # of the table of notes
        line = fail(pipeline, source, tmp_path / "t", "--to", "parquet", "--keep", column)
        assert f"--keep {column}: the output has a column of this name; rename it" in line
    assert "give it as --id-column" in fail(pipeline, source, out, "--keep", "id")
    with lock_output(out):
        assert "another run is writing it" in fail(pipeline, source, out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").touch()
    line = fail(pipeline, source, tmp_path / "mine", "--to", "brat", "--overwrite")
    assert "not an output of this command" in line
    assert {path.name for path in tmp_path.iterdir()} == {"notes.jsonl", "mine"}
    succeed(pipeline, source, out)
    assert "--overwrite" in fail(pipeline, source, out)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_resume_of_a_finished_run_changes_nothing(form, pipeline, source, tmp_path):
    """What starts a run again until it succeeds must not meet an error after its end."""
    out = tmp_path / "out" / f"out.{form}"
    out.parent.mkdir()
    command = [pipeline, source, out, "--id-column", "id"]
    succeed(*command, "--resume")
    before = read_all(out.parent)
    (out.parent / f".{out.name}.work").mkdir(mode=0o700)  # killed before its last step
    assert "is finished already" in succeed(*command, "--resume").stderr
    assert read_all(out.parent) == before
    assert "exists already" in fail(*command)
    for changed in (["--keep", "n"], ["--limit", "2"]):
        assert "exists already, and" in fail(*command, "--resume", *changed)
    source.write_text(source.read_text() + "{}\n")
    assert "exists already, and" in fail(*command, "--resume")
    assert read_all(out.parent) == before
    (out.parent / f"{out.name}.run.json").write_text("[]")
    assert "exists already, and" in fail(*command, "--resume")
