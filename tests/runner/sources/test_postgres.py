"""Notes are read from a real PostgreSQL: its types and order of text, and a server that is away."""

import json
import os
from pathlib import Path
from threading import Timer
from uuid import UUID

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.sources import query
from spacy_bioclin.runner.sources.opening import open_notes
from tests.runner.postgres import run_psql
from tests.runner.sources.databases import make_postgres_url

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
pytest.importorskip("psycopg", reason="psycopg, the driver of PostgreSQL, is not installed")


@pytest.fixture
def schema(postgres):
    run_psql(postgres, "DROP SCHEMA IF EXISTS bioclin_query CASCADE; CREATE SCHEMA bioclin_query;")
    yield "bioclin_query"
    run_psql(postgres, "DROP SCHEMA bioclin_query CASCADE;")


@pytest.fixture
def ask(postgres, schema, tmp_path):
    def open_query(sql, keep=()):
        path = tmp_path / "notes.sql"
        path.write_text(sql, "utf-8")
        columns = Columns(keep=frozenset(keep))
        return open_notes(path, columns, database=make_postgres_url(postgres), key="id")

    return open_query


UUIDS = [UUID(int=n << 64) for n in (1, 5, 2**40)]


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        ("bigint", [-1, 7, 2**62]),
        ("smallint", [-1, 7, 9]),
        ("numeric", [-1, 7, 2**70]),
        ("uuid", [str(each) for each in UUIDS]),
        ("varchar(9)", ["10", "9", "a"]),
        ("char(5)", ["10   ", "9    ", "a    "]),
    ],
)
def test_keys_of_all_types(type, keys, ask, postgres, schema, monkeypatch):
    """A page after the last key begins with the next one, whatever Python makes of the type."""
    monkeypatch.setattr(query, "PAGE_ROWS", 1)
    values = ", ".join(f"('{key}', 'nota')" for key in keys)
    table = f"CREATE TABLE {schema}.note (id {type} PRIMARY KEY, text text);"
    run_psql(postgres, f"{table} INSERT INTO {schema}.note VALUES {values};")
    form = ask(f"SELECT id, text FROM {schema}.note")
    assert [record.row["id"] for record in form.read()] == keys
    json.dumps([record.row for record in form.read()])


@pytest.mark.parametrize("type", ["float4", "timestamp", "boolean"])
def test_types_that_are_no_key(type, ask, postgres, schema):
    value = {"float4": "1.1", "timestamp": "2026-11-25", "boolean": "t"}[type]
    table = f"CREATE TABLE {schema}.note (id {type} PRIMARY KEY, text text);"
    run_psql(postgres, f"{table} INSERT INTO {schema}.note VALUES ('{value}', 'nota');")
    with pytest.raises(BioclinError, match=r"--key id: is \w+, not an integer or a text"):
        list(ask(f"SELECT id, text FROM {schema}.note").read())


def test_the_order_of_text_is_that_of_the_database(ask, postgres, schema, monkeypatch):
    monkeypatch.setattr(query, "PAGE_ROWS", 2)
    names = ["Zoe", "ana", "Ana", "ñu", "nz", "o-1", "o1", "Ó", "_", "10", "9", "a b", "ab"]
    values = ", ".join(f"('{name}', 'nota')" for name in names)
    table = f'CREATE TABLE {schema}.note (id text COLLATE "es-x-icu" PRIMARY KEY, text text);'
    run_psql(postgres, f"{table} INSERT INTO {schema}.note VALUES {values};")
    wanted = run_psql(postgres, f"SELECT id FROM {schema}.note ORDER BY id;")
    assert wanted != sorted(names) and wanted.index("ana") + 1 == wanted.index("Ana")
    found = [record.row["id"] for record in ask(f"SELECT id, text FROM {schema}.note").read()]
    assert found == wanted


def test_values_that_are_kept_can_be_written(ask):
    sql = """
    SELECT 1 AS id, 'Tos: 10:30, 5 % y \\:x'::text AS text, DATE '2026-11-25' AS day,
        TIMESTAMP '2026-11-25 10:30:00' AS moment, 2.50::numeric AS dose, 3::numeric AS n,
        '{"a": [1]}'::jsonb AS tree, '\\x00ff'::bytea AS bytes, INTERVAL '1 day' AS delay,
        '00000000-0000-0000-0000-000000000001'::uuid AS other
    """
    names = ("day", "moment", "dose", "n", "tree", "bytes", "delay", "other")
    [record] = ask(sql, names).read()
    assert record.row == {
        "id": 1,
        "text": "Tos: 10:30, 5 % y \\:x",
        "day": "2026-11-25",
        "moment": "2026-11-25T10:30:00",
        "dose": "2.50",
        "n": 3,
        "tree": {"a": [1]},
        "bytes": b"\x00\xff",
        "delay": "1 day, 0:00:00",
        "other": "00000000-0000-0000-0000-000000000001",
    }


def test_nothing_is_written(ask, postgres, schema):
    """Neither by a function of the database, nor by a WITH that changes rows."""
    run_psql(postgres, f"CREATE SEQUENCE {schema}.s; CREATE TABLE {schema}.note (id int);")
    with pytest.raises(BioclinError, match=r"cannot be asked \(ReadOnlySqlTransaction, 25006\)"):
        ask(f"SELECT nextval('{schema}.s') AS id, 'x' AS text")
    change = f"WITH n AS (INSERT INTO {schema}.note VALUES (1) RETURNING id) SELECT id, 'x' AS text"
    with pytest.raises(BioclinError, match="cannot be asked"):
        ask(f"{change} FROM n")
    assert run_psql(postgres, f"SELECT count(*) FROM {schema}.note;") == ["0"]


def test_a_server_that_is_away_is_waited_for(ask, postgres, schema, monkeypatch):
    socket = find_socket(postgres)
    sql = f"CREATE TABLE {schema}.note AS SELECT n AS id, 'nota ' || n AS text FROM "
    run_psql(postgres, f"{sql} generate_series(1, 1200) AS n;")
    rows = ask(f"SELECT id, text FROM {schema}.note").read()
    found = [next(rows).row["id"] for _ in range(500)]
    away = socket.with_name("away")
    socket.rename(away)
    timer = Timer(1.5, away.rename, [socket])
    timer.start()
    found += [record.row["id"] for record in rows]
    timer.join()
    assert found == list(range(1, 1201))

    monkeypatch.setattr(query, "WAITS", (0.1,))
    rows = ask(f"SELECT id, text FROM {schema}.note").read()
    for _ in range(500):
        next(rows)
    socket.rename(away)
    try:
        with pytest.raises(BioclinError) as error:
            next(rows)
    finally:
        away.rename(socket)
    wanted = "the database failed after row 500 (OperationalError); run the same command again"
    assert wanted in str(error.value) and "--resume" in str(error.value)
    assert error.value.__context__ is None


def find_socket(connection: str) -> Path:
    """Find the socket of the server, through which nobody gets while it has another name."""
    if "BIOCLIN_POSTGRES" in os.environ:
        pytest.skip("the server of BIOCLIN_POSTGRES is not ours to take away")
    host = dict(pair.split("=") for pair in connection.split()).get("host", "")
    [socket] = Path(host).glob(".s.PGSQL.*[0-9]")
    return socket
