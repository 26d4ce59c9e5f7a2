"""Read notes from a database, page by page in the order of a key."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from time import sleep
from typing import Any
from uuid import UUID

from ...corpora.files import BOM, read_text
from ...errors import BioclinError, without_context
from ...files import check_regular
from ..columns import Columns, Row
from ..records import NUL_IN_VALUE, UTF_8, Form, Record, Unreadable, find_fault
from .database import connect, describe_error, import_sqlalchemy, is_lost, make_engine, read_url

PAGE_ROWS = 500
WAITS = (1.0, 2.0, 5.0, 10.0, 20.0)  # seconds before a page is read again
PLAIN = (str, int, float, bytes, list, dict)
# How a query takes NUL characters out of a text.
IN_QUERY = ", in the query: REPLACE(text, CHAR(0), ''), or CHR(0) in Oracle"
# Literals, names in quotation marks, and comments, in which a semicolon ends nothing.
_QUOTED = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\$(\w*)\$.*?\$\1\$|(?P<comment>--[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)


class Query(Form):
    """The rows of a SELECT, sorted by a key.

    A page is read after the last key of the page before, so that no connection is open while notes
    are annotated, and one that is lost costs a page. Only the database compares keys: its order of
    text is not that of Python.
    """

    def __init__(
        self, path: Path, columns: Columns, encoding: str = UTF_8, *, database: str, key: str
    ) -> None:
        """Connect, find the columns of the query, and check its key.

        path (Path): A file with one SELECT.
        database (str): See `read_url`.
        key (str): Column of the query with a different integer or text in every row.
        RAISES (BioclinError): The query cannot be run, or a column is missing or not a key.
        """
        check_regular(path)
        super().__init__(path, columns, encoding)
        if self.encoding != UTF_8:
            raise BioclinError(f"--encoding {encoding}: a database says itself how it writes text")
        self.key = key
        self.id_column = columns.id or key
        self.statement = read_statement(path)
        self.engine = make_engine(read_url(database))
        names = self._find_names()
        self.check_header(names)
        if key not in names:
            raise BioclinError(f"{path}: no column {key!r} for --key; it has {', '.join(names)}")
        self.header = tuple(name for name in names if name in (*columns.named, key))
        sa = import_sqlalchemy()
        fields = [sa.column(name) for name in names]
        self._table = self._text().columns(*fields).subquery("notes")
        self.total = self._check_key()

    def _text(self) -> Any:
        # SQLAlchemy takes ":name" for a parameter.
        return import_sqlalchemy().text(self.statement.replace(":", "\\:"))

    def _find_names(self) -> list[str]:
        """Find the names of the columns."""
        sa = import_sqlalchemy()
        inner = self._text().columns().subquery("notes")
        found = self._fetch(sa.select(sa.text("*")).select_from(inner).where(sa.false()))
        return list(found.keys())

    def _check_key(self) -> int:
        """Count the rows, and check that the key differs in all of them."""
        sa = import_sqlalchemy()
        key = self._table.c[self.key]
        counts = sa.func.count(), sa.func.count(key), sa.func.count(sa.distinct(key))
        [(n_rows, n_keys, n_distinct)] = self._fetch(sa.select(*counts).select_from(self._table))
        for n, what in (
            (n_rows - n_keys, "no value"),
            (n_keys - n_distinct, "the value of another"),
        ):
            if n:
                raise BioclinError(
                    f"{self.path}: --key {self.key}: {n:,} of {n_rows:,} rows have {what}; name a "
                    "column that is unique, or let the query leave such rows out"
                )
        return int(n_rows)

    @without_context()
    def _fetch(self, statement: Any) -> Any:
        """Run a statement once.

        RAISES (BioclinError): The database refuses the connection or the query.
        """
        try:
            with connect(self.engine) as connection:
                return connection.execute(statement).freeze()()
        except Exception as error:  # of a driver too
            raise BioclinError(
                f"{self.path}: the database cannot be asked ({describe_error(error)}); check "
                "--database, and try the query with a program of the database"
            ) from None

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each row as a record."""
        self.done = 0
        last: Any = None
        while page := self._read_page(last):
            for values in page:
                self.done += 1
                yield self._make_record(values)
            last = page[-1][self.key]

    @without_context()
    def _read_page(self, last: Any) -> Sequence[Any]:
        """Read the rows after a key.

        RAISES (BioclinError): The connection is lost, also after some waiting, or a key is not one.
        """
        sa = import_sqlalchemy()
        key = self._table.c[self.key]
        statement = sa.select(*(self._table.c[name] for name in self.header))
        statement = statement.order_by(key).limit(PAGE_ROWS)
        if last is not None:
            statement = statement.where(key > last)
        for wait in (*WAITS, None):
            try:
                with connect(self.engine) as connection:
                    page = connection.execute(statement).mappings().all()
                break
            except Exception as error:  # of a driver too
                if wait is None or not is_lost(error):
                    raise BioclinError(
                        f"{self.path}: the database failed after row {self.done:,} "
                        f"({describe_error(error)}); run the same command again with --resume "
                        "when it is there again"
                    ) from None
            sleep(wait)
        self._check_page(last, [values[self.key] for values in page])
        return page

    def _check_page(self, last: Any, keys: Sequence[Any]) -> None:
        """Check that the next page can begin after the last key of this one."""
        for before, now in zip((last, *keys), keys, strict=False):
            fault = ""
            if isinstance(now, bool) or not isinstance(now, int | str | UUID | Decimal):
                fault = f"is {type(now).__name__}, not an integer or a text"
            elif isinstance(now, str) and not is_utf_8(now):
                fault = "is not UTF-8"
            elif now == before:
                fault = "has a value twice"
            if fault:
                raise BioclinError(
                    f"{self.path}: --key {self.key}: {fault}; name a column that is unique"
                )

    def _make_record(self, values: Any) -> Record | Unreadable:
        """Make the record of a row."""
        key = values[self.key]
        # A number is an id; a text may be anything.
        place = f"{self.key} {key}" if isinstance(key, int) else f"row {self.done:,}"
        row: Row = {name: _to_value(values[name]) for name in self.header}
        reason = find_fault(row, self.columns)
        if reason == NUL_IN_VALUE:
            reason += IN_QUERY
        if isinstance(key, str) and not key.strip():  # its id would be the number of the row
            reason = reason or f"no {self.key!r} (empty)"
        for name, value in row.items():
            if isinstance(value, str) and not is_utf_8(value):
                reason = reason or f"{name!r} is not UTF-8"
        if reason:
            error = BioclinError(f"{self.path}, {place}: {reason}")
            return Unreadable(self.done, place, error)
        return Record(self.done, place, row)

    def count(self) -> int:
        """Count the rows."""
        return self.total

    def identify(self, records: Sequence[Record | Unreadable]) -> str:
        """Hash the rows: those of a database change."""
        digest = hashlib.sha256()
        for record in records:
            row = record.row if isinstance(record, Record) else record.place
            digest.update(repr((record.number, row)).encode("utf-8"))
        return digest.hexdigest()[:16]

    def fingerprint(self) -> str:
        """Hash the query, its key and its columns."""
        content = repr((self.statement, self.key, self.header))
        return hashlib.sha256(content.encode("utf-8")).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """Describe the query; the URL of the database is left out."""
        about = {"database": self.engine.dialect.name, "key": self.key}
        return {**super().describe(), **about, "query_columns": list(self.header)}


def read_statement(path: Path) -> str:
    """Read the SELECT of a file.

    RAISES (BioclinError): It is something else, or there are several statements.
    """
    statement = read_text(path, UTF_8).removeprefix(BOM)
    statement = _QUOTED.sub(lambda match: " " if match["comment"] else match[0], statement)
    statement = statement.strip().rstrip(";").strip()
    bare = _QUOTED.sub("''", statement)
    first = re.match(r"[\s(]*(\w*)", bare)
    if first is None or first[1].upper() not in ("SELECT", "WITH"):
        raise BioclinError(f"{path}: not a query; want one SELECT, which may begin with WITH")
    if ";" in bare:
        raise BioclinError(f"{path}: more than one statement; want one SELECT")
    return statement


def is_utf_8(text: str) -> bool:
    """Check that a text has no lone surrogates, which are bytes that are not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _to_value(value: Any) -> Any:
    """Convert a value to one that every form of output can write, and every process can get."""
    if value is None or isinstance(value, PLAIN):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return int(value)
    return bytes(value) if isinstance(value, memoryview | bytearray) else str(value)
