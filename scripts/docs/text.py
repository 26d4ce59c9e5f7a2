"""Write Markdown: tables, and what a docstring says."""

import inspect
import re
from collections.abc import Sequence
from typing import NamedTuple

ENTRY = re.compile(
    r"(?P<name>RETURNS|YIELDS|RAISES|[\w*]+(?:, [\w*]+)*) ?(?:\((?P<type>[^)]*)\))?: "
)


class Entry(NamedTuple):
    """A line of a docstring: an argument, or what is returned or raised."""

    name: str
    type: str
    meaning: str


class Docstring(NamedTuple):
    """What a docstring says: its paragraphs, and its entries in order."""

    paragraphs: list[str]
    entries: list[Entry]


def read_docstring(thing: object) -> Docstring:
    """Read the docstring of a function or class."""
    paragraphs: list[str] = []
    entries: list[Entry] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(getattr(thing, "__doc__", None) or "")):
        text: list[str] = []
        for line in block.splitlines():
            match = ENTRY.match(line)
            if match and (match["type"] is not None or match["name"].isupper()):
                entries.append(Entry(match["name"], match["type"] or "", line[match.end() :]))
            elif line.startswith(" ") and entries and not text:
                entries[-1] = entries[-1]._replace(meaning=f"{entries[-1].meaning} {line.strip()}")
            else:
                text.append(line)
        if text:
            paragraphs.append("\n".join(text))
    return Docstring(paragraphs, entries)


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table of Markdown."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(escape_cell, line))} |\n" for line in lines)


def escape_cell(text: str) -> str:
    """Write a text in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def write_code(text: str) -> str:
    """Write a text as code; nothing for an empty one."""
    return f"`{text}`" if text else ""


def write_docstring(thing: object, *, skip: Sequence[str] = ()) -> str:
    """Write what a docstring says: its paragraphs, then a table.

    skip (Sequence[str]): Arguments that are left out.
    """
    said = read_docstring(thing)
    rows = [
        (write_code(name) if name.islower() else name.capitalize(), write_code(type), meaning)
        for name, type, meaning in said.entries
        if name not in skip
    ]
    table = write_table(("argument", "type", "meaning"), rows) if rows else ""
    return "\n\n".join([*said.paragraphs, table])
