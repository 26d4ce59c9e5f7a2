"""`bioclin deid` with rules alone: every form, leaks, whatever goes wrong, a run that is killed."""

import csv
import json
import re
import stat

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.cli.deid.setup import Setup
from tests.dying import die_at_write
from tests.util import install_package, make_flagship, use_packages

pytestmark = pytest.mark.usefixtures("kept_pipelines")
# Check letters are right, and whose they are is nobody's.
DNI = ("00000000T", "00000001R", "00000002W", "00000003A", "00000004G")
SECRETS = (*DNI, "612345678", "Zubizarreta", "Etxeberria")
KEY = "0123456789abcdef-test"
KEEP = [word for name in ("id", "patient", "n") for word in ("--keep", name)]


def note(i, name="D. Iker Zubizarreta"):
    dni = DNI[i % len(DNI)]
    return f"Paciente: {name}, DNI: {dni}.\nTel.: 612345678. Ingresa por neumonía número {i}.\n"


def make_rows(n):
    return [{"id": f"r{i}", "patient": f"p{i % 2}", "text": note(i), "n": i} for i in range(n)]


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("BIOCLIN_DEID_KEY", KEY)


def run(*arguments):
    rules = [] if "--pipeline" in arguments else ["--rules-only"]
    done = CliRunner().invoke(app, ["deid", *map(str, arguments), "--lang", "es", *rules])
    if done.exit_code:
        assert done.exit_code == 1, done.output
        assert isinstance(done.exception, SystemExit), repr(done.exception)
    for secret in (*SECRETS, "neumonía", KEY):
        assert secret not in done.output, done.output
    return done


def fails(*arguments):
    done = run(*arguments)
    assert done.exit_code == 1, done.output
    return " ".join(done.stderr.split())


def succeeds(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return " ".join(done.stderr.split())


def is_safe(text):
    return "neumonía" in text and not any(secret in text for secret in SECRETS)


def test_jsonl_and_its_audit(tmp_path):
    rows = [*make_rows(3), {"id": "r3", "patient": "p0", "text": " ", "n": 3, "more": {"a": [1]}}]
    source, out = write_jsonl(tmp_path / "notes.jsonl", rows), tmp_path / "out.jsonl"
    before = source.read_bytes()
    said = succeeds(source, out, *KEEP, "--keep", "more")
    assert "4 records written" in said
    assert "with --rules-only, only rules search" in said
    made = read_jsonl(out)
    assert all(is_safe(row["text"]) for row in made[:3])
    assert [{**row, "text": ""} for row in made] == [{**row, "text": ""} for row in rows]
    assert made[3] == rows[3]
    assert source.read_bytes() == before
    audit = json.loads((tmp_path / "out.jsonl.audit.json").read_text("utf-8"))
    assert audit["records"] == {"read": 4, "written": 4, "skipped": 0, "empty": 1}
    notes = audit["notes"]
    n_spans = notes["n_spans"]
    assert n_spans >= 9
    for part in ("labels", "detectors", "operators"):
        assert sum(notes[part].values()) == n_spans
    assert notes["operators"] == {"mask": n_spans}
    assert {"spacy-bioclin", "spacy"} <= audit["versions"].keys()
    assert len(audit["policy"]) == 16
    assert notes["policies"] == {audit["policy"]: 3}
    assert not any(secret in json.dumps(audit, ensure_ascii=False) for secret in SECRETS)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("notes.jsonl", "out.jsonl", "out.jsonl.audit.json")
    }


def test_folder_and_single_file(tmp_path):
    source, out = tmp_path / "notes", tmp_path / "out"
    (source / "2020").mkdir(parents=True)
    (source / "2020" / "a.txt").write_bytes(note(0).replace("\n", "\r\n").encode())
    (source / "b.txt").write_text("")
    (source / "scan.pdf").write_text("x")
    said = succeeds(source, out)
    assert "left out: 1 files" in said
    assert is_safe((out / "2020" / "a.txt").read_bytes().decode())
    assert (out / "2020" / "a.txt").read_bytes().count(b"\r\n") == 2
    assert (out / "b.txt").read_bytes() == b""
    assert len([path for path in out.rglob("*") if path.is_file()]) == 2
    succeeds(source / "2020" / "a.txt", tmp_path / "one.txt")
    assert (tmp_path / "one.txt").read_bytes() == (out / "2020" / "a.txt").read_bytes()


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_tables(form, tmp_path):
    rows = [{"id": f"r{i}", "informe": note(i), "n": i, "sala": "3, sur"} for i in range(3)]
    source, out = tmp_path / f"notes.{form}", tmp_path / f"out.{form}"
    if form == "parquet":
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), source)
    else:
        with source.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="," if form == "csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    options = ("--text-column", "informe", "--keep", "n", "--id-column", "id")
    assert "  sala" in fails(source, out, *options).replace(" sala", "  sala")
    succeeds(source, out, *options, "--drop", "sala")
    if form == "parquet":
        table = pq.read_table(out)
        assert table.schema.names == ["id", "informe", "n"]
        made = table.to_pylist()
    else:
        with out.open(encoding="utf-8", newline="") as file:
            made = list(csv.DictReader(file, delimiter="," if form == "csv" else "\t"))
    assert all(is_safe(row["informe"]) for row in made)
    assert [(row["id"], int(row["n"])) for row in made] == [("r0", 0), ("r1", 1), ("r2", 2)]
    options = ("--text-column", "informe", "--drop", "informe")
    said = fails(source, tmp_path / f"o2.{form}", *options)
    assert "informe: one column cannot be both --text-column and --drop" in said
    said = fails(source, tmp_path / f"o2.{form}")
    assert "no column 'text'; it has id, informe, n, sala;" in said


def test_known_patient_data_is_found_and_dropped(tmp_path):
    rows = [
        {
            "id": 1,
            "nombre": "Ane Etxeberria",
            "nacida": "1950-03-02",
            "text": "Vino ane ETXEBERRIA.",
        },
        {"id": 2, "nombre": ["Ane Etxeberria"], "text": "neumonía; nada más"},
        {"id": 3, "nombre": None, "text": "neumonía"},
    ]
    source, out = write_jsonl(tmp_path / "notes.jsonl", rows), tmp_path / "out.jsonl"
    options = ("--known", "name=nombre", "--known", "birth_date=nacida", "--id-column", "id")
    succeeds(source, out, *options)
    made = read_jsonl(out)
    assert [row.keys() for row in made] == [{"id", "text"}] * 3
    assert "etxeberria" not in made[0]["text"].lower()
    assert made[1]["text"] == rows[1]["text"]
    # A known name that no note has must not stand beside it either.
    options = (*options, "--keep", "f")
    for text in ("x", ""):
        for value in ("ANE\nETXEBERRIA", "etxeberria, ane", {"a": ["Ane"]}):
            row = {"id": 4, "nombre": "Ane Etxeberria", "f": value, "text": text}
            write_jsonl(source, [*rows, row])
            said = fails(source, tmp_path / "o.jsonl", *options)
            assert "line 4 (4): PHI of this record (name) is in column 'f'" in said
    for note in ("neumonía", ""):
        write_jsonl(source, [{"nacida": "2/3/50", "text": note}])
        said = fails(source, tmp_path / "o.jsonl", "--known", "birth_date=nacida")
        assert said.count("line 1:") == 1
        assert "line 1: the known birth_date is not a day, month and year of four digits" in said
        assert "DD/MM/YYYY as --lang es" in said
    assert "want WHAT=COLUMN" in fails(source, tmp_path / "o.jsonl", "--known", "mother=nombre")
    said = fails(source, tmp_path / "o.jsonl", "--drop", "mote")
    assert "no column 'mote'; it has nacida, text" in said


def test_one_patient_has_one_surrogate_and_a_key_gives_one_output(tmp_path, monkeypatch):
    policy = tmp_path / "policy.yml"
    policy.write_text("default: surrogate\n")
    source = write_jsonl(tmp_path / "notes.jsonl", make_rows(4))
    for row in (rows := read_jsonl(source)):
        row["text"] = note(0)
    write_jsonl(source, rows)
    outs = [tmp_path / f"out{i}.jsonl" for i in range(3)]
    options = ("--policy", policy, "--patient-column", "patient", "--drop", "n", "--drop", "id")
    succeeds(source, outs[0], *options)
    first, second, third, _ = (row["text"] for row in read_jsonl(outs[0]))
    assert first == third != second
    assert is_safe(first)
    monkeypatch.delenv("BIOCLIN_DEID_KEY")
    keys = [tmp_path / "key", tmp_path / "other"]
    for path, content in zip(keys, (KEY, "another-key-of-16"), strict=True):
        path.write_text(content + "\n")
    succeeds(source, outs[1], *options, "--key-file", keys[0])
    succeeds(source, outs[2], *options, "--key-file", keys[1])
    assert outs[0].read_bytes() == outs[1].read_bytes() != outs[2].read_bytes()
    said = fails(source, tmp_path / "o.jsonl", *options)
    assert "needs a secret key" in said and "bioclin deid-key" in said
    assert not (tmp_path / "o.jsonl").exists()


def test_a_pipeline_gets_rules_and_deid_unless_it_has_them(tmp_path):
    nlp = spacy.blank("es")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "phi", "overwrite": True})
    ruler.add_patterns([{"label": "NOMBRE_SUJETO_ASISTENCIA", "pattern": "Xabina"}])
    nlp.to_disk(tmp_path / "without")
    nlp.add_pipe("bioclin_deid", name="safe", config={"policy": {"default": "mask_number"}})
    nlp.to_disk(tmp_path / "with")
    source = write_jsonl(tmp_path / "notes.jsonl", [{"text": f"Xabina tose. DNI {DNI[0]}"}])
    policy = tmp_path / "policy.yml"
    policy.write_text("default: redact\n")
    made = []
    for i, options in enumerate(
        (["without"], ["with"], ["with", "--policy", policy]),
    ):
        out = tmp_path / f"out{i}.jsonl"
        said = succeeds(source, out, "--pipeline", tmp_path / options[0], *options[1:])
        assert "only rules search" not in said
        made.append(read_jsonl(out)[0]["text"])
    assert made[0].startswith("[NOMBRE_SUJETO_ASISTENCIA] tose. DNI [")
    assert made[1].startswith("[NOMBRE_SUJETO_ASISTENCIA 1] tose. DNI [")
    assert made[2].strip() == "tose. DNI"
    spacy.blank("en").to_disk(tmp_path / "english")
    said = fails(source, tmp_path / "o.jsonl", "--pipeline", tmp_path / "english")
    assert "--lang es" in said and "is for en" in said
    spacy.blank("es").to_disk(tmp_path / "empty")
    said = fails(source, tmp_path / "o.jsonl", "--pipeline", tmp_path / "empty")
    assert "no component finds PHI" in said and not (tmp_path / "o.jsonl").exists()


def test_leaks_beside_the_note(tmp_path):
    source, out = tmp_path / "notes.jsonl", tmp_path / "out.jsonl"
    options = ("--id-column", "id", "--patient-column", "patient", "--keep", "n")
    for column, value, option, wanted in (
        ("dni", DNI[1].lower(), "--drop", "line 2 (r1): "),
        ("telefono", 612345678, "--drop", "column 'telefono'"),
        ("extra", {"a": [{"b": "Iker\nZUBIZARRETA"}]}, "--drop", "column 'extra'"),
        ("extra", {"a": [{"zubizarreta": "b"}]}, "--drop", "column 'extra'"),
        ("612-345-678", "x", "--drop", "a column"),
        ("id", f"nota-{DNI[1]}", "--rename", "line 2: "),
        ("patient", DNI[1], "--keep", "line 2 (r1): "),
    ):
        rows = make_rows(3)
        rows[1][column] = value
        write_jsonl(source, rows)
        more = () if column == "id" else ("--keep", column)
        said = fails(source, out, *options, *more)
        assert wanted in said and option in said, (column, said)
        assert list(tmp_path.iterdir()) == [source]  # nothing stays, no audit either
        mend = {"--drop": ("--drop", column), "--rename": ("--rename",), "--keep": ()}[option]
        succeeds(source, out, *options, *mend)
        written = out.read_text("utf-8").lower()
        assert not any(secret.lower() in written for secret in SECRETS), column
        for path in tmp_path.glob("out.*"):
            path.unlink()


def test_leaks_in_file_names(tmp_path):
    source, out = tmp_path / "notes", tmp_path / "out"
    for i, name in enumerate(("otro/a", "otro/Zubizarreta, Iker")):
        path = source / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note(i))
    assert "file 1: PHI" in fails(source, out)
    assert {path.name for path in tmp_path.iterdir()} == {"notes"}
    succeeds(source, out, "--rename")
    files = [path.relative_to(out).as_posix() for path in out.rglob("*.txt")]
    assert len(files) == 2
    assert all(re.fullmatch(r"[0-9a-f]{20}/[0-9a-f]{20}\.txt", name) for name in files)
    assert len({name.split("/")[0] for name in files}) == 1
    single = source / "otro" / "a.txt"
    assert "the name of OUT" in fails(single, tmp_path / "zubizarreta.txt")
    assert "no names to hash" in fails(single, tmp_path / "b.txt", "--rename")


def test_renamed_ids_are_one_hash_each(tmp_path):
    rows = make_rows(4)
    source, out = write_jsonl(tmp_path / "notes.jsonl", rows), tmp_path / "out.jsonl"
    options = ("--id-column", "n", "--patient-column", "patient", "--keep", "id")
    succeeds(source, out, *options, "--rename")
    made = read_jsonl(out)
    assert len({row["n"] for row in made}) == 4
    assert made[0]["patient"] == made[2]["patient"] != made[1]["patient"]
    assert [row["id"] for row in made] == ["r0", "r1", "r2", "r3"]


def test_errors_of_a_pipeline_say_nothing_of_the_note(tmp_path, monkeypatch):
    load = Setup.load

    def load_and_break(setup):
        nlp = load(setup)
        tokenize = nlp.tokenizer

        def fail(text):
            if "número 105" in text:
                raise KeyError(text)
            return tokenize(text)

        monkeypatch.setattr(nlp, "tokenizer", fail)
        return nlp

    monkeypatch.setattr(Setup, "load", load_and_break)
    source = write_jsonl(tmp_path / "notes.jsonl", make_rows(110))
    said = fails(source, tmp_path / "out.jsonl", *KEEP)
    assert "line 106: the pipeline failed with KeyError (test_deid.py, line " in said
    assert not (tmp_path / "out.jsonl").exists()
    succeeds(source, tmp_path / "out.jsonl", *KEEP, "--skip-bad", "--resume")
    audit = json.loads((tmp_path / "out.jsonl.audit.json").read_text("utf-8"))
    assert audit["records"] == {"read": 110, "written": 109, "skipped": 1, "empty": 0}
    [refused] = audit["refused"]
    assert refused["place"] == "line 106" and "KeyError" in refused["reason"]


def test_bad_settings(tmp_path):
    source, out = write_jsonl(tmp_path / "notes.jsonl", make_rows(1)), tmp_path / "out.jsonl"
    policy = tmp_path / "policy.yml"
    policy.write_text("operators:\n  PATIEN: mask\n")
    said = fails(source, out, "--policy", policy)
    assert "PATIEN" in said and "did you mean PATIENT" in said
    assert "is the input" in fails(source, source, "--overwrite")
    assert "is the input" in fails(source, policy, "--policy", policy, "--overwrite")
    out.write_text("mine")
    assert "--overwrite" in fails(source, out)
    assert out.read_text() == "mine"
    succeeds(source, out, "--overwrite", *KEEP)
    assert is_safe(out.read_text("utf-8"))
    new = tmp_path / "o.jsonl"
    done = CliRunner().invoke(app, ["deid", str(source), str(new), "--lang", "fr"])
    assert done.exit_code == 1 and "--lang fr: want one of es, en" in done.stderr


def test_unreadable_records_are_errors_or_counted(tmp_path):
    source, out = tmp_path / "notes.jsonl", tmp_path / "out.jsonl"
    write_jsonl(source, make_rows(3))
    lines = source.read_bytes().splitlines(keepends=True)
    source.write_bytes(b"".join([lines[0], lines[1][:40] + b"\n", lines[2]]))
    said = fails(source, out, *KEEP)
    assert "notes.jsonl, line 2: not JSON" in said and "--skip-bad" in said
    assert not out.exists()
    assert "skipped: 1 of 3 records" in succeeds(source, out, "--skip-bad", *KEEP)
    assert [row["id"] for row in read_jsonl(out)] == ["r0", "r2"]
    audit = json.loads((tmp_path / "out.jsonl.audit.json").read_text())
    assert audit["records"] == {"read": 3, "written": 2, "skipped": 1, "empty": 0}
    assert audit["skipped_places"] == ["line 2"]


def test_another_language_is_said(tmp_path):
    source = tmp_path / "note.txt"
    source.write_text(
        "Der Patient wurde gestern wegen starker Schmerzen in die Klinik gebracht und sofort "
        "untersucht. Nach der Untersuchung zeigte sich eine leichte Entzündung, die wir mit "
        "Antibiotika behandelt haben. Heute geht es ihm besser, er isst wieder und schläft gut. "
        "Morgen kann er nach Hause gehen, wenn die Werte stimmen und kein Fieber auftritt.",
        "utf-8",
    )
    assert "another language" in succeeds(source, tmp_path / "out.txt")
    audit = json.loads((tmp_path / "out.txt.audit.json").read_text())
    assert audit["notes"]["other_language"] == 1


@pytest.mark.slow
def test_kill_and_resume_with_two_processes_is_one_run_with_one(tmp_path):
    source = write_jsonl(tmp_path / "notes.jsonl", make_rows(450))
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    succeeds(source, whole, *KEEP)
    assert die_at_write(lambda: succeeds(source, out, *KEEP), 12)
    assert not out.exists()
    assert 1 <= len(list(tmp_path.glob(".out.jsonl.work/*.part"))) < 5
    assert "--resume" in fails(source, out, *KEEP)
    assert "policy" in fails(source, out, *KEEP, "--resume", "--policy", write_policy(tmp_path))
    succeeds(source, out, *KEEP, "--resume", "--processes", "2")
    assert out.read_bytes() == whole.read_bytes()
    audits = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.audit.json"))]
    assert audits[0] == audits[1]
    assert not list(tmp_path.glob(".*"))


def test_resume_of_a_finished_run_changes_nothing(tmp_path):
    source, out = write_jsonl(tmp_path / "notes.jsonl", make_rows(3)), tmp_path / "out.jsonl"
    succeeds(source, out, *KEEP)
    before = out.read_bytes()
    succeeds(source, out, *KEEP, "--resume")
    assert "exists already" in fails(source, out, *KEEP)
    policy = write_policy(tmp_path)
    assert "exists already, and" in fails(source, out, *KEEP, "--resume", "--policy", policy)
    write_jsonl(source, make_rows(4))
    assert "exists already, and" in fails(source, out, *KEEP, "--resume")
    assert out.read_bytes() == before


def write_policy(folder):
    path = folder / "policy.yml"
    path.write_text("default: redact\n")
    return path


def test_a_new_key(tmp_path):
    path = tmp_path / "key"
    done = CliRunner().invoke(app, ["deid-key", str(path)])
    assert done.exit_code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = path.read_text()
    assert len(key.strip()) >= 40 and key.strip() not in done.output
    done = CliRunner().invoke(app, ["deid-key", str(path)])
    assert done.exit_code == 1 and "exists already" in done.stderr
    assert path.read_text() == key
    done = CliRunner().invoke(app, ["deid-key", str(tmp_path / "no" / "key")])
    assert done.exit_code == 1 and "cannot be written" in done.stderr


def test_the_installed_pipeline_is_the_default(tmp_path, monkeypatch):
    source = write_jsonl(tmp_path / "notes.jsonl", [{"text": f"Xabina tose. DNI {DNI[0]}"}])
    out = tmp_path / "out.jsonl"
    command = ["deid", str(source), str(out), "--lang", "es"]
    with monkeypatch.context() as patch:  # README's reader has installed one
        patch.setattr("spacy_bioclin.deid.pipeline.is_package", lambda name: False)
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and not out.exists()
    for way in ("pip install es_bioclin_sm-", "give --pipeline", "--rules-only"):
        assert way in " ".join(done.stderr.split())
    install_package(make_flagship(tmp_path / "made"), tmp_path / "site", "es_bioclin_sm", "1.2.0")
    use_packages(monkeypatch, tmp_path / "site")
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "pipeline: es_bioclin_sm 1.2.0" in done.stderr and "only rules" not in done.stderr
    assert read_jsonl(out)[0]["text"].startswith("[NOMBRE_SUJETO_ASISTENCIA] tose. DNI [")
    audit = json.loads((tmp_path / "out.jsonl.audit.json").read_text())
    assert audit["pipeline"].pop("fingerprint")
    assert audit["pipeline"] == {"name": "es_bioclin_sm", "version": "1.2.0"}
    succeeds(source, out, "--overwrite")
    assert read_jsonl(out)[0]["text"].startswith("Xabina tose. DNI [")
    high = ["--overwrite", "--operating-point", "high_recall"]
    assert "rules alone have no thresholds" in fails(source, out, *high)
    said = fails(source, out, *high, "--pipeline", "es_bioclin_sm")
    assert "has no thresholds for it; make them with bioclin calibrate" in said
    nlp = spacy.load("es_bioclin_sm")
    nlp.get_pipe("deid").operating_points = {"balanced": {}, "high_recall": {"FECHAS": 0.1}}
    nlp.to_disk(tmp_path / "two")
    succeeds(source, out, *high, "--pipeline", tmp_path / "two")
    audit = json.loads((tmp_path / "out.jsonl.audit.json").read_text())
    assert audit["operating_point"] == "high_recall"
    said = fails(source, out, "--overwrite", "--pipeline", "es_bioclin_sm", "--rules-only")
    assert "--pipeline es_bioclin_sm and --rules-only: give one of them" in said
