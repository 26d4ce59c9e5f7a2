"""Read notes from files one at a time, and write them in the form that they came in.

A form is a kind of file. A record is a row of columns; a note in a file of its own has the columns
`file` (its name) and `text`.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from ..corpora.files import BOM, NUL, check_encoding, read_text
from ..errors import BioclinError
from ..files import NOT_REGULAR, walk_files
from ..outputs import write_new
from .carried import BadRow, encode_lines, parse_row
from .columns import FILE, TEXT, Columns, Row, check_named, show_paths

UTF_8 = "utf-8"
# The longest line that is read; without a limit, a file without line ends would fill the memory.
MAX_LINE_CHARS = 20_000_000
# Where text was decoded, or is in a database, so that --encoding is no remedy.
NUL_IN_VALUE = "the note has NUL characters, which are no text; take them out"


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


def write_parts(parts: Iterable[bytes], target: Path) -> None:
    """Write the parts of an output to a file, one after the other."""
    with target.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


class Form:
    """Base class of the forms: a file that is joined by concatenating its parts."""

    # Rows -> bytes of a part; a function that can be pickled.
    encode: Callable[[Sequence[Row]], bytes]
    # Paths of the columns (see columns.py), in a file that has a header.
    paths: tuple[str, ...] | None = None

    def __init__(self, path: Path, columns: Columns, encoding: str = UTF_8) -> None:
        """Open the input.

        encoding (str): Encoding of its text. The output is in UTF-8.
        RAISES (BioclinError): The file cannot be read, or a column that was named is missing.
        """
        self.path = path
        self.columns = columns
        self.encoding = check_encoding(encoding)
        self.done = 0  # how far the input is read, of `total`
        self.total = _size(path)
        self.left_out = 0  # files that are not notes
        self.known: int | None = None  # notes left out that earlier outputs have
        self.id_column = columns.id  # None if the number of a record is its id
        self.types: dict[str, Any] = {}  # of Arrow, by column, for a form that has them

    def read(self) -> Iterator[Record | Unreadable]:
        """Read the records in the order of the input, which is always the same."""
        raise NotImplementedError

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Make the output from its parts, in order."""
        write_parts(parts, target)

    def fingerprint(self) -> str:
        """Hash names, sizes and times of last change, to notice a changed input."""
        return fingerprint_files([self.path])

    def identify(self, records: Sequence[Record | Unreadable]) -> str:
        """Identify the content of records; "" if the fingerprint tells that the input changed."""
        return ""

    def describe(self) -> dict[str, Any]:
        """Describe the input for the record of a run: no path, and nothing of a note."""
        return {"fingerprint": self.fingerprint(), "encoding": self.encoding}

    def count(self) -> int:
        """Count the records, those that cannot be read included."""
        return sum(1 for _ in self.read())

    def read_only(self, names: Iterable[str]) -> None:
        """Let the form leave out all other columns, if that is quicker."""

    def make_strings(self, names: Iterable[str]) -> None:
        """Write the values of some columns as strings, whatever they are in the input."""

    def check_header(self, header: Sequence[str], paths: Sequence[str] | None = None) -> None:
        """Check the names of the columns.

        paths (Sequence[str] | None): Their paths, if there are fields inside columns.
        RAISES (BioclinError): A column that the user named is missing, or two have the same name.
        """
        if len(set(header)) < len(header):
            raise BioclinError(f"{self.path}: two columns have the same name; rename one of them")
        if "" in header:  # of pandas, which writes its index so
            raise BioclinError(
                f"{self.path}: column {list(header).index('') + 1} has no name; give it one, or "
                "leave it out (index=False in pandas)"
            )
        self.paths = tuple(header if paths is None else paths)
        check_named(self.path, self.paths, self.columns)


class TextFiles(Form):
    """A .txt file, or a folder of them at any depth: one note per file."""

    paths = (TEXT,)

    def __init__(self, path: Path, columns: Columns, encoding: str = UTF_8) -> None:
        super().__init__(path, columns, encoding)
        if columns != Columns():
            raise BioclinError(
                f"{path}: a .txt file has no columns: leave out the options that name columns"
            )
        self.encode = encode_lines
        self.id_column = FILE
        self.total = sum(1 for _ in self._walk())
        if not self.total:
            raise BioclinError(f"{path}: no .txt file in this folder")

    def count(self) -> int:
        """Count the files, without reading them."""
        return self.total

    def _walk(self) -> Iterator[tuple[Path, str]]:
        """List the notes, and whatever cannot be read with the reason."""
        if not self.path.is_dir():
            yield self.path, ""
            return
        self.left_out = 0
        for path, fault in walk_files(self.path, lambda path: True):
            if path.name.endswith(".txt") or fault not in ("", NOT_REGULAR):
                yield path, fault
            else:
                self.left_out += 1

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each file as a record."""
        top = self.path if self.path.is_dir() else self.path.parent
        for number, (path, fault) in enumerate(self._walk(), start=1):
            self.done = number
            place = f"file {number:,}"
            name = path.relative_to(top).as_posix()
            if fault:
                yield Unreadable(number, place, BioclinError(f"{path}: {fault}"))
                continue
            try:
                name.encode("utf-8")
                yield Record(number, place, {FILE: name, TEXT: read_text(path, self.encoding)})
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
                if ".." in Path(row[FILE]).parts or Path(row[FILE]).is_absolute():
                    raise BioclinError(f"{target}: a name of a file leads out of the folder")
                write_new(path, row[TEXT].encode("utf-8"))
        if hasattr(os, "sync"):  # not on Windows
            os.sync()

    def fingerprint(self) -> str:
        """Hash names, sizes and times of last change of all files."""
        return fingerprint_files(path for path, _ in self._walk())


class JsonLines(Form):
    """A .jsonl file: one JSON object per line; empty lines are skipped."""

    def __init__(self, path: Path, columns: Columns, encoding: str = UTF_8) -> None:
        super().__init__(path, columns, encoding)
        self.encode = encode_lines

    def read(self) -> Iterator[Record | Unreadable]:
        """Read each line as a record."""
        number = 0
        for line_number, line in read_lines(self):
            if not line.strip():
                continue
            number += 1
            place = f"line {line_number:,}"
            row, reason = _parse(line, self.encoding)
            reason = reason or find_fault(row, self.columns)
            if reason:
                error = BioclinError(f"{self.path}, {place}: {reason}")
                yield Unreadable(number, place, error)
            else:
                yield Record(number, place, row)


def read_lines(form: Form) -> Iterator[tuple[int, str]]:
    """Read a file line by line, and count the bytes in `form.done`.

    YIELDS (tuple[int, str]): Number of the line from 1, and the line with its end. Bytes that are
        not in the encoding become lone surrogates, and a line is cut after `MAX_LINE_CHARS`:
        `find_coding_fault` finds both.
    RAISES (BioclinError): The file cannot be read.
    """
    form.done = number = 0
    fault = ""
    try:
        with form.path.open("rb") as raw:
            file = TextIOWrapper(raw, form.encoding, "surrogateescape", newline="\n")
            while line := file.readline(MAX_LINE_CHARS):
                rest = line
                while rest and len(line) == MAX_LINE_CHARS and not rest.endswith("\n"):
                    rest = file.readline(MAX_LINE_CHARS)
                number += 1
                form.done = raw.tell()
                yield number, line.removeprefix(BOM) if number == 1 else line
    except OSError as error:
        fault = f"cannot be read ({error.strerror})"
    except UnicodeError:  # it holds what cannot be decoded
        fault = f"not {form.encoding.upper()}; is it another one?"
    if fault:
        raise BioclinError(f"{form.path}: {fault}")


def find_coding_fault(text: str, encoding: str) -> str:
    """Check that a text was in the encoding.

    RETURNS (str): What is wrong with it, or "".
    """
    if "\0" in text:
        return NUL
    if len(text) >= MAX_LINE_CHARS:
        return f"longer than {MAX_LINE_CHARS:,} characters"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        remedy = "; --encoding says which it is" if encoding == UTF_8 else ""
        return f"not {encoding.upper()}{remedy}"
    return ""


def _parse(line: str, encoding: str) -> tuple[Row, str]:
    """Parse the JSON object of a line.

    RETURNS (tuple[Row, str]): The object, and what is wrong with it, or "".
    """
    if fault := find_coding_fault(line, encoding):
        return {}, fault
    try:
        row = parse_row(line)
        if "\\u" in line:
            encode_lines([row])
    except UnicodeError:
        return {}, "not UTF-8: half of a surrogate pair, such as \\ud800"
    except BadRow as error:
        return {}, str(error)
    return row, ""


def find_fault(row: Row, columns: Columns) -> str:
    """Check a record.

    RETURNS (str): What is wrong with it, or "".
    """
    for name in (columns.text, *columns.identifying):
        if name not in row:
            return f"no {name!r}; it has {', '.join(show_paths(row))}"
        if row[name] is None:
            return f"no {name!r} (null)"
    for name in columns.identifying:
        if isinstance(row[name], dict | list):
            return f"{name!r} is not an id"
        if not str(row[name]).strip():
            return f"no {name!r} (empty)"
    if not isinstance(row[columns.text], str):
        return f"{columns.text!r} is not a string"
    if "\0" in row[columns.text]:
        return NUL_IN_VALUE
    return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None


def fingerprint_files(paths: Iterable[Path]) -> str:
    """Hash the names, sizes and times of last change of files."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            info = path.stat()
        except OSError:
            info = path.lstat()  # a link that leads nowhere
        line = f"{path} {info.st_size} {info.st_mtime_ns}"
        digest.update(line.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:16]
