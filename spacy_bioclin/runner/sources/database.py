"""Connect to a database for reading. Neither its URL nor its own messages are ever shown."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BioclinError, without_context

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

VARIABLE = re.compile(r"\$\{(\w+)\}")
SECRET = re.compile("pass|pwd|secret|token|odbc_connect", re.IGNORECASE)
EXAMPLE = "postgresql+psycopg://USER@HOST/NAME"
# What makes a session read only, where SQLAlchemy has no option for it.
READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY",
}


def import_sqlalchemy() -> Any:
    """Import SQLAlchemy.

    RAISES (BioclinError): It is not installed.
    """
    try:
        import sqlalchemy
    except ModuleNotFoundError:
        raise BioclinError(
            "queries of a database need SQLAlchemy: pip install 'spacy-bioclin[sql]'"
        ) from None
    return sqlalchemy


@without_context()
def read_url(given: str) -> "URL":
    """Read the URL of a database.

    given (str): The URL. `${VARIABLE}` stands for a value of the environment: for all of the URL,
        its password, or a value behind the question mark.
    RAISES (BioclinError): It is not a URL, holds a password, or a variable is not set.
    """
    sa = import_sqlalchemy()
    whole = VARIABLE.fullmatch(given.strip())
    try:
        url = sa.make_url(_look_up(whole[1]) if whole else given)
    except (sa.exc.ArgumentError, ValueError) as error:  # the message quotes the URL
        if isinstance(error, BioclinError):
            raise
        raise BioclinError(f"--database: not a URL; want one such as {EXAMPLE}") from None
    if whole:
        return url
    if url.password is not None:
        url = url.set(password=_fill(str(url.password), is_secret=True))
    values = {
        name: _fill(value, is_secret=bool(SECRET.search(name)))
        for name, value in url.query.items()
        if isinstance(value, str)
    }
    return url.update_query_dict(values)


def _fill(value: str, *, is_secret: bool) -> str:
    """Look a value up, if it is a variable."""
    if variable := VARIABLE.fullmatch(value):
        return _look_up(variable[1])
    if is_secret:
        raise BioclinError(
            "--database: has a password, which others on this machine could see; write "
            "'${VARIABLE}' in its place, with these quotation marks around the URL, and set that "
            "variable"
        )
    return value


def _look_up(name: str) -> str:
    if name not in os.environ:
        raise BioclinError(f"--database: the environment variable {name} is not set; export it")
    return os.environ[name]


@without_context()
def make_engine(url: "URL") -> "Engine":
    """Make the engine, which opens a connection only when it is needed.

    RAISES (BioclinError): The driver is not installed, or the file of an SQLite database is not
        there, which SQLite would make.
    """
    sa = import_sqlalchemy()
    is_sqlite = url.get_backend_name() == "sqlite"
    if is_sqlite and not Path(url.database or "").is_file():
        raise BioclinError("--database: no such file of an SQLite database; correct its path")
    try:
        # No pool: hours may pass between two pages.
        engine: Engine = sa.create_engine(url, poolclass=sa.pool.NullPool, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise BioclinError(
            f"--database: the driver is not installed (no module {error.name!r}); install it with "
            f"pip, or name another in the URL, as in {EXAMPLE}"
        ) from None
    except sa.exc.SQLAlchemyError as error:
        kind = type(error).__name__
        raise BioclinError(
            f"--database: cannot be used ({kind}); want a URL such as {EXAMPLE}"
        ) from None
    if is_sqlite:
        sa.event.listen(engine, "connect", _keep_bytes)
    return engine


def _keep_bytes(connection: Any, record: Any) -> None:
    """Let SQLite give text that is not UTF-8 as lone surrogates, not as an error for all rows."""
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")


@contextmanager
def connect(engine: "Engine") -> Iterator["Connection"]:
    """Open a connection that cannot write, if the database can be told so."""
    dialect = engine.dialect.name
    with engine.connect() as connection:
        if dialect == "postgresql":
            connection.execution_options(postgresql_readonly=True)
        elif dialect in READ_ONLY:
            connection.exec_driver_sql(READ_ONLY[dialect])
        yield connection


def is_lost(error: Exception) -> bool:
    """Check whether an error may come from the connection, so that another one may help."""
    exc = import_sqlalchemy().exc
    if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
        return True
    return isinstance(error, exc.OperationalError | exc.InterfaceError)


def describe_error(error: Exception) -> str:
    """Describe an error of a database without its message, which may quote the query or a value."""
    original = getattr(error, "orig", None)
    code = getattr(original, "sqlstate", None) or getattr(original, "sqlite_errorname", None)
    kind = type(original or error).__name__
    return f"{kind}, {code}" if isinstance(code, str) else kind
