"""Notes are read from a real PostgreSQL: its types and order of text, and a server that is away."""

import json
import os
from pathlib import Path
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


KEYS = {
    "bigint": [-1, 7, 2**62],
    "smallint": [-1, 7, 9],
    "numeric": [-1, 7, 2**70],
    "uuid": [str(each) for each in UUIDS],
    "varchar(9)": ["10", "9", "a"],
    "char(5)": ["10   ", "9    ", "a    "],
}
NO_KEYS = {"float4": "1.1", "timestamp": "2026-11-25", "boolean": "t"}


def make_table(postgres, name, type, keys):
    values = ", ".join(f"('{key}', 'nota')" for key in keys)
    table = f"CREATE TABLE {name} (id {type} PRIMARY KEY, text text);"
    run_psql(postgres, f"{table} INSERT INTO {name} VALUES {values};")


def test_keys_of_all_types(ask, postgres, schema, monkeypatch):
    """A page after the last key begins with the next one, whatever Python makes of the type."""
    monkeypatch.setattr(query, "PAGE_ROWS", 1)
    for i, (type, keys) in enumerate(KEYS.items()):
        make_table(postgres, f"{schema}.note{i}", type, keys)
        form = ask(f"SELECT id, text FROM {schema}.note{i}")
        assert [record.row["id"] for record in form.read()] == keys, type
        json.dumps([record.row for record in form.read()])


def test_types_that_are_no_key(ask, postgres, schema):
    for type, value in NO_KEYS.items():
        make_table(postgres, f"{schema}.{type}_", type, [value])
        with pytest.raises(BioclinError, match=r"--key id: is \w+, not an integer or a text"):
            list(ask(f"SELECT id, text FROM {schema}.{type}_").read())


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
    waits = []

    def wait(seconds):  # the server is there again after the second
        waits.append(seconds)
        if len(waits) == 2:
            away.rename(socket)

    monkeypatch.setattr(query, "sleep", wait)
    found += [record.row["id"] for record in rows]
    assert found == list(range(1, 1201)) and waits == list(query.WAITS[:2])

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
    assert waits[2:] == list(query.WAITS)


def find_socket(connection: str) -> Path:
    """Find the socket of the server, through which nobody gets while it has another name."""
    if "BIOCLIN_POSTGRES" in os.environ:
        pytest.skip("the server of BIOCLIN_POSTGRES is not ours to take away")
    host = dict(pair.split("=") for pair in connection.split()).get("host", "")
    [socket] = Path(host).glob(".s.PGSQL.*[0-9]")
    return socket
