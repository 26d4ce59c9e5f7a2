"""Reading a text file exactly as it is, and what to do about one that cannot be read."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import BioclinError

BOM = "\ufeff"
# First part of the ids of annotations that hold the layout of a file, for writing it again.
LAYOUT = "layout:"
# Called with the name of a bad file or document and what is wrong with it.
OnError = Callable[[str, BioclinError], None]


def raise_error(name: str, error: BioclinError) -> None:
    """The default `OnError`: the first bad document ends the conversion."""
    raise error


def read_text(path: Path) -> str:
    """Read UTF-8 with nothing changed: byte-order mark, CR and tabs stay, for offsets count them.

    path (Path): The file.
    RETURNS (str): Its text.
    RAISES (BioclinError): The file is missing or is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BioclinError(
            f"{path}, line {line}: not UTF-8 (byte {error.start}); convert the file to UTF-8 first"
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 with nothing changed (no translation of line ends)."""
    path.write_bytes(text.encode("utf-8"))


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
