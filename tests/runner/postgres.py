"""A PostgreSQL server for tests, where its programs are installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # where Debian puts them
QUICK = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -k"


def find_program(name: str) -> str | None:
    """Find a program of PostgreSQL on the path, or where Debian puts it."""
    return shutil.which(name) or next(
        (str(folder / name) for folder in reversed(FOLDERS) if (folder / name).is_file()), None
    )


@contextmanager
def run_server() -> Iterator[str]:
    """Run a server with an empty database of its own, which no network reaches.

    The server refuses to run as root. It runs as the user `postgres` then.

    YIELDS (str): How to connect: "host=FOLDER user=bioclin dbname=postgres".
    """
    folder = Path(tempfile.mkdtemp(prefix="bioclin-pg-"))
    user = "postgres" if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    initdb, pg_ctl = find_program("initdb"), find_program("pg_ctl")
    assert initdb is not None and pg_ctl is not None
    data = folder / "data"

    def call(*command: str) -> None:
        done = subprocess.run(
            command, user=user, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert done.returncode == 0, done.stderr.decode()

    try:
        locale = ("--no-locale", "-E", "UTF8")
        call(initdb, "-D", str(data), "-U", "bioclin", "-A", "trust", "--no-sync", *locale)
        log = str(folder / "log")
        call(pg_ctl, "-D", str(data), "-w", "-l", log, "-o", f"{QUICK} {folder}", "start")
        try:
            yield f"host={folder} user=bioclin dbname=postgres"
        finally:
            call(pg_ctl, "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """How to connect to a PostgreSQL server: $BIOCLIN_POSTGRES, or one that is started here.

    Tests make schemas of their own in it.
    """
    if given := os.environ.get("BIOCLIN_POSTGRES"):
        yield given
        return
    for name in ("initdb", "pg_ctl", "psql"):
        if find_program(name) is None:
            pytest.skip(f"PostgreSQL is not installed: no program {name}")
    if os.getuid() == 0:
        import pwd

        if "postgres" not in {each.pw_name for each in pwd.getpwall()}:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    with run_server() as connection:
        yield connection


def run_psql(connection: str, script: str) -> list[str]:
    """Run a script in one transaction.

    RETURNS (list[str]): Its output, a line for each row, with | between columns.
    """
    program = find_program("psql")
    assert program is not None
    command = [program, connection, "-qAtX", "-v", "ON_ERROR_STOP=1", "--single-transaction"]
    done = subprocess.run(command, input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
