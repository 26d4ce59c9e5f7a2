"""`bioclin run --to omop` and `--to fhir`, through the command."""

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import spacy
from typer.testing import CliRunner, Result

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.runner.standards.fhir_check import check_bundle
from spacy_bioclin.runner.standards.omop import NoteNlpRow

from .notes import CONCEPTS_CSV, NOTES, write_pipeline

pytestmark = pytest.mark.usefixtures("loaded_once")
SETTINGS = "nlp_datetime: 2026-11-25T09:30:00\n"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ready")
    write_pipeline(folder / "model")
    (folder / "concepts.csv").write_text(CONCEPTS_CSV, "utf-8")
    (folder / "settings.yml").write_text(SETTINGS, "utf-8")
    write_notes(folder / "notes.jsonl", NOTES)
    return folder


def write_notes(path: Path, notes: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(note)}\n" for note in notes), "utf-8")
    return path


def run(ready: Path, out: Path, *options: object, notes: Path | None = None) -> Result:
    source = notes or ready / "notes.jsonl"
    command = ["run", ready / "model", source, out, *options]
    return CliRunner().invoke(app, [str(each) for each in command])


def to_omop(ready: Path, out: Path, *options: object, notes: Path | None = None) -> Result:
    more = ("--to", "omop", "--id-column", "note_id", "--settings", ready / "settings.yml")
    return run(ready, out, *more, *options, notes=notes)


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_run(out: Path) -> Any:
    return json.loads(out.with_name(f"{out.name}.run.json").read_text("utf-8"))


def fail(done: Result) -> str:
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
    assert all(str(note["text"]) not in done.output for note in NOTES)
    return " ".join(done.stderr.split())


def test_the_table_by_hand(ready: Path, tmp_path: Path) -> None:
    out = tmp_path / "note_nlp.csv"
    done = to_omop(ready, out, "--concepts", ready / "concepts.csv")
    assert done.exit_code == 0, done.output
    rows = read_table(out)
    assert list(rows[0]) == list(NoteNlpRow._fields)
    assert [(row["note_nlp_id"], row["note_id"], row["offset"]) for row in rows] == [
        ("1", "70", "14"),
        ("2", "70", "25"),
        ("3", "9", "11"),  # inside the quotes
        ("4", "9", "20"),
        ("5", "9", "25"),
    ]
    assert rows[1] == {
        "note_nlp_id": "2",
        "note_id": "70",
        "section_concept_id": "3000001",
        "snippet": "",
        "offset": "25",
        "lexical_variant": "tos",
        "note_nlp_concept_id": "0",
        "note_nlp_source_concept_id": "0",
        "nlp_system": "model 0.0.0",
        "nlp_date": "2026-11-25",
        "nlp_datetime": "2026-11-25 09:30:00",
        "term_exists": "N",
        "term_temporal": "present",
        "term_modifiers": "Negation=true,Label=SYMPTOM,Section=past_history",
    }
    about = read_run(out)
    assert about["records"] == {"read": 3, "written": 3, "quarantined": 0, "empty": 0}
    assert about["converted"] == {
        "rows": 5,
        "rows without a concept": 3,
        "mentions without an id": 3,
    }
    assert about["columns"] == {"text": "text", "id": "note_id", "keep": []}
    assert about["output"]["nlp_datetime"] == "2026-11-25T09:30:00"
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"note_nlp.csv", "note_nlp.csv.run.json"}


def test_parquet_has_the_rows_of_the_csv(ready: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for name in ("t.csv", "t.parquet"):
        done = to_omop(ready, tmp_path / name, "--concepts", ready / "concepts.csv", "--snippet")
        assert done.exit_code == 0, done.output
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.schema.names == list(NoteNlpRow._fields)
    types = {name: table.schema.field(name).type for name in table.schema.names}
    assert types["note_nlp_id"] == types["note_id"] == pa.int32()
    assert types["nlp_date"] == pa.date32() and types["nlp_datetime"] == pa.timestamp("us")
    written = [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in table.to_pylist()
    ]
    rows = read_table(tmp_path / "t.csv")
    assert written == rows
    assert rows[0]["snippet"] == NOTES[0]["text"]


def test_ids_go_on_from_part_to_part(ready: Path, tmp_path: Path) -> None:
    """1,200 notes are three parts: the ids begin where the settings say, and have no gap."""
    notes = [{"note_id": i, "text": "tos " * (i % 3)} for i in range(1200)]
    source = write_notes(tmp_path / "notes.jsonl", notes)
    (tmp_path / "s.yml").write_text(f"{SETTINGS}first_id: 5001\n")
    out = tmp_path / "t.csv"
    more = ("--to", "omop", "--id-column", "note_id", "--settings", tmp_path / "s.yml")
    done = run(ready, out, *more, notes=source)
    assert done.exit_code == 0, done.output
    rows = read_table(out)
    assert [row["note_nlp_id"] for row in rows] == [str(5001 + i) for i in range(1200)]
    assert [int(row["note_id"]) for row in rows] == [i for i in range(1200) for _ in range(i % 3)]


def test_the_time_of_a_run_is_now(ready: Path, tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    done = run(ready, tmp_path / "t.csv", "--to", "omop", "--id-column", "note_id")
    assert done.exit_code == 0, done.output
    after = datetime.now(UTC).replace(tzinfo=None)
    times = {row["nlp_datetime"] for row in read_table(tmp_path / "t.csv")}
    assert len(times) == 1 and before <= datetime.fromisoformat(times.pop()) <= after
    assert "nlp_datetime" not in read_run(tmp_path / "t.csv")["output"]  # else no --resume


def test_a_note_id_that_is_no_integer(ready: Path, tmp_path: Path) -> None:
    """Nothing is made up in its place, not even for an empty one."""
    for bad in ("x-7", "", 7.5, -1, "7 8", "²", 2**31):
        wanted = ("no 'note_id' (empty)",) if bad == "" else ("--id-column", "bigint")
        notes = [{"note_id": "7", "text": "tos"}, {"note_id": bad, "text": "tos y fiebre"}]
        source = write_notes(tmp_path / "notes.jsonl", notes)
        said = fail(to_omop(ready, tmp_path / "t.csv", notes=source))
        assert "line 2: " in said and any(each in said for each in wanted), bad


def test_more_rows_than_ids(ready: Path, tmp_path: Path) -> None:
    """This shows when all is annotated; that --resume cannot help is said then, not after it."""
    out = tmp_path / "t.csv"
    (tmp_path / "s.yml").write_text("first_id: 2147483645\n")
    (tmp_path / "big.yml").write_text("first_id: 2147483645\nbigint: true\n")
    command = ("--to", "omop", "--id-column", "note_id", "--settings")
    said = fail(run(ready, out, *command, tmp_path / "s.yml"))
    assert "note_nlp_id = 2147483649: " in said and "--overwrite (without --resume)" in said
    assert "again with --resume" not in said
    done = run(ready, out, *command, tmp_path / "big.yml", "--overwrite")
    assert done.exit_code == 0, done.output
    assert read_table(out)[-1]["note_nlp_id"] == "2147483649"


def test_line_ends_in_a_note_stay_in_their_row(ready: Path, tmp_path: Path) -> None:
    text = "Con tos.\rNo \u2028fiebre.\r\nSin\nmás."
    source = write_notes(tmp_path / "n.jsonl", [{"note_id": 1, "text": text}])
    out = tmp_path / "t.csv"
    done = to_omop(ready, out, "--snippet", notes=source)
    assert done.exit_code == 0, done.output
    content = out.read_bytes().decode("utf-8")
    assert content.count(f'"{text}"') == 2 and content.replace(f'"{text}"', "").count("\r") == 0
    assert [row["snippet"] for row in read_table(out)] == [text, text]


def test_what_cannot_be_converted_is_quarantined(ready: Path, tmp_path: Path, inside: None) -> None:
    """The run goes on, and the ids of rows have no gap."""
    notes = [{"note_id": each, "text": "tos y fiebre"} for each in (7, "x-7", 9, None)]
    source = write_notes(tmp_path / "notes.jsonl", notes)
    out = tmp_path / "t.csv"
    done = to_omop(ready, out, "--skip-bad", notes=source)
    assert done.exit_code == 0, done.output
    found = [(row["note_nlp_id"], row["note_id"]) for row in read_table(out)]
    assert found == [("1", "7"), ("2", "7"), ("3", "9"), ("4", "9")]
    quarantine = (tmp_path / "t.csv.quarantine.jsonl").read_text("utf-8")
    assert [json.loads(line)["record"] for line in quarantine.splitlines()] == [2, 4]
    assert "fiebre" not in quarantine


def test_names_of_files_are_note_ids(ready: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "12.txt").write_text("tos")
    done = run(ready, tmp_path / "t.csv", "--to", "omop", notes=tmp_path / "notes")
    assert done.exit_code == 0, done.output
    assert [row["note_id"] for row in read_table(tmp_path / "t.csv")] == ["12"]


BUNDLE = ("--to", "fhir", "--id-column", "note_id", "--patient-column", "person")


def read_resources(path: Path) -> list[list[Any]]:
    """Read the resources of each line, after a check of the whole bundle."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        bundle = json.loads(line)
        check_bundle(bundle)
        found.append([entry["resource"] for entry in bundle["entry"]])
    return found


def test_bundles_by_hand(ready: Path, tmp_path: Path) -> None:
    pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")
    out = tmp_path / "found.ndjson"
    done = run(ready, out, *BUNDLE)
    assert done.exit_code == 0, done.output
    first, second, third = read_resources(out)
    assert [each["resourceType"] for each in first] == [
        "DocumentReference",
        "Condition",
        "Observation",
    ]
    note, hypertension, cough = first
    assert note["identifier"] == [{"value": "70"}]
    assert "data" not in note["content"][0]["attachment"]
    assert {each["subject"]["reference"] for each in first} == {"Patient/p-1"}
    [coding] = hypertension["code"]["coding"]
    assert coding == {"system": "https://www.nlm.nih.gov/mesh", "code": "D006973"}
    assert hypertension["verificationStatus"]["coding"][0]["code"] == "confirmed"
    assert cough["code"]["text"] == "tos" and cough["valueBoolean"] is False
    assert len(second) == 1 and second[0]["subject"]["reference"] == "Patient/p-2"
    assert [each.get("valueBoolean") for each in third[1:]] == [True, True, True]
    assert read_run(out)["converted"] == {
        "Bundles checked": 3,
        "Condition written": 1,
        "DocumentReference written": 3,
        "Observation written": 4,
        "mentions without an id": 3,
    }
    assert "fhir.resources" in read_run(out)["versions"]


def test_a_negated_disease_is_refuted(ready: Path, tmp_path: Path) -> None:
    source = write_notes(
        tmp_path / "n.jsonl", [{"note_id": 1, "person": "Patient/7", "text": "No HTA."}]
    )
    done = run(ready, tmp_path / "f.ndjson", *BUNDLE, "--note-text", notes=source)
    assert done.exit_code == 0, done.output
    [[note, condition]] = read_resources(tmp_path / "f.ndjson")
    assert condition["verificationStatus"]["coding"][0]["code"] == "refuted"
    assert condition["subject"]["reference"] == "Patient/7"
    assert note["content"][0]["attachment"]["data"] == "Tm8gSFRBLg=="


def test_no_two_notes_have_the_same_resources(ready: Path, tmp_path: Path) -> None:
    """A server replaces the resources of a note by those of another if this fails."""
    notes = [{"note_id": each, "text": "tos"} for each in (7, 8, "7", " ", "9")]
    source = write_notes(tmp_path / "n.jsonl", notes)
    out = tmp_path / "f.ndjson"
    command = ("--to", "fhir", "--id-column", "note_id")
    said = fail(run(ready, out, *command, notes=source))
    assert f"{source}, line 3: an earlier note has the same id; ids must differ" in said
    done = run(ready, out, *command, "--limit", 2, notes=source)
    assert done.exit_code == 0, done.output
    bundles = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len({bundle["id"] for bundle in bundles}) == 2


def test_notes_without_ids_have_no_resources(ready: Path, tmp_path: Path) -> None:
    """Not even the number of a note is an id: in another run it is that of another note."""
    write_docs(map(spacy.blank("es"), ["tos", "fiebre"]), tmp_path / "n.spacy")
    out = tmp_path / "f.ndjson"
    said = fail(run(ready, out, "--to", "fhir", notes=tmp_path / "n.spacy"))
    assert "Doc 1: has no id, and the output needs one" in said
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("tos")
    done = run(ready, out, "--to", "fhir", notes=tmp_path / "notes")
    assert done.exit_code == 0, done.output
    [note] = [json.loads(line)["entry"][0]["resource"] for line in out.open(encoding="utf-8")]
    assert note["identifier"] == [{"value": "a"}]


def test_a_patient_that_cannot_be_an_id(ready: Path, tmp_path: Path) -> None:
    for bad in ("a b", "á", "x" * 65, "a/b"):
        notes = [{**NOTES[0]}, {**NOTES[1], "person": bad}]
        source = write_notes(tmp_path / "n.jsonl", notes)
        said = fail(run(ready, tmp_path / "f.ndjson", *BUNDLE, notes=source))
        assert "line 2: 'person' is not the id of a resource" in said and bad not in said


UNFIT: list[tuple[str, list[str], str]] = [
    ("t.csv", ["--to", "omop"], "--id-column"),
    ("t.ndjson", ["--to", "fhir"], "--id-column"),
    ("t.jsonl", ["--to", "omop", "--id-column", "note_id"], "want an ending .csv"),
    ("t.json", ["--to", "fhir"], "want an ending .ndjson"),
    ("t.csv", ["--to", "omop", "--keep", "person"], "--keep with --to omop: only for jsonl"),
    ("t.csv", ["--to", "omop", "--note-text"], "--note-text with --to omop"),
    ("t.jsonl", ["--snippet"], "--snippet with --to jsonl: only for omop"),
    ("t.ndjson", ["--to", "fhir", "--concepts", "concepts.csv"], "--concepts with --to fhir"),
    ("t.jsonl", ["--patient-column", "person"], "--patient-column with --to jsonl"),
    ("t.jsonl", ["--settings", "settings.yml"], "--settings with --to jsonl"),
    ("t.ndjson", ["--to", "fhir", "--settings", "settings.yml"], "unknown key 'nlp_datetime'"),
    (
        "t.csv",
        ["--to", "omop", "--id-column", "note_id", "--concepts", "notes.jsonl"],
        "want a table that ends with .csv",
    ),
]


def test_options_that_do_not_fit(
    ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ready)
    for out, options, wanted in UNFIT:
        assert wanted in fail(run(ready, tmp_path / out, *options))
        assert list(tmp_path.iterdir()) == [], options


def test_the_columns_are_shown_before_a_run(ready: Path, tmp_path: Path) -> None:
    done = to_omop(ready, tmp_path / "t.csv", "--dry-run")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("NOTE_NLP: note_nlp_id, note_id, section_concept_id, snippet,")
    assert list(tmp_path.iterdir()) == []
