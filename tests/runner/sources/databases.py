"""Databases with notes, made on the spot."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

NOTES = [
    (3, "Paciente con tos.", "UCI"),
    (7, "Sin fiebre.", None),
    (20, "Tos y neumonía.", "3, norte"),
]


def make_sqlite(path: Path, rows: Iterable[tuple[Any, ...]] = NOTES) -> str:
    """Make a database with a table `note`.

    RETURNS (str): Its URL.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE note (note_id, note_text, ward)")
        connection.executemany("INSERT INTO note VALUES (?, ?, ?)", rows)
    return f"sqlite:///{path}"


def make_postgres_url(connection: str, password: str = "") -> str:
    """Make the URL for a connection string of psql.

    password (str): Perhaps "${VARIABLE}".
    """
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(connection)
    user, name = parts.pop("user", ""), parts.pop("dbname", "")
    secret = f":{password}" if password else ""
    rest = "&".join(f"{key}={value}" for key, value in parts.items())
    return f"postgresql+psycopg://{user}{secret}@/{name}?{rest}"
