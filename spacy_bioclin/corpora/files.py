"""Read text files exactly as they are, and name the files of documents."""

import codecs
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import BioclinError
from ..files import check_regular
from ..types import AnnotatedText, Fragment, SpanAnnotation

BOM = "\ufeff"
NUL = (
    "has NUL characters, as UTF-16 has; convert the text to UTF-8 first, or say what it is if the "
    "command has --encoding"
)
# First part of the ids of annotations that hold the layout of a file, for writing it again.
LAYOUT = "layout:"
# Characters of an id that mean something in a path, on any system.
UNSAFE, ESCAPED = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|%]|^\.'), re.compile("%([0-9A-F]{2})")
# Called with the name of a bad file or document and what is wrong with it.
OnError = Callable[[str, BioclinError], None]
Reader = Callable[..., list[AnnotatedText]]


def raise_error(name: str, error: BioclinError) -> None:
    """End the conversion at the first bad document; the default `OnError`."""
    raise error


def skip_errors(read: Reader) -> Reader:
    """Make a reader pass the error of a whole file to `on_error`, as it does for a document.

    read (Reader): Reads a file, and calls `on_error` for bad documents.
    """

    @functools.wraps(read)
    def read_or_skip(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
        refused: list[BioclinError] = []

        def on_document(name: str, error: BioclinError) -> None:
            try:
                on_error(name, error)
            except BioclinError as refusal:
                refused.append(refusal)
                raise

        try:
            return read(path, on_document)
        except BioclinError as error:
            if error in refused:
                raise
            on_error(path.name, error)
            return []

    return read_or_skip


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Read a text with nothing changed: byte-order mark, CR and tabs stay, for offsets count them.

    path (Path): The file.
    encoding (str): Its encoding.
    RETURNS (str): Its text.
    RAISES (BioclinError): The file is missing, is not a file, or has another encoding.
    """
    check_regular(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    return decode(data, encoding, str(path))


def decode(data: bytes, encoding: str, source: str) -> str:
    """Decode a text with nothing changed, see `read_text`.

    source (str): What it comes from, for the error message.
    """
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BioclinError(
            f"{source}, line {line}: not {encoding.upper()} (byte {error.start}); convert the "
            "text to UTF-8 first, or say what it is if the command has --encoding"
        ) from None
    # UTF-16 without a byte-order mark is UTF-8 in which nothing can be found.
    if "\0" in text:
        raise BioclinError(f"{source}: {NUL}")
    return text


def check_encoding(name: str) -> str:
    """Check that an encoding exists, and find its usual name.

    RAISES (BioclinError): There is no such encoding of text.
    """
    try:
        usual = codecs.lookup(name).name
        "".encode(usual)
    except LookupError:
        raise BioclinError(
            f"--encoding {name}: no such encoding; want one such as utf-8, cp1252 or latin-1"
        ) from None
    return usual


def to_file_name(id: str) -> str:
    """Make a file name from a document's id, which may hold anything, even "../x".

    RETURNS (str): The id, with unsafe characters written as %XX. `from_file_name` reverses it.
    """
    return UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", id) or "%"


def from_file_name(name: str) -> str:
    """Read the id of a document from the name, without suffix, of its file."""
    id = ESCAPED.sub(lambda match: chr(int(match[1], 16)), "" if name == "%" else name)
    return id if to_file_name(id) == name else name  # a name that `to_file_name` would not make


def check_offsets(start: str, end: str, text_length: int, where: str) -> Fragment:
    """Read the offsets of a span.

    where (str): File and line, for the error message.
    RAISES (BioclinError): They are not within the text.
    """
    if not int(start) <= int(end) <= text_length:
        raise BioclinError(
            f"{where}: offsets {start}-{end} are not within the text ({text_length} characters)"
        )
    return int(start), int(end)


def get_fragment(span: SpanAnnotation, document: str) -> Fragment:
    """Read the one fragment of a span, for a format that knows no others.

    document (str): Id of the document, for the error message.
    RAISES (BioclinError): The span has several.
    """
    if len(span.fragments) > 1:
        raise BioclinError(f"{document}: {span.id} has several fragments, which the format cannot")
    return span.fragments[0]


def blocks(content: str) -> Iterator[tuple[int, list[str]]]:
    """Split a file at its empty lines.

    YIELDS (tuple[int, list[str]]): Number of the first line, and the lines, of a block.
    """
    block: list[str] = []
    for number, line in enumerate([*content.split("\n"), ""], start=1):
        if line.strip():
            block.append(line.removesuffix("\r"))
        elif block:
            yield number - len(block), block
            block = []
