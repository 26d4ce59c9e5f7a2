"""The files of i2b2/VA 2010: concepts, assertions and relations by line and word of a text.

NAME.con has a concept a line, NAME.ast one of its problems with an assertion, NAME.rel two concepts
and their relation:

    c="shortness of breath" 12:4 12:6||t="problem"
    c="shortness of breath" 12:4 12:6||t="problem"||a="present"
    c="nebulizers" 12:0 12:0||r="TrAP"||c="shortness of breath" 12:4 12:6

Lines are counted from 1 and words from 0; the last word is part of the concept. Words are separated
by blanks. The quoted text is in lower case, whatever the note has.

Written from the public documentation, and not tested on the corpus, which needs an agreement.
Uzuner et al. (2011), 2010 i2b2/VA challenge on concepts, assertions, and relations in clinical
text.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import BioclinError
from ...types import (
    AnnotatedText,
    Annotation,
    Fragment,
    NoteAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from ..files import BOM, OnError, from_file_path, raise_error, read_text, skip_errors

NUMBER = "([0-9]{1,9})"
MENTION = rf'c="(.*)" {NUMBER}:{NUMBER} {NUMBER}:{NUMBER}'
CONCEPT = re.compile(rf'{MENTION}\|\|t="([^"]+)"')
ASSERTION = re.compile(rf'{MENTION}\|\|t="([^"]+)"\|\|a="([^"]+)"')
RELATION = re.compile(rf'{MENTION}\|\|r="([^"]+)"\|\|{MENTION}')
SHAPES = {
    CONCEPT: 'c="text" line:word line:word||t="type"',
    ASSERTION: 'c="text" line:word line:word||t="type"||a="assertion"',
    RELATION: 'c="text" line:word line:word||r="type"||c="text" line:word line:word',
}
WORD = re.compile(r"\S+")
# Kind of the notes that carry the assertion about a concept.
ASSERTED = "assertion"
# First line, first word, last line and last word of a concept.
Position = tuple[int, int, int, int]
# Finds the words of a text between two characters.
Split = Callable[[str, int, int], list[Fragment]]


class Files(NamedTuple):
    """The files of a document.

    relations, assertions (Path | None): None if there is no such file.
    """

    text: Path
    concepts: Path
    relations: Path | None
    assertions: Path | None


def parse_i2b2_2010(
    text: str,
    concepts: str,
    relations: str = "",
    assertions: str = "",
    *,
    id: str,
    files: Files,
) -> AnnotatedText:
    """Read the contents of the files of a document.

    text, concepts, relations, assertions (str): The contents.
    id (str): Identifier of the document.
    files (Files): Names of the files, for error messages.
    RETURNS (AnnotatedText): The document; the assertion about a concept is a note. A relation to a
        concept that is not in NAME.con is kept, and counted when Docs are made.
    RAISES (BioclinError): A line is malformed, or an assertion is about no concept; it names file
        and line.
    """
    lines = _find_lines(text)
    spans: list[SpanAnnotation] = []
    ids: dict[Position, str] = {}
    others: list[Annotation] = []
    for where, found in _match_lines(concepts, CONCEPT, str(files.concepts)):
        surface, position = found[1], _read_position(found, 2)
        fragment, surface = _find_fragment(text, lines, position, surface, where)
        spans.append(SpanAnnotation(f"T{len(spans) + 1}", found[6], (fragment,), surface))
        ids.setdefault(position, spans[-1].id)
    for where, found in _match_lines(assertions, ASSERTION, str(files.assertions)):
        target = ids.get(_read_position(found, 2))
        if target is None:
            raise BioclinError(f"{where}: no concept of {files.concepts.name} is at this position")
        others.append(NoteAnnotation("", ASSERTED, target, found[7]))
    found_relations = _match_lines(relations, RELATION, str(files.relations))
    for number, (_, found) in enumerate(found_relations, start=1):
        positions = _read_position(found, 2), _read_position(found, 8)
        args = [ids.get(position) or _name_position(position) for position in positions]
        roles = zip(("Arg1", "Arg2"), args, strict=True)
        others.append(RelationAnnotation(f"R{number}", found[6], tuple(roles)))
    return AnnotatedText(id, text, (*spans, *others), str(files.concepts))


@skip_errors
def read_i2b2_2010(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read the document of a .con file; see `find_i2b2_2010` for where the others are."""
    files = find_i2b2_2010(path)
    contents = [read_text(file) if file else "" for file in files]
    return [parse_i2b2_2010(*contents, id=from_file_path(path), files=files)]


def find_i2b2_2010(path: Path) -> Files:
    """Find the files of a document.

    They are beside NAME.con, or in folders beside its folder, as in the release: concept (or
    concepts), txt, rel and ast. The texts of the test split may be in test_data, beside that.

    path (Path): The .con file.
    RAISES (BioclinError): It is another file, or there is no text.
    """
    if path.suffix != ".con":
        raise BioclinError(f"{path}: the files of i2b2 2010 with concepts end in .con")
    beside = path.parent.parent
    text = path.with_suffix(".txt").name
    folders = [path.parent, beside / "txt", *(beside.parent / f for f in ("test_data", "txt"))]
    folders.append(beside.parent / "test_data" / "txt")
    texts = [folder / text for folder in folders if (folder / text).is_file()]
    if not texts:
        raise BioclinError(
            f"{path}: {text} is neither beside it nor in {beside / 'txt'} nor in "
            f"{beside.parent / 'test_data'}"
        )
    others = []
    for suffix, folder in ((".rel", "rel"), (".ast", "ast")):
        name = path.with_suffix(suffix).name
        places = [path.with_name(name), beside / folder / name]
        others.append(next((place for place in places if place.is_file()), None))
    return Files(texts[0], path, *others)


def _match_lines(
    content: str, shape: re.Pattern[str], source: str
) -> Iterator[tuple[str, re.Match[str]]]:
    """Match the lines that are not empty, each with file and line for error messages."""
    for number, line in enumerate(content.removeprefix(BOM).split("\n"), start=1):
        if not line.strip():
            continue
        found = shape.fullmatch(line.strip())
        if found is None:
            raise BioclinError(f"{source}, line {number}: malformed, expected {SHAPES[shape]}")
        yield f"{source}, line {number}", found


def _read_position(found: re.Match[str], first: int) -> Position:
    start_line, start_word, end_line, end_word = map(int, found.group(*range(first, first + 4)))
    return start_line, start_word, end_line, end_word


def _name_position(position: Position) -> str:
    return "{}:{}-{}:{}".format(*position)


def _find_lines(text: str) -> list[Fragment]:
    """Find where each line of a text begins and ends."""
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append((start, start + len(line)))
        start += len(line) + 1
    return lines


def _find_fragment(
    text: str, lines: list[Fragment], position: Position, surface: str, where: str
) -> tuple[Fragment, str]:
    """Find the characters of a concept.

    surface (str): The text of the concept as in the file.
    RETURNS (tuple[Fragment, str]): The offsets, and the text there; of a text that differs in more
        than case and blanks, the one in the file, so that the loss report counts it.
    RAISES (BioclinError): The text has no such words.
    """
    start_line, start_word, end_line, end_word = position
    found = []
    for split in (_split_at_white_space, _split_at_blanks):
        start = _find_word(text, lines, start_line, start_word, split)
        end = _find_word(text, lines, end_line, end_word, split)
        if start and end and start[0] < end[1]:
            found.append((start[0], end[1]))
    if not found:
        raise BioclinError(
            f"{where}: the text has no words at {start_line}:{start_word} to "
            f"{end_line}:{end_word}; was it changed after it was annotated?"
        )
    for first, behind in found:
        if _squeeze(text[first:behind]) == _squeeze(surface):
            return (first, behind), text[first:behind]
    return found[0], surface


def _find_word(
    text: str, lines: list[Fragment], line: int, word: int, split: Split
) -> Fragment | None:
    """Find the characters of a word of a line."""
    if not 1 <= line <= len(lines):
        return None
    words = split(text, *lines[line - 1])
    return words[word] if word < len(words) else None


def _split_at_white_space(text: str, start: int, end: int) -> list[Fragment]:
    """Find the words of a line, however many blanks are between them."""
    return [match.span() for match in WORD.finditer(text, start, end)]


def _split_at_blanks(text: str, start: int, end: int) -> list[Fragment]:
    """Find the words of a line; between two blanks is an empty word."""
    words = []
    for word in text[start:end].split(" "):
        words.append((start, start + len(word)))
        start += len(word) + 1
    return words


def _squeeze(text: str) -> str:
    """Bring a text to the form in which those of a note and of its annotations are compared."""
    return "".join(text.split()).casefold()
