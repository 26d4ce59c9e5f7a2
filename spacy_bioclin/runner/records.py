"""Notes in files: reading them one at a time, and writing them back in the form they came in.

A form knows one kind of file. A record is a row of columns; a note that is a file of its own has
the columns `file` (its name) and `text`.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..corpora.files import read_text
from ..errors import BioclinError

Row = dict[str, Any]
FILE, TEXT = "file", "text"


class Columns(NamedTuple):
    """What the columns of a table are.

    text (str): The note.
    id (str | None): The record's id.
    patient (str | None): The patient's id.
    known (tuple[tuple[str, str], ...]): (what, column) of data known about the patient.
    drop (frozenset[str]): Columns that do not go into the output; those of `known` are among them.
    """

    text: str = TEXT
    id: str | None = None
    patient: str | None = None
    known: tuple[tuple[str, str], ...] = ()
    drop: frozenset[str] = frozenset()

    @property
    def identifying(self) -> list[str]:
        """RETURNS (list[str]): Those of the record's id and the patient's."""
        return [name for name in (self.id, self.patient) if name is not None]

    @property
    def named(self) -> list[str]:
        """RETURNS (list[str]): All columns that someone gave the name of."""
        return list(dict.fromkeys([self.text, *self.identifying, *sorted(self.drop)]))


class Record(NamedTuple):
    """A note and what stands beside it.

    number (int): Position in the input, from 1; unreadable ones count.
    place (str): What tells it from the others and holds no PHI: "line 7".
    row (Row): Column -> value.
    """

    number: int
    place: str
    row: Row


class Unreadable(NamedTuple):
    """A record that cannot be read, and why. The message names the place, never the content."""

    number: int
    place: str
    error: BioclinError


class Form:
    """Base of the forms: a file whose parts are joined by putting them one after the other."""

    # Rows -> bytes of a part, a function that can be sent to another process.
    encode: Callable[[Sequence[Row]], bytes]
    header: tuple[str, ...] | None = None  # names of the columns, where the file says them once

    def __init__(self, path: Path, columns: Columns) -> None:
        """RAISES (BioclinError): The file cannot be read, or a column that was named is missing."""
        self.path = path
        self.columns = columns
        self.done = 0  # how far the input is read, of `total`
        self.total = _size(path)
        self.left_out = 0  # files that are no notes

    def read(self) -> Iterator[Record | Unreadable]:
        """YIELDS (Record | Unreadable): In the order of the input, which is always the same."""
        raise NotImplementedError

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Make the output of its parts, in order."""
        with target.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())

    def fingerprint(self) -> str:
        """RETURNS (str): Changes when the input does: made of size and time of last change."""
        return fingerprint_files([self.path])

    def make_strings(self, names: Iterable[str]) -> None:
        """Columns whose values will be strings in the output, whatever they are in the input."""

    def check_header(self, header: Sequence[str]) -> None:
        """RAISES (BioclinError): A named column is missing, or two have one name."""
        if len(set(header)) < len(header):
            raise BioclinError(f"{self.path}: two columns have one name; rename one of them")
        for name in self.columns.named:
            if name not in header:
                raise BioclinError(
                    f"{self.path}: no column {name!r}; give its name as it stands in the file "
                    "(--text-column says which one holds the notes)"
                )
        self.header = tuple(header)


class TextFiles(Form):
    """A .txt file, or a folder of them at any depth: one note a file."""

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path, columns)
        if columns != Columns():
            raise BioclinError(
                f"{path}: a .txt file has no columns: leave --text-column, --id-column, "
                "--patient-column, --known and --drop out"
            )
        self.encode = encode_lines
        self.total = sum(1 for _ in self._walk())
        if not self.total:
            raise BioclinError(f"{path}: no .txt file in this folder")
        if path.is_dir():
            self.left_out = sum(len(files) for _, _, files in os.walk(path)) - self.total

    def _walk(self) -> Iterator[Path]:
        if not self.path.is_dir():
            yield self.path
            return
        for folder, folders, files in os.walk(self.path, onerror=_raise):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(files) if name.endswith(".txt"))

    def read(self) -> Iterator[Record | Unreadable]:
        top = self.path if self.path.is_dir() else self.path.parent
        for number, path in enumerate(self._walk(), start=1):
            self.done = number
            place = f"file {number:,}"
            name = path.relative_to(top).as_posix()
            try:
                name.encode("utf-8")
                yield Record(number, place, {FILE: name, TEXT: read_text(path)})
            except UnicodeEncodeError:
                error = BioclinError(f"{top}, {place} by name: its name is not UTF-8; rename it")
                yield Unreadable(number, place, error)
            except BioclinError as error:
                yield Unreadable(number, place, error)

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        if self.path.is_dir():
            target.mkdir()
        for part in parts:
            for line in part.splitlines():
                row = json.loads(line)
                path = target / row[FILE] if self.path.is_dir() else target
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(row[TEXT].encode("utf-8"))
        if hasattr(os, "sync"):  # not on Windows
            os.sync()

    def fingerprint(self) -> str:
        return fingerprint_files(self._walk())


class JsonLines(Form):
    """.jsonl: one JSON object a line; empty lines are no records."""

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path, columns)
        self.encode = encode_lines

    def read(self) -> Iterator[Record | Unreadable]:
        number = 0
        for line_number, line in read_lines(self):
            if not line.strip():
                continue
            number += 1
            place = f"line {line_number:,}"
            row, reason = _parse(line, first=line_number == 1)
            reason = reason or find_fault(row, self.columns)
            if reason:
                error = BioclinError(f"{self.path}, {place}: {reason}")
                yield Unreadable(number, place, error)
            else:
                yield Record(number, place, row)


def read_lines(form: Form) -> Iterator[tuple[int, bytes]]:
    """Read a file line by line while `form.done` says how far.

    YIELDS (tuple[int, bytes]): Number of the line from 1, and the line with its end.
    RAISES (BioclinError): The file cannot be read.
    """
    form.done = 0
    try:
        with form.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                form.done += len(line)
                yield number, line
    except OSError as error:
        raise BioclinError(f"{form.path}: cannot be read ({error.strerror})") from None


def _parse(line: bytes, *, first: bool) -> tuple[Row, str]:
    """RETURNS (tuple[Row, str]): The object of a line, and what is wrong with it."""
    try:
        row = json.loads(line.decode("utf-8-sig" if first else "utf-8"))
        if b"\\u" in line:  # half of a surrogate pair cannot be written as UTF-8
            json.dumps(row, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        return {}, "not UTF-8"
    except (ValueError, RecursionError):
        return {}, "not JSON"
    return (row, "") if isinstance(row, dict) else ({}, "not a JSON object")


def find_fault(row: Row, columns: Columns) -> str:
    """RETURNS (str): What is wrong with a record, or ""."""
    for name in (columns.text, *columns.identifying):
        if row.get(name) is None:
            return f"no {name!r} (missing or null)"
    if not isinstance(row[columns.text], str):
        return f"{columns.text!r} is no string"
    return ""


def encode_lines(rows: Sequence[Row]) -> bytes:
    """RETURNS (bytes): A JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None


def _raise(error: OSError) -> None:
    raise BioclinError(f"{error.filename}: cannot be read ({error.strerror})")


def fingerprint_files(paths: Iterable[Path]) -> str:
    """RETURNS (str): Changes with the name, size or time of last change of a file."""
    digest = hashlib.sha256()
    for path in paths:
        info = path.stat()
        line = f"{path} {info.st_size} {info.st_mtime_ns}"
        digest.update(line.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:16]
