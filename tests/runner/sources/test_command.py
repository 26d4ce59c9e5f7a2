"""`bioclin run` with a query, a sample, earlier outputs: nothing lost or twice, no secret."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from tests.runner.engines.plugin import install
from tests.runner.fixtures import write_rows
from tests.runner.postgres import run_psql
from tests.runner.sources.databases import make_postgres_url, make_sqlite
from tests.runner.standards.test_omop import DDL

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
SECRET = "Prado-1819"
QUERY = "SELECT note_id, note_text, ward FROM {} WHERE note_id < 1000000"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    nlp = spacy.blank("es")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "SIGN", "pattern": "tos"}])
    folder = tmp_path_factory.mktemp("pipeline") / "model"
    nlp.to_disk(folder)
    return folder


class Database:
    """A table of notes, and how to change it."""

    def __init__(self, folder, connection=None):
        self.folder, self.connection = folder, connection
        self.table = "note" if connection is None else "bioclin_command.note"
        (folder / "notes.sql").write_text(QUERY.format(self.table))
        if connection is None:
            self.url = make_sqlite(folder / "notes.db", ())
        else:
            self.url = make_postgres_url(connection, "${BIOCLIN_TEST_SECRET}")
            columns = "note_id bigint PRIMARY KEY, note_text text, ward text"
            self.change(f"CREATE SCHEMA bioclin_command; CREATE TABLE {self.table} ({columns})")

    def change(self, statements):
        if self.connection is not None:
            run_psql(self.connection, f"{statements};")
            return
        with closing(sqlite3.connect(self.folder / "notes.db")) as connection:
            connection.executescript(f"{statements};")

    def fill(self, numbers):
        for start in range(0, len(numbers), 1000):
            rows = (f"({n}, 'Nota {n} con tos.', 'w{n}')" for n in numbers[start : start + 1000])
            self.change(f"INSERT INTO {self.table} VALUES {', '.join(rows)}")

    def arguments(self, *options):
        columns = ("--text-column", "note_text", "--keep", "ward", "--key", "note_id")
        return [self.folder / "notes.sql", "--database", self.url, *columns, *options]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("database")
    monkeypatch.setenv("BIOCLIN_TEST_SECRET", SECRET)
    if request.param == "sqlite":
        yield Database(folder)
        return
    pytest.importorskip("psycopg", reason="psycopg, the driver of PostgreSQL, is not installed")
    connection = request.getfixturevalue("postgres")
    drop = "DROP SCHEMA IF EXISTS bioclin_command CASCADE;"
    run_psql(connection, drop)
    yield Database(folder, connection)
    run_psql(connection, drop)


def run(pipeline, source, out, *options):
    arguments = ["run", pipeline, source, out, *options]
    return CliRunner().invoke(app, [str(each) for each in arguments])


def succeed(pipeline, source, out, *options):
    done = run(pipeline, source, out, *options)
    assert done.exit_code == 0, done.output
    return done


def ask(pipeline, database, out, *options):
    source, *rest = database.arguments(*options)
    return run(pipeline, source, out, *rest)


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_all(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_query_is_annotated(pipeline, database, tmp_path):
    database.fill(range(1, 8))
    done = ask(pipeline, database, tmp_path / "out.jsonl", "--entity-text")
    assert done.exit_code == 0, done.output
    assert [
        (row["record"], row["id"], row["ward"]) for row in read_lines(tmp_path / "out.jsonl")
    ] == [(n, str(n), f"w{n}") for n in range(1, 8)]
    about = json.loads((tmp_path / "out.jsonl.run.json").read_text())
    assert about["input"]["key"] == "note_id" and about["records"]["written"] == 7
    content = done.output + str(read_all(tmp_path))
    for secret in (SECRET, database.url, "BIOCLIN_TEST_SECRET", "FROM note"):
        assert secret not in content
    done = ask(pipeline, database, tmp_path / "out.jsonl", "--dry-run", "--overwrite")
    assert done.exit_code == 0 and "estimate: 7 notes" in done.stdout
    assert SECRET not in done.output


def test_a_query_that_fails_says_nothing_of_the_database(pipeline, database, tmp_path, monkeypatch):
    database.fill([1])
    monkeypatch.setenv("NOWHERE", f"postgresql+psycopg://ana:{SECRET}@/x?host={tmp_path}")
    source, _, _, *rest = database.arguments()
    for given in ("${NOWHERE}", f"postgresql+psycopg://ana:{SECRET}@127.0.0.1/x"):
        done = run(pipeline, source, tmp_path / "out.jsonl", "--database", given, *rest)
        assert done.exit_code == 1 and SECRET not in done.output and "ana" not in done.output
        [line] = done.stderr.splitlines()
        assert "cannot be asked (OperationalError)" in line or "has a password" in line
    assert read_all(tmp_path) == {}


def test_what_changes_between_two_starts_is_read_again(pipeline, database, tmp_path, monkeypatch):
    """A run ends at a note that cannot be read. Before it goes on, that note is mended, others are
    changed, deleted and added, so that all later notes have other places."""
    monkeypatch.setattr("spacy_bioclin.runner.notes.job.PART_RECORDS", 50)
    monkeypatch.setattr("spacy_bioclin.runner.sources.query.PAGE_ROWS", 50)
    out = tmp_path / "out.jsonl"
    database.fill(range(10, 1_600, 10))
    table = database.table
    database.change(f"UPDATE {table} SET note_text = NULL WHERE note_id = 1200")
    done = ask(pipeline, database, out)
    assert done.exit_code == 1 and "note_id 1200: no 'note_text' (null)" in done.stderr
    assert "2 finished parts are kept" in done.stderr
    database.change(
        f"UPDATE {table} SET note_text = 'Sin tos.' WHERE note_id = 1200;"
        f"UPDATE {table} SET note_text = 'Tos y tos' WHERE note_id = 990;"
        f"DELETE FROM {table} WHERE note_id = 980;"
        f"INSERT INTO {table} VALUES (505, 'Nueva con tos.', 'w'), (2000, 'Con tos.', 'w')"
    )
    done = ask(pipeline, database, out, "--resume")
    assert done.exit_code == 0, done.output
    assert "1 files of the earlier run" in done.stderr  # of parts of 50: the second
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    done = ask(pipeline, database, fresh / "out.jsonl")
    assert done.exit_code == 0, done.output
    assert read_all(fresh) == {
        name: content for name, content in read_all(tmp_path).items() if "fresh" not in name
    }
    ids = [int(row["id"]) for row in read_lines(out)]
    assert ids == sorted({*range(10, 1_600, 10), 505, 2000} - {980})


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_killed_and_resumed(database, tmp_path, monkeypatch):
    """A run that kill -9 ends in its second part is resumed: the output is that of a run that
    nothing disturbed."""
    packages, folder, wanted = (tmp_path / name for name in ("packages", "killed", "wanted"))
    for each in (packages, folder, wanted):
        each.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setattr(sys, "path", list(sys.path))
    install(packages)
    nlp = spacy.blank("es")
    nlp.add_pipe("test_deadly_note")
    nlp.to_disk(tmp_path / "model")
    database.fill(range(3, 3_603, 3))
    change = "UPDATE note SET note_text = '{}' WHERE note_id = 3000"
    database.change(change.format("una vez"))  # the process that reads it ends itself
    out = folder / "out.jsonl"
    source, *rest = database.arguments()
    command = [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "run", tmp_path / "model"]
    command = [str(each) for each in (*command, source, out, *rest)]
    done = subprocess.run(command, stderr=subprocess.PIPE)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert len(list(folder.glob(".out.jsonl.work/*.part"))) == 1
    assert not out.exists()
    assert not any(SECRET.encode() in content for content in read_all(folder).values())
    database.change(change.format("Con tos."))
    for path, options in ((out, ["--resume"]), (wanted / "out.jsonl", [])):
        done = ask(tmp_path / "model", database, path, *options)
        assert done.exit_code == 0, done.output
    assert read_all(folder) == read_all(wanted)
    assert [int(row["id"]) for row in read_lines(out)] == list(range(3, 3_603, 3))


def test_each_night_only_what_is_new(pipeline, tmp_path):
    """Three runs with --since have every note once."""
    rows = [{"id": f"a{n}", "text": f"Nota {n} con tos."} for n in range(9)]
    source = tmp_path / "notes.jsonl"
    write_rows(source, rows[:3])
    options = ("--id-column", "id")
    succeed(pipeline, source, tmp_path / "1.jsonl", *options)
    write_rows(source, rows[:6])
    since = ("--since", tmp_path / "1.jsonl")
    done = succeed(pipeline, source, tmp_path / "2", "--to", "parquet", *options, *since)
    assert "left out: 3 notes that earlier outputs have" in done.stderr
    about = json.loads((tmp_path / "2.run.json").read_text())
    assert about["left_out"] == {"in_earlier_outputs": 3} and about["records"]["written"] == 3
    write_rows(source, rows)
    succeed(pipeline, source, tmp_path / "3.jsonl", *options, *since, "--since", tmp_path / "2")
    ids = [row["id"] for name in ("1.jsonl", "3.jsonl") for row in read_lines(tmp_path / name)]
    assert ids == ["a0", "a1", "a2", "a6", "a7", "a8"]
    done = run(pipeline, source, tmp_path / "1.jsonl", *options, *since, "--overwrite")
    assert done.exit_code == 1 and "is the input" in done.stderr  # it would lose those three
    done = run(pipeline, source, tmp_path / "4.jsonl", *since)
    assert done.exit_code == 1 and "give --id-column" in done.stderr


def test_a_sample_is_the_same_in_each_run(pipeline, tmp_path):
    rows = [{"id": f"a{n}", "text": f"Nota {n} con tos."} for n in range(100)]
    source = write_rows(tmp_path / "notes.jsonl", rows)
    ids = []
    for name, *seed in (("1", "--seed", "5"), ("2", "--seed", "5"), ("3",)):
        out = tmp_path / f"{name}.jsonl"
        options = ("--id-column", "id", "--sample", "20", *seed)
        succeed(pipeline, source, out, *options)
        ids.append([row["id"] for row in read_lines(out)])
        numbers = [int(id[1:]) + 1 for id in ids[-1]]
        assert [row["record"] for row in read_lines(out)] == numbers == sorted(numbers)
    assert [len(set(each)) for each in ids] == [20, 20, 20]
    assert ids[0] == ids[1] != ids[2]
    about = json.loads((tmp_path / "1.jsonl.run.json").read_text())
    assert (about["input"]["sample"], about["input"]["seed"]) == (20, 5)
    options = ("--sample", "20", "--dry-run", "--price", "2.5")
    done = succeed(pipeline, source, tmp_path / "4.jsonl", *options, "--processes", "2")
    assert "estimate: 20 notes; 0.00 h in one process, 0.00 h in 2 processes" in done.stdout
    assert done.stdout.splitlines()[-1] == "cost: 0.00, at 2.50 an hour"
    done = run(pipeline, source, tmp_path / "4.jsonl", "--seed", "1")
    assert done.exit_code == 1 and "--seed: only with --sample" in done.stderr
    done = run(pipeline, source, tmp_path / "4.jsonl", "--price", "1")
    assert done.exit_code == 1 and "--price: only with --dry-run" in done.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_of_tables_is_annotated(ending, pipeline, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for n in (1, 2):
        folder = tmp_path / "notes" / f"ward=w{n}"
        folder.mkdir(parents=True)
        rows = [{"id": f"{n}-{i}", "text": "Con tos.", "n": i} for i in range(3)]
        write_rows(folder / f"part.{ending}", rows)
    out = tmp_path / "out"
    options = ("--to", "parquet", "--id-column", "id", "--keep", "ward", "--keep", "n")
    succeed(pipeline, tmp_path / "notes", out, *options)
    rows = pq.read_table(out / "notes").to_pylist()
    number = int if ending == "parquet" else str
    assert [(row["record"], row["id"], row["ward"], row["n"]) for row in rows] == [
        (3 * n + i - 2, f"{n}-{i}", f"w{n}", number(i)) for n in (1, 2) for i in range(3)
    ]


def test_the_language_is_in_every_output(pipeline, tmp_path):
    pytest.importorskip("py3langid", reason="py3langid is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    spanish = "Paciente con antecedentes de asma que acude por fiebre, tos y disnea de tres días."
    english = "The patient was admitted with fever, cough and shortness of breath for three days."
    rows = [{"id": str(n), "text": text} for n, text in enumerate((spanish, english, "Tos."))]
    source = write_rows(tmp_path / "notes.jsonl", rows)
    succeed(pipeline, source, tmp_path / "out.jsonl")
    found = [row.get("language") for row in read_lines(tmp_path / "out.jsonl")]
    assert found == ["es", "en", None]
    about = json.loads((tmp_path / "out.jsonl.run.json").read_text())
    assert about["languages"] == {"es": 1, "en": 1, "unknown": 1}
    succeed(pipeline, source, tmp_path / "out", "--to", "parquet")
    assert pq.read_table(tmp_path / "out" / "notes")["language"].to_pylist() == found
    succeed(pipeline, source, tmp_path / "out.spacy")
    docs = spacy.tokens.DocBin().from_disk(next((tmp_path / "out.spacy").iterdir()))
    texts = list(docs.get_docs(spacy.blank("es").vocab))
    assert [doc.user_data["note"].get("language") for doc in texts] == found


def test_note_nlp_is_beside_the_notes(pipeline, postgres, tmp_path):
    """Two nights of an OMOP database: its table of notes is read, NOTE_NLP is loaded into it."""
    pytest.importorskip("psycopg", reason="psycopg, the driver of PostgreSQL, is not installed")
    schema = "bioclin_omop"
    run_psql(postgres, f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema};")
    path = f"SET search_path TO {schema};"
    note = "ALTER TABLE note ADD note_text text; INSERT INTO concept VALUES (0);"
    run_psql(postgres, f"{path} {DDL} {note}")
    (tmp_path / "notes.sql").write_text(f"SELECT note_id, note_text FROM {schema}.note")
    (tmp_path / "second.yml").write_text("first_id: 4\n")
    options = ["--to", "omop", "--database", make_postgres_url(postgres), "--key", "note_id"]
    options += ["--text-column", "note_text"]
    more = ["--since", tmp_path / "first.csv", "--settings", tmp_path / "second.yml"]
    nights = (
        ("first", "(70, 'Con tos, mucha tos.'), (8, 'Nada.'), (9, 'Tos y tos.')", []),
        ("second", "(10, 'Otra tos.'), (71, 'Nada.')", more),
    )
    for name, values, new in nights:
        run_psql(postgres, f"{path} INSERT INTO note VALUES {values};")
        out = tmp_path / f"{name}.csv"
        succeed(pipeline, tmp_path / "notes.sql", out, *options, *new)
        copy = "COPY note_nlp FROM STDIN WITH (FORMAT csv, HEADER);"
        run_psql(postgres, f"{path} {copy}\n{out.read_text('utf-8')}\\.\n")
    asked = 'note_nlp_id, note_id, "offset", lexical_variant FROM note_nlp ORDER BY note_nlp_id'
    wanted = ["1|9|6|tos", "2|70|4|tos", "3|70|15|tos", "4|10|5|tos"]
    assert run_psql(postgres, f"{path} SELECT {asked};") == wanted
    run_psql(postgres, f"DROP SCHEMA {schema} CASCADE;")
