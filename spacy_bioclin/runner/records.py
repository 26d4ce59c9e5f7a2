"""Read notes from files one at a time, and write them in the form that they came in.

A form is a kind of file. A record is a row of columns; a note in a file of its own has the columns
`file` (its name) and `text`.
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
    """Names of the columns of a table.

    text (str): Column with the note.
    id (str | None): Column with the record's id.
    patient (str | None): Column with the patient's id.
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
        """List the columns with the ids of the record and of the patient."""
        return [name for name in (self.id, self.patient) if name is not None]

    @property
    def named(self) -> list[str]:
        """List all columns that the user named."""
        return list(dict.fromkeys([self.text, *self.identifying, *sorted(self.drop)]))


class Record(NamedTuple):
    """A note and the columns beside it.

    number (int): Position in the input, from 1; unreadable records count.
    place (str): What identifies the record without PHI: "line 7".
    row (Row): Column -> value.
    """

    number: int
    place: str
    row: Row


class Unreadable(NamedTuple):
    """A record that cannot be read. The error names its place, never its content."""

    number: int
    place: str
    error: BioclinError


class Form:
    """Base class of the forms: a file that is joined by concatenating its parts."""

    # Rows -> bytes of a part; a function that can be pickled.
    encode: Callable[[Sequence[Row]], bytes]
    header: tuple[str, ...] | None = None  # names of the columns, in a file that has a header

    def __init__(self, path: Path, columns: Columns) -> None:
        """Open the input.

        RAISES (BioclinError): The file cannot be read, or a column that was named is missing.
        """
        self.path = path
        self.columns = columns
        self.done = 0  # how far the input is read, of `total`
        self.total = _size(path)
        self.left_out = 0  # files that are not notes

    def read(self) -> Iterator[Record | Unreadable]:
        """Read the records in the order of the input, which is always the same."""
        raise NotImplementedError

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Make the output from its parts, in order."""
        with target.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())

    def fingerprint(self) -> str:
        """Hash names, sizes and times of last change, to notice a changed input."""
        return fingerprint_files([self.path])

    def make_strings(self, names: Iterable[str]) -> None:
        """Write the values of some columns as strings, whatever they are in the input."""

    def check_header(self, header: Sequence[str]) -> None:
        """Check the names of the columns.

        RAISES (BioclinError): A column that the user named is missing, or two have the same name.
        """
        if len(set(header)) < len(header):
            raise BioclinError(f"{self.path}: two columns have the same name; rename one of them")
        for name in self.columns.named:
            if name not in header:
                raise BioclinError(
                    f"{self.path}: no column {name!r}; give its name as it is in the file "
                    "(--text-column says which one holds the notes)"
                )
        self.header = tuple(header)


class TextFiles(Form):
    """A .txt file, or a folder of them at any depth: one note per file."""

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
        """Read each file as a record."""
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
        """Write a file, or a folder with the files of the input."""
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
        """Hash names, sizes and times of last change of all files."""
        return fingerprint_files(self._walk())


class JsonLines(Form):
    """A .jsonl file: one JSON object per line; empty lines are skipped."""

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path, columns)
        self.encode = encode_lines

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each line as a record."""
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
    """Read a file line by line, and count the bytes in `form.done`.

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
    """Parse the JSON object of a line.

    RETURNS (tuple[Row, str]): The object, and what is wrong with it, or "".
    """
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
    """Check a record.

    RETURNS (str): What is wrong with it, or "".
    """
    for name in (columns.text, *columns.identifying):
        if row.get(name) is None:
            return f"no {name!r} (missing or null)"
    if not isinstance(row[columns.text], str):
        return f"{columns.text!r} is not a string"
    return ""


def encode_lines(rows: Sequence[Row]) -> bytes:
    """Write rows as one JSON object per line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None


def _raise(error: OSError) -> None:
    raise BioclinError(f"{error.filename}: cannot be read ({error.strerror})")


def fingerprint_files(paths: Iterable[Path]) -> str:
    """Hash the names, sizes and times of last change of files."""
    digest = hashlib.sha256()
    for path in paths:
        info = path.stat()
        line = f"{path} {info.st_size} {info.st_mtime_ns}"
        digest.update(line.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:16]
