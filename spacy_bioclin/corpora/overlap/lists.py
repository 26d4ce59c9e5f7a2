"""Lists of documents that training leaves out: a text file with one id a line."""

from collections.abc import Collection, Iterable
from pathlib import Path

from ...errors import BioclinError
from ...files import open_binary
from ...text import show_controls

COMMENT = "#"
MAX_CHARS = 500  # of an id; a longer line is something else, such as a note
MAX_SHOWN = 60  # characters of an id in a message


def read_id_list(path: Path) -> frozenset[str]:
    """Read a list of ids of documents.

    path (Path): A text file with one id a line. Empty lines, and lines that begin with "#", are
        skipped.
    RETURNS (frozenset[str]): The ids; none if the file has comments alone.
    RAISES (BioclinError): There is no such file, it is empty, or it is no list of ids.
    """
    with open_binary(path) as (file, _):
        data = file.read()
    wanted = "want the id of a document on each line, as `bioclin overlap -o` writes them"
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    lines = [line.strip() for line in text.split("\n")]
    for number, line in enumerate(lines, start=1):
        if not _is_line(line):
            raise BioclinError(f"{path}: line {number} is not an id; {wanted}")
    if not any(lines):
        raise BioclinError(f"{path}: is empty; {wanted}, or set leave_out to null")
    return frozenset(line for line in lines if line and not line.startswith(COMMENT))


def format_id_list(ids: Iterable[str], comment: str) -> str:
    """Write a list of ids of documents.

    ids (Iterable[str]): Each is written once, sorted.
    comment (str): The first line.
    RETURNS (str): What `read_id_list` reads.
    RAISES (BioclinError): An id cannot be written on a line, or a document has none.
    """
    ids = sorted(set(ids))
    for id in ids:
        if not id:
            raise BioclinError(
                "documents without an id cannot be listed: `bioclin convert` gives every document "
                "one, so make their corpus with it"
            )
        if not _is_line(id) or id != id.strip() or id.startswith(COMMENT):
            raise BioclinError(
                f"{show_ids([id])}: such an id cannot be written in a list; rename the document in "
                "its corpus, and convert it again"
            )
    return "".join(f"{line}\n" for line in (f"{COMMENT} {show_controls(comment)}", *ids))


def _is_line(text: str) -> bool:
    return text == show_controls(text) and "\n" not in text and len(text) <= MAX_CHARS


def show_ids(ids: Collection[str], most: int = 3) -> str:
    """Name a few documents in a message.

    RETURNS (str): Up to `most` ids, sorted, and how many there are more.
    """
    shown = [
        show_controls(id[:MAX_SHOWN]) + ("…" if len(id) > MAX_SHOWN else "") or "a Doc without id"
        for id in sorted(ids)[:most]
    ]
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return ", ".join(shown) + more
