"""Notes are read from SQLite by a query: pages, keys, bad rows, passwords."""

import json
import sqlite3
from contextlib import closing

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.columns import Columns
from spacy_bioclin.runner.records import NUL_IN_VALUE, Record, Unreadable
from spacy_bioclin.runner.sources import query
from spacy_bioclin.runner.sources.database import make_engine, read_url
from spacy_bioclin.runner.sources.opening import open_notes
from spacy_bioclin.runner.sources.query import IN_QUERY, Query, read_statement
from tests.runner.sources.databases import NOTES, make_sqlite

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
ALL = "SELECT note_id, note_text, ward FROM note"
COLUMNS = Columns(text="note_text", keep=frozenset(["ward"]))


@pytest.fixture
def ask(tmp_path):
    """Open a query of some rows."""

    def open_query(rows=NOTES, sql=ALL, columns=COLUMNS, key="note_id"):
        path, database = tmp_path / "notes.sql", tmp_path / "notes.db"
        path.write_text(sql, "utf-8")
        database.unlink(missing_ok=True)
        url = make_sqlite(database, rows)
        return open_notes(path, columns, database=url, key=key)

    return open_query


def test_rows_are_records_in_the_order_of_the_key(ask):
    form = ask(reversed(NOTES))
    assert isinstance(form, Query) and form.total == 3 and form.id_column == "note_id"
    assert list(form.read()) == [
        Record(i, f"note_id {id}", {"note_id": id, "note_text": text, "ward": ward})
        for i, (id, text, ward) in enumerate(NOTES, start=1)
    ]
    assert form.done == 3


def test_an_empty_key_and_a_nul_are_errors_of_their_rows(ask):
    """An empty id would become the number of the row, which is the id of another note."""
    rows = [("", "Tos.", None), ("1", "Fiebre.", None), ("2", "To\0s.", None), ("  ", "Asma", None)]
    empty, blank, good, nul = ask(rows).read()
    for bad in (empty, blank):
        assert isinstance(bad, Unreadable) and "no 'note_id' (empty)" in str(bad.error)
    assert isinstance(good, Record) and good.row["note_id"] == "1"
    assert "NUL characters" in str(nul.error) and "REPLACE(text, CHAR(0), '')" in str(nul.error)
    assert "--encoding" not in str(nul.error) and "UTF" not in str(nul.error)


def test_no_row_is_lost_between_pages(ask):
    for make_key, n in (
        *((int, n) for n in (0, 1, 499, 500, 501, 1000, 1203)),
        ("{:04}".format, 501),
    ):
        rows = [(make_key(7 * i), f"nota {i}", None) for i in range(n)]
        found = [record.row["note_text"] for record in ask(reversed(rows)).read()]
        assert found == [text for _, text, _ in rows], n


def test_only_the_database_compares_keys(ask, monkeypatch):
    """Without case, as in many databases, "a" is before "B"; Python says otherwise."""
    monkeypatch.setattr(query, "PAGE_ROWS", 2)
    rows = [(key, f"nota {key}", None) for key in ("B", "a", "ñ", "Ab", "á", "10", "9")]
    sql = "SELECT note_id COLLATE NOCASE AS note_id, note_text, ward FROM note"
    with closing(sqlite3.connect(":memory:")) as connection:
        values = ", ".join(f"('{key}')" for key, *_ in rows)
        order = f"SELECT * FROM (VALUES {values}) ORDER BY 1 COLLATE NOCASE"
        wanted = [key for (key,) in connection.execute(order)]
    assert wanted[:4] == ["10", "9", "a", "Ab"] and wanted != sorted(wanted)
    assert [record.row["note_id"] for record in ask(rows, sql).read()] == wanted


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ((1, 2, 2), "1 of 3 rows have the value of another"),
        ((1, None, 3), "1 of 3 rows have no value"),
        ((None, None, 3), "2 of 3 rows have no value"),
        ((1, 2.5, 3), "is float, not an integer or a text"),
        ((b"1", b"2", b"3"), "is bytes, not an integer or a text"),
    ],
)
def test_what_is_no_key_is_refused_without_its_value(keys, fault, ask):
    rows = [(key, f"Prado {i}", None) for i, key in enumerate(keys)]
    with pytest.raises(BioclinError, match=rf"notes.sql: --key note_id: {fault}; name a") as error:
        list(ask(rows).read())
    assert "Prado" not in str(error.value) and error.value.__context__ is None


def test_keys_that_the_database_takes_for_equal_are_refused(ask):
    """In Python "a" is not "A", but a page after "a" would begin behind both."""
    sql = "SELECT note_id COLLATE NOCASE AS note_id, note_text, ward FROM note"
    with pytest.raises(BioclinError, match="1 of 2 rows have the value of another"):
        ask([("a", "x", None), ("A", "y", None)], sql)


def test_bad_rows_are_named(ask, tmp_path):
    rows = [(1, None, None), (2, b"Prado", None), (3, "Prado\0", None), (4, 5, None)]
    rows += [(5, "x" * 2_000_000, None), (6, "Tos.", b"\xff")]
    form = ask([*rows, (7, "Prado \xe1", None)])
    with closing(sqlite3.connect(tmp_path / "notes.db")) as connection, connection:
        text = "CAST(x'507261646FE1' AS TEXT)"  # "Pradoá" in Latin-1
        connection.execute(f"UPDATE note SET note_text = {text} WHERE note_id = 7")
    found = list(form.read())
    assert [type(record) for record in found] == [Unreadable] * 4 + [Record] * 2 + [Unreadable]
    path = tmp_path / "notes.sql"
    assert [str(each.error) for each in found if isinstance(each, Unreadable)] == [
        f"{path}, note_id 1: no 'note_text' (null)",
        f"{path}, note_id 2: 'note_text' is not a string",
        f"{path}, note_id 3: {NUL_IN_VALUE}{IN_QUERY}",
        f"{path}, note_id 4: 'note_text' is not a string",
        f"{path}, note_id 7: 'note_text' is not UTF-8",
    ]
    assert len(found[4].row["note_text"]) == 2_000_000 and found[5].row["ward"] == b"\xff"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT note_id, note_text, ward FROM note;",
        "-- of all; wards\nSELECT note_id, note_text, ward FROM note -- no end",
        "/* ; */ WITH n AS (SELECT * FROM note) SELECT note_id, note_text, ward FROM n ; \n",
        "SELECT note_id, note_text, 'a;b :c %d %(e)s' AS ward FROM note WHERE note_id > 2",
        '(SELECT note_id, note_text, ward AS "ward" FROM note)',
    ],
)
def test_a_query_may_be_written_in_many_ways(sql, ask):
    if sql.startswith("("):
        sql = sql[1:-1]  # SQLite has no brackets around a SELECT
    found = [record.row for record in ask(sql=sql).read()]
    assert [row["note_id"] for row in found] == [3, 7, 20]
    if "a;b" in sql:
        assert {row["ward"] for row in found} == {"a;b :c %d %(e)s"}


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("", "not a query; want one SELECT"),
        ("DELETE FROM note", "not a query; want one SELECT"),
        ("-- SELECT\nUPDATE note SET ward = 1", "not a query; want one SELECT"),
        ("SELECT 1; DROP TABLE note", "more than one statement"),
        ("SELECT ';' AS a; SELECT 2", "more than one statement"),
    ],
)
def test_other_statements_are_refused(sql, fault, tmp_path):
    path = tmp_path / "q.sql"
    path.write_text(sql)
    with pytest.raises(BioclinError, match=fault):
        read_statement(path)


def test_a_query_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "q.sql"
    path.write_bytes(b"\xef\xbb\xbfSELECT 1;\n")
    assert read_statement(path) == "SELECT 1"


def test_the_database_refuses_to_write(tmp_path):
    """Should a statement that writes get so far, as by a function of the database."""
    from sqlalchemy import text
    from sqlalchemy.exc import OperationalError

    from spacy_bioclin.runner.sources.database import connect

    engine = make_engine(read_url(make_sqlite(tmp_path / "notes.db")))
    with connect(engine) as connection, pytest.raises(OperationalError):
        connection.execute(text("DELETE FROM note"))


def test_mistakes_are_explained(ask, tmp_path):
    with pytest.raises(BioclinError, match="no column 'text'; it has note_id, note_text, ward"):
        ask(columns=Columns())
    with pytest.raises(BioclinError, match="no column 'id' for --key; it has note_id, note_text"):
        ask(key="id")
    with pytest.raises(
        BioclinError, match=r"cannot be asked \(OperationalError.*\); check"
    ) as error:
        ask(sql="SELECT note_id FROM Prado")
    assert "Prado" not in str(error.value) and error.value.__context__ is None
    path = tmp_path / "notes.sql"
    with pytest.raises(BioclinError, match=r"a query needs --database .* and --key"):
        open_notes(path, COLUMNS, key="note_id")
    for name in ("none.db", "none/notes.db"):
        with pytest.raises(BioclinError, match="no such file of an SQLite database"):
            open_notes(path, COLUMNS, database=f"sqlite:///{tmp_path / name}", key="note_id")
    assert not (tmp_path / "none.db").exists()  # SQLite would make it
    with pytest.raises(BioclinError, match="--database: only for a query"):
        open_notes(tmp_path / "notes.jsonl", Columns(), database="sqlite://", key="note_id")


def test_passwords_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "p@ss:w/rd ñ")
    url = read_url("postgresql+psycopg://ana:${SECRET}@host:1/notes")
    assert (url.username, url.password, url.host, url.port) == ("ana", "p@ss:w/rd ñ", "host", 1)
    url = read_url("mysql+pymysql://host/notes?password=${SECRET}&charset=utf8mb4")
    assert dict(url.query) == {"password": "p@ss:w/rd ñ", "charset": "utf8mb4"}
    monkeypatch.setenv("URL", "postgresql://ana:open@host/notes")
    assert read_url("${URL}").password == "open"
    for given in (
        "postgresql://ana:Prado@host/notes",
        "postgresql://ana:${SECRET}Prado@host/notes",
        "postgresql://host/notes?password=Prado",
        "mssql+pyodbc://host/notes?PWD=Prado",
        "mssql+pyodbc:///?odbc_connect=DSN%3DPrado",
    ):
        with pytest.raises(BioclinError, match="has a password, which others") as error:
            read_url(given)
        assert "Prado" not in str(error.value)
    with pytest.raises(BioclinError, match="environment variable NONE is not set"):
        read_url("postgresql://ana:${NONE}@host/notes")
    for given in ("Prado", "postgresql//ana:Prado@host", "postgresql://ana@host:Prado/x", ""):
        with pytest.raises(BioclinError, match="not a URL; want one such as") as error:
            read_url(given)
        assert "Prado" not in str(error.value) and error.value.__context__ is None


def test_a_driver_that_is_missing_is_named():
    pytest.importorskip("sqlalchemy")
    for given, name in (("oracle+cx_oracle://host/x", "cx_Oracle"), ("mysql://host/x", "MySQLdb")):
        with pytest.raises(BioclinError, match=rf"driver is not installed \(no module '{name}'\)"):
            make_engine(read_url(given))
    with pytest.raises(BioclinError, match=r"cannot be used \(NoSuchModuleError\)"):
        make_engine(read_url("prado://host/x"))


def test_what_is_recorded_has_no_url(ask):
    form = ask()
    about = form.describe()
    assert about["database"] == "sqlite" and about["key"] == "note_id"
    assert about["query_columns"] == ["note_id", "note_text", "ward"]
    assert "notes.db" not in json.dumps(about) and "FROM" not in json.dumps(about)
    assert ask(sql=f"{ALL} WHERE 1 = 1").fingerprint() != form.fingerprint()


def test_a_changed_row_changes_what_identifies_it(ask):
    before = list(ask().read())
    assert ask().identify(before) == ask().identify(list(ask().read()))
    for rows in ([*NOTES[:2], (20, "Tos y neumonía", "3, norte")], [*NOTES[1:]], []):
        assert ask().identify(list(ask(rows).read())) != ask().identify(before)
