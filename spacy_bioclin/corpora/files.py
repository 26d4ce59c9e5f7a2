"""Read text files exactly as they are, and name the files of documents."""

import codecs
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..errors import BioclinError, without_context
from ..files import check_regular
from ..types import (
    AnnotatedText,
    Annotation,
    Fragment,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)

BOM = "\ufeff"
NUL = (
    "has NUL characters, as UTF-16 has; convert the text to UTF-8 first, or say what it is if the "
    "command has --encoding"
)
# First part of the ids of annotations that hold the layout of a file, for writing it again.
LAYOUT = "layout:"
# What an id may hold that means something in a path, on any system: separators, wildcards, control
# characters, half surrogate pairs, dots and blanks at an end, names of devices.
UNSAFE = re.compile(
    r'[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\:*?"<>|%]|^[. ]|[. ]\Z|'
    r"^.(?=(?:(?<=c)on|(?<=p)rn|(?<=a)ux|(?<=n)ul|(?<=c)om\d|(?<=l)pt\d)(?:\.|\Z))",
    re.IGNORECASE,
)
ESCAPED = re.compile("(?:%[0-9A-F]{2})+")
PATH_UNIT = re.compile("%[0-9A-F]{2}|.", re.DOTALL)
PART_BYTES = 200  # of a name, without suffix; a longer one is divided
MAX_MESSAGE = 500  # characters
# Control characters and the like, which XML 1.0 has no way to write.
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
OFFSET = re.compile("[0-9]{1,18}")  # str.isdigit is also true of "²", which int refuses
# Called with the name of a bad file or document and what is wrong with it.
OnError = Callable[[str, BioclinError], None]
Reader = Callable[..., list[AnnotatedText]]


def raise_error(name: str, error: BioclinError) -> None:
    """End the conversion at the first bad document; the default `OnError`."""
    raise error


def skip_errors(read: Reader) -> Reader:
    """Make a reader pass the error of a whole file to `on_error`, as it does for a document.

    Whatever a reader or its library stumbles over becomes a `BioclinError` that names the file and
    holds nothing of its content.

    read (Reader): Reads a file, and calls `on_error` for bad documents.
    """

    @functools.wraps(read)
    def read_or_skip(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
        refused: list[BioclinError] = []

        def on_document(name: str, error: BioclinError) -> None:
            try:
                with without_context():
                    on_error(name, _shorten(error))
            except BioclinError as refusal:
                refused.append(refusal)
                raise

        try:
            with without_context():
                documents = read(path, on_document)
                sound = [check_document(each, path, on_document) for each in documents]
                return list(itertools.compress(documents, sound))
        except BioclinError as error:
            if error in refused:
                raise
            found = _shorten(error)
        except Exception as error:
            found = BioclinError(f"{path}: {describe_damage(error)}")
        on_error(path.name, found)
        return []

    return read_or_skip


def _shorten(error: BioclinError) -> BioclinError:
    """Cut a message that quotes a name of any length from a file."""
    message = str(error)
    return error if len(message) <= MAX_MESSAGE else BioclinError(f"{message[:MAX_MESSAGE]}…")


def check_document(document: AnnotatedText, path: Path, on_error: OnError) -> bool:
    """Check what no reader may pass on, whatever its library lets through: values of other types,
    half surrogate pairs, which no file of Docs can hold, and offsets outside the text.

    document (AnnotatedText): What a reader made.
    path (Path): Its file, for the error message.
    on_error (OnError): Called if the document is bad.
    RETURNS (bool): Whether it is good.
    """
    try:
        for annotation in document.annotations:
            if isinstance(annotation, SpanAnnotation):
                if type(annotation.concept_ids) is not tuple or not annotation.fragments:
                    raise TypeError
                for start, end in annotation.fragments:
                    if type(start) is not int or type(end) is not int:
                        raise TypeError
                    if not 0 <= start <= end <= len(document.text):
                        raise ValueError
        strings = (document.id, document.text, document.source)
        "".join((*strings, *_list_strings(document.annotations))).encode("utf-8")
    except (TypeError, ValueError) as error:
        on_error(path.name, BioclinError(f"{path}: {describe_damage(error)}"))
        return False
    return True


def _list_strings(annotations: Iterable[Annotation]) -> Iterator[str]:
    """List the ids, labels and texts of annotations."""
    for annotation in annotations:
        if isinstance(annotation, SpanAnnotation):
            yield from (annotation.id, annotation.label, annotation.surface)
            yield from annotation.concept_ids
        elif isinstance(annotation, RelationAnnotation):
            yield from (annotation.id, annotation.label)
            yield from (string for role, target in annotation.args for string in (role, target))
        else:
            yield from annotation


def describe_damage(error: Exception) -> str:
    """Describe what a library stumbled over, without its message, which may quote the file."""
    return (
        f"cannot be read ({type(error).__name__}): damaged, or of another format; get or make the "
        "file again"
    )


@without_context()
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


@without_context()
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


def to_file_path(id: str, number: int = 1) -> str:
    """Make the path, without suffix, of a document's files from its id, which may hold anything.

    number (int): From 2 on if other ids differ from it in case alone.
    RETURNS (str): A name, in folders if it is long; unsafe characters are written as %XX, by their
        UTF-8 bytes. `from_file_path` reverses it.
    """
    end = "" if number == 1 else f"%~{number}"
    parts, size = [""], 0
    for unit in PATH_UNIT.findall(UNSAFE.sub(_escape, id) or "%"):
        size += len(unit.encode("utf-8"))
        if size > PART_BYTES:
            parts.append("")
            size = len(unit.encode("utf-8"))
        parts[-1] += unit
    return "%/".join(parts) + end


def from_file_path(path: Path) -> str:
    """Read the id of a document from the path of one of its files."""
    name = path.stem
    for parent in path.parents:
        if not parent.name.endswith("%") or parent.name == "%":
            break
        name = f"{parent.name}/{name}"
    plain, _, number = name.rpartition("%~")
    if not plain or not number.isascii() or not number.isdecimal():
        plain, number = name, "1"
    try:
        joined = "" if plain == "%" else plain.replace("%/", "")
        id = ESCAPED.sub(lambda match: _unescape(match[0]), joined)
        if to_file_path(id, int(number)) == name:
            return id
    except UnicodeError:
        pass
    return path.stem  # a name that `to_file_path` would not make


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def _unescape(escaped: str) -> str:
    return bytes.fromhex(escaped.replace("%", "")).decode("utf-8", "surrogatepass")


def is_offset(text: str) -> bool:
    """Tell whether a string is a number that can be an offset."""
    return OFFSET.fullmatch(text) is not None


def check_offsets(start: object, end: object, text_length: int, where: str) -> Fragment:
    """Read the offsets of a span.

    start, end (object): Numbers, or strings for which `is_offset` is true.
    where (str): File and line, for the error message.
    RAISES (BioclinError): They are not within the text.
    """
    if not (is_offset(str(start)) and is_offset(str(end))):  # -1, 1.5, True
        raise BioclinError(f"{where}: an offset is not a whole number of characters")
    first, behind = int(str(start)), int(str(end))
    if not first <= behind <= text_length:
        raise BioclinError(
            f"{where}: offsets {first}-{behind} are not within the text ({text_length} characters)"
        )
    return first, behind


def check_no_entities(xml: str, source: str) -> None:
    """Refuse XML that defines entities: they can read other files, or grow without end.

    RAISES (BioclinError): It does.
    """
    if "<!ENTITY" in xml:
        raise BioclinError(
            f"{source}: defines XML entities (<!ENTITY), which no corpus needs; remove them"
        )


def list_writable(document: AnnotatedText, forbidden: str = "") -> list[SpanAnnotation]:
    """List the spans of one fragment, for a format that cannot hold others.

    `write_corpus` counts the spans that are left out.

    forbidden (str): Characters that a label cannot have.
    RETURNS (list[SpanAnnotation]): The spans, in file order; also without those that have no label.
    """
    return [
        span
        for span in document.annotations
        if isinstance(span, SpanAnnotation)
        and len(span.fragments) == 1
        and span.label.strip()
        and not set(span.label) & set(forbidden)
    ]


def check_xml_characters(document: AnnotatedText, remedy: str) -> None:
    """Refuse a document that XML cannot hold, because it has characters such as form feeds.

    remedy (str): What to write instead, for the error message.
    RAISES (BioclinError): The text, or what is annotated, has such a character.
    """
    written = (a for a in document.annotations if not isinstance(a, OtherAnnotation))
    strings = (document.id, document.text, *_list_strings(written))
    if found := NOT_IN_XML.search("\n".join(strings)):
        raise BioclinError(
            f"{document.id}: XML cannot hold the character U+{ord(found[0]):04X}; "
            f"{remedy}, or remove it from the text before it is annotated"
        )


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
