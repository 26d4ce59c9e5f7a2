"""`bioclin deid`: what becomes of each column, and what is found beside the note by value."""

import csv
import json
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.dates import read_dates
from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.context import DateShift, SurrogateContext
from spacy_bioclin.outputs import lock_output
from spacy_bioclin.runner.leaks import Hidden
from spacy_bioclin.runner.stamps import shift_value

pytestmark = pytest.mark.usefixtures("kept_pipelines")
KEY = "0123456789abcdef-test"
PATIENT = ("--patient-column", "patient")


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BIOCLIN_DEID_KEY", KEY)


def run(*arguments, lang="es"):
    done = CliRunner().invoke(app, ["deid", *map(str, arguments), "--lang", lang, "--rules-only"])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done.exit_code, done.stderr


def fails(*arguments, **options):
    code, said = run(*arguments, **options)
    assert code == 1, said
    return " ".join(said.split())


def succeeds(*arguments, **options):
    code, said = run(*arguments, **options)
    assert code == 0, said
    return " ".join(said.split())


def test_nothing_is_written_while_a_column_is_not_named(tmp_path):
    row = {
        "patient": "p1",
        "visit": "2021-03-12",
        "tel": "612345678",
        "text": "x",
        "more": {"a": 1},
    }
    source = write(tmp_path / "in.jsonl", [row, {**row, "late": None, "later": [3]}])
    before = set(tmp_path.iterdir())
    said = fails(source, "out.jsonl", *PATIENT)
    for part in ("visit: dates", "tel: PHI (phone)", "more.a", "later", "--keep COLUMN"):
        assert part in said
    assert " patient " not in said and "2021" not in said and "612345678" not in said
    assert set(tmp_path.iterdir()) == before
    keep = [word for name in ("tel", "more", "later") for word in ("--keep", name)]
    said = succeeds(source, "out.jsonl", *PATIENT, "--drop", "visit", *keep)
    assert "warning: --keep tel: PHI" in said
    assert set(read(tmp_path / "out.jsonl")[0]) == {"patient", "tel", "text", "more"}
    assert "both --date-column and --keep" in fails(
        source, "o.jsonl", "--date-column", "visit", "--keep", "visit"
    )


def test_dates_of_columns_move_as_those_of_the_notes(tmp_path):
    (tmp_path / "policy.yml").write_text("default: surrogate\n")
    spellings = ("", "2021-03-12", "12/3/2021", "12 de marzo de 2021", "20210312")
    rows = [
        {"patient": patient, "visit": text, "text": f"Control el 12/03/2021. {i}"}
        for text in spellings
        for i, patient in enumerate(("p1", "p2", "p1"))
    ]
    source = write(tmp_path / "in.jsonl", rows)
    succeeds(source, "out.jsonl", *PATIENT, "--date-column", "visit", "--policy", "policy.yml")
    made = read(tmp_path / "out.jsonl")
    days = []
    for row, before in zip(made, rows, strict=True):
        [[in_note], _] = read_dates(row["text"].split()[2].rstrip("."), "es")
        if text := before["visit"]:
            [[beside], _] = read_dates(row["visit"], "es")
            assert beside.to_date(0) == in_note.to_date(0), text
            assert row["visit"] != text
        else:
            assert row["visit"] == ""
        days.append(in_note.to_date(0) - date(2021, 3, 12))
    assert days[0] == days[2] != days[1] and days == days[:3] * len(spellings)
    patients = [row["patient"] for row in made[:3]]
    assert patients[0] == patients[2] != patients[1]


MADRID = ZoneInfo("Europe/Madrid")


# Value -> what it is ten days later.
SHIFTED = [
    ("2021-03-12", "2021-03-22"),
    ("2021-03-12T08:30:00.123+01:00", "2021-03-22T08:30:00.123+01:00"),
    ("2021-03-12 08:30:00 UTC", "2021-03-22 08:30:00 UTC"),
    ("12/03/2021 8:30", "22/03/2021 8:30"),
    ("20210312", "20210322"),
    ("20210312083000.000", "20210322083000.000"),
    ("20210312T0830Z", "20210322T0830Z"),
    (date(2021, 3, 12), date(2021, 3, 22)),
    (datetime(2021, 3, 26, 8, tzinfo=MADRID), datetime(2021, 4, 5, 8, tzinfo=MADRID)),
    (20210312, 20210322),
    (20210312.0, 20210322.0),
    (1615536000, 1615536000 + 864_000),
    (1615536000000, 1615536000000 + 864_000_000),
    ("  ", "  "),
    # What is not known as a date is removed, and so is what stands for "unknown", "never".
    ("desconocida", None),
    ("00/00/0000", None),
    ("12/03", None),
    ("3.5", None),
    (True, None),
    (3.5, None),
    (float("nan"), None),
    (timedelta(1), None),
    (b"2021-03-12", None),
    ("9999-12-31", None),
    ("31/12/2999", None),
    ("01/01/1900", None),
    (date(1970, 1, 1), None),
    (datetime(9999, 12, 31, tzinfo=UTC), None),
    (0, None),
]


def test_shifted_values():
    context = SurrogateContext(Secret(b"k" * 16, "p"), "es", dates=DateShift(10))
    shifted = [(value, wanted, shift_value(value, context)) for value, wanted in SHIFTED]
    wrong = [row for row in shifted if row[1] != row[2] or type(row[1]) is not type(row[2])]
    assert wrong == []


def test_dates_of_columns_move_with_those_of_the_note(tmp_path):
    rows = [{"patient": n, "day": "2021-03-12", "text": "Visita 12/03/2021."} for n in range(5)]
    source = write(tmp_path / "in.jsonl", rows)
    options = (source, "out.jsonl", *PATIENT, "--date-column", "day", "--overwrite")
    for weekdays in (True, False):
        policy = f"keep_weekdays: {weekdays}\noperators:\n  FECHAS: surrogate\n"
        (tmp_path / "policy.yml").write_text(policy.lower().replace("fechas", "FECHAS"))
        succeeds(*options, "--policy", "policy.yml")
        days = [date.fromisoformat(row["day"]) for row in read(tmp_path / "out.jsonl")]
        texts = [row["text"] for row in read(tmp_path / "out.jsonl")]
        assert texts == [f"Visita {day:%d/%m/%Y}." for day in days]
        assert all((day - date(2021, 3, 12)).days % 7 == 0 for day in days) is weekdays


def test_parquet_dates_and_patients(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    seen = datetime(2021, 3, 12, 23, 30, tzinfo=UTC)
    schema = pa.schema(
        [
            pa.field("patient", pa.float64()),
            pa.field("seen", pa.timestamp("us", "Europe/Madrid"), nullable=False),
            pa.field("born", pa.date32()),
            pa.field("visit", pa.struct([("day", pa.date32()), ("ward", pa.string())])),
            pa.field("text", pa.string()),
        ]
    )
    row = {"patient": 17.0, "seen": seen, "born": date(1948, 5, 12)}
    row |= {"visit": {"day": date(2021, 3, 12), "ward": "UCI"}, "text": "Nació el 12/5/48."}
    rows = [row, {**row, "seen": datetime(9999, 12, 31, tzinfo=UTC)}, row]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), "a.parquet")
    options = (*PATIENT, "--known", "birth_date=born", "--keep", "visit.ward")
    said = fails("a.parquet", "out.parquet", *options)
    assert "visit.day: dates" in said and "seen: dates" in said and "visit.ward" not in said
    options = (*options, "--date-column", "seen", "--date-column", "visit.day")
    succeeds("a.parquet", "out.parquet", *options)
    out = pq.read_table("out.parquet")
    assert out.schema.field("seen").type == schema.field("seen").type
    assert out.schema.names == ["patient", "seen", "visit", "text"]
    first, second, _ = out.to_pylist()
    moved = first["seen"].date() - seen.astimezone(MADRID).date()
    assert moved and first["visit"] == {"day": date(2021, 3, 12) + moved, "ward": "UCI"}
    assert second["seen"] is None and len(first["patient"]) == 20
    assert "48" not in first["text"]


def test_leaks_of_parquet_dates_by_value(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for value in (
        datetime(2018, 5, 4, 8),
        date(2018, 5, 4),
        datetime(2018, 5, 3, 22, tzinfo=UTC),  # midnight in Madrid
    ):
        row = {"seen": value, "text": "Revisión el 4 de mayo de 2018."}
        pq.write_table(pa.Table.from_pylist([row]), "a.parquet")
        said = fails("a.parquet", "out.parquet", "--keep", "seen")
        assert "row 1: PHI of this record (FECHAS) is in column 'seen'" in said, value
        assert not (tmp_path / "out.parquet").exists()


# Note, and what must not stand beside it.
LEAKS = [
    ("Revisión 04/05/2018.", "2018-05-04"),
    ("Revisión 04/05/2018.", "4 de mayo de 2018"),
    ("Revisión 04/05/2018.", {"a": [{"b": "visto el 4-5-18"}]}),
    ("Revisión 04/05/2018.", 20180504),
    ("Revisión 04/05/2018.", "20180504083000"),
    ("Tel.: +34 612 345 678.", 612345678),
    ("Tel.: 612 34 56 78.", 612345678.0),
    ("Tel.: 612345678.", "0034-612-345-678"),
    ("NHC: 0012345678.", 12345678),
    ("DNI: 12345678Z.", 12345678),
    ("Paciente: Marta García Gil.", "GARCIA GIL, MARTA"),
    ("Paciente: Marta García Gil.", "marta"),
    ("Paciente: Marta García Gil.", "Sra. Gil García"),
]


def test_leaks_by_value(tmp_path):
    rows = [{"id": "a", "x": 1, "text": "neumonía"}]
    rows += [{"id": f"b{i}", "x": x, "text": text} for i, (text, x) in enumerate(LEAKS, start=2)]
    source = write(tmp_path / "in.jsonl", rows)
    options = ("--id-column", "id", "--keep", "x")
    said = fails(source, "out.jsonl", *options)
    assert "line 2 (b2): PHI of this record" in said and "is in column 'x'" in said
    assert not list(tmp_path.glob("*out.jsonl*"))
    succeeds(source, "out.jsonl", *options, "--skip-bad")
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == ["a"]
    audit = json.loads((tmp_path / "out.jsonl.audit.json").read_text("utf-8"))
    n = len(LEAKS)
    assert audit["records"] == {"read": n + 1, "written": 1, "skipped": n, "empty": 0}
    refused = [(one["place"], one["id"]) for one in audit["refused"]]
    assert refused == [(f"line {i}", f"b{i}") for i in range(2, n + 2)]
    # Long enough not to be in a hash by chance.
    words = ("Marta", "García", "2018-05", "612345", "612 34", "612-345")
    assert not any(word in str(audit) for word in words)


def test_other_values_are_no_leaks(tmp_path):
    text = "Paciente: Marta García Gil. Tel.: 612345678. Revisión 04/05/2018."
    values = ["2018-05-05", 612345679, "Neumología", 37.5, "Ana Ruiz", True]
    source = write(tmp_path / "in.jsonl", [{"x": value, "text": text} for value in values])
    succeeds(source, "out.jsonl", "--keep", "x")
    assert [row["x"] for row in read(tmp_path / "out.jsonl")] == values


def test_birth_dates_by_language(tmp_path):
    for lang, text, iso in (
        ("es", "Nació el 12 de mayo de 1948.", "1948-05-12"),
        ("en", "Born on December 5, 1948.", "1948-12-05"),
    ):
        rows = [{"born": value, "text": text} for value in ("12/05/1948", iso)]
        source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
        succeeds(source, out, "--known", "birth_date=born", "--overwrite", lang=lang)
        assert "1948" not in out.read_text()
        audit = json.loads((tmp_path / "out.jsonl.audit.json").read_text())
        found = audit["notes"]["detectors"].items()
        assert sum(n for names, n in found if "known_patient" in names) == 2, found


def test_cp1252(tmp_path):
    (tmp_path / "in.csv").write_bytes("id;text\n1;Paciente: Íñigo Núñez\n".encode("cp1252"))
    said = fails("in.csv", "out.csv", "--id-column", "id")
    assert "line 2: not UTF-8; --encoding says which it is" in said
    succeeds("in.csv", "out.csv", "--id-column", "id", "--encoding", "cp1252")
    assert "[NOMBRE" in (tmp_path / "out.csv").read_text("utf-8")
    assert "no column 'nota'; it has id, text" in fails("in.csv", "o.csv", "--text-column", "nota")


@pytest.mark.parametrize("key", [True, False])
def test_what_needs_a_key(key, tmp_path, monkeypatch):
    source = write(tmp_path / "in.jsonl", [{"patient": " ", "day": "2021-03-12", "text": "x"}])
    if not key:
        monkeypatch.delenv("BIOCLIN_DEID_KEY")
    for options in ((*PATIENT, "--drop", "day"), ("--date-column", "day", "--drop", "patient")):
        said = fails(source, "out.jsonl", *options) if not key else run(source, "o", *options)[1]
        assert ("needs a secret key" in said) is not key
    if key:
        said = fails(source, "out.jsonl", *PATIENT, "--drop", "day")
        assert "line 1: no 'patient' (empty)" in said
        said = succeeds(
            source, "out.jsonl", "--drop", "patient", "--date-column", "day", "--overwrite"
        )
        assert "without --patient-column: the dates of each record move by another" in said
    else:
        succeeds(source, "out.jsonl", "--drop", "patient", "--keep", "day")


def test_an_unclosed_quote_loses_no_count(tmp_path):
    lines = [f"{i},nota {i}" for i in range(1, 300)]
    lines[1] = '2,"nota'
    (tmp_path / "in.csv").write_text("\n".join(["id,text", *lines, ""]))
    assert "line 3: not CSV" in fails("in.csv", "out.csv", "--id-column", "id")
    said = succeeds("in.csv", "out.csv", "--id-column", "id", "--skip-bad")
    assert "skipped: 1 of 299 records" in said
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [
            str(i) for i in range(1, 300) if i != 2
        ]


def test_a_second_run_on_one_output_stops(tmp_path):
    source = write(tmp_path / "in.jsonl", [{"text": "DNI: 12345678Z"}])
    before = set(tmp_path.iterdir())
    with lock_output(tmp_path / "out.jsonl"):
        said = fails(source, "out.jsonl", "--overwrite")
        assert (
            said == "bioclin: out.jsonl: another run is writing it; wait until that has ended, "
            "or give another name"
        )
    assert set(tmp_path.iterdir()) == before


def test_another_spelling_in_the_note_is_a_leak():
    hidden = Hidden([("FECHAS", "12/03/2021"), ("TEL", "+34 612 345 678")], "es")
    assert hidden.find_in_note("visto el 2021-03-12") == ["FECHAS"]
    assert hidden.find_in_note("llamar al 612.34.56.78") == ["TEL"]
    assert hidden.find_in_note("visto el 13/03/2021, plaquetas 345.678") == []


def test_dates_are_not_kept_on_one_side_and_shifted_on_the_other(tmp_path):
    source = write(tmp_path / "in.jsonl", [{"day": "2021-03-12", "text": "Visita 12/03/2021"}])
    (tmp_path / "policy.yml").write_text("operators:\n  FECHAS: keep\n")
    options = (source, "out.jsonl", "--policy", "policy.yml")
    assert "the policy keeps the dates of the notes" in fails(*options, "--date-column", "day")
    assert "--keep day: dates, which show how" in succeeds(*options, "--keep", "day")


def test_another_encoding_is_not_resumed(tmp_path):
    rows = [f"{i},Paciente: Marta Gil" for i in range(150)]
    rows[120] = "120,x,y"
    (tmp_path / "in.csv").write_text("\n".join(["id,text", *rows]))
    options = ("in.csv", "out.csv", "--id-column", "id")
    assert "line 122: 3 columns" in fails(*options)
    said = fails(*options, "--resume", "--skip-bad", "--encoding", "cp1252")
    assert "not what they were: encoding" in said
    succeeds(*options, "--resume", "--skip-bad")
