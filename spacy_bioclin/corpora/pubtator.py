"""PubTator: `PMID|t|title`, `PMID|a|abstract`, then one tab-separated line per mention or relation.

As in BC5CDR (CDR.Corpus.v010516) and the original NCBI disease corpus. Offsets count the title, one
separator and the abstract. Mention ids are concept ids: `|` separates the concepts of a composite
mention, `+` joins concepts that only together make one meaning (one id here), `-1` means none.
Relations are between concept ids. A relation between two mentions is written with their ids if each
has one; of several that are then the same, one is written.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import BioclinError
from ..types import AnnotatedText, Annotation, NoteAnnotation, RelationAnnotation, SpanAnnotation
from .files import (
    BOM,
    OnError,
    blocks,
    check_offsets,
    is_offset,
    list_writable,
    raise_error,
    read_text,
    skip_errors,
)

ID = re.compile(r"[^|\s]+")
HEADER = re.compile(r"([^|\t]+)\|([ta])\|(.*)")
BREAK = re.compile(r"[\t\r\n]")  # ends a column or a line
NO_CONCEPT = "-1"
# BC5CDR's optional last column, the parts of "breast and ovarian cancer"
PARTS = "IndividualMentions"


def parse_pubtator(
    content: str, source: str, on_error: OnError = raise_error
) -> list[AnnotatedText]:
    """Read the content of a PubTator file.

    content (str): The content.
    source (str): Name of the file, for error messages.
    on_error (OnError): Called for each malformed document.
    RETURNS (list[AnnotatedText]): The documents; title and abstract are joined by a newline.
    RAISES (BioclinError): A document is malformed; it names file and line.
    """
    documents = []
    for first_line, lines in blocks(content.removeprefix(BOM)):
        try:
            documents.append(_parse_block(lines, first_line, source))
        except BioclinError as error:
            on_error(source, error)
    return documents


def format_pubtator(documents: Iterable[AnnotatedText]) -> str:
    """Write documents as the content of a PubTator file; the inverse of `parse_pubtator`.

    documents (Iterable[AnnotatedText]): Documents whose first line is the title. Spans of several
        fragments are left out.
    RETURNS (str): The content, with an empty line after each document.
    """
    return "".join(_format_document(document) + "\n" for document in documents)


@skip_errors
def read_pubtator(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read a PubTator file, see `parse_pubtator`."""
    return parse_pubtator(read_text(path), str(path), on_error)


def _parse_block(lines: list[str], first_line: int, source: str) -> AnnotatedText:
    headers = [HEADER.fullmatch(line) for line in lines[:2]]
    kinds = [header[2] if header else None for header in headers]
    if kinds != ["t", "a"] or headers[0][1] != headers[1][1]:  # type: ignore[index]
        raise BioclinError(
            f"{source}, line {first_line}: a document has to begin with the lines PMID|t|title and "
            "PMID|a|abstract"
        )
    id, title, abstract = headers[0][1], headers[0][3], headers[1][3]  # type: ignore[index]
    text = f"{title}\n{abstract}"
    annotations: list[Annotation] = []
    for number, line in enumerate(lines[2:], start=first_line + 2):
        annotations += _parse_line(line, number, id, len(text), source)
    return AnnotatedText(id, text, tuple(annotations), source)


def _parse_line(
    line: str, number: int, document: str, text_length: int, source: str
) -> list[Annotation]:
    """Read a mention (with its note on parts) or a relation; `number` makes their ids unique."""
    where = f"{source}, line {number}"
    pmid, *fields = line.split("\t")
    if pmid != document:
        raise BioclinError(f"{where}: the line does not begin with the id of its document")
    if len(fields) == 3 and not is_offset(fields[0]):
        return [RelationAnnotation(f"R{number}", fields[0], _roles(fields[1:]))]
    if len(fields) not in (5, 6) or not all(map(is_offset, fields[:2])):
        raise BioclinError(
            f"{where}: expected PMID, start, end, mention, type and concept ids, or PMID, relation "
            f"and two concept ids, separated by tabs; found {len(fields) + 1} columns"
        )
    surface, label, ids = fields[2:5]
    if not label.strip():
        raise BioclinError(f"{where}: the mention has no type")
    fragment = check_offsets(fields[0], fields[1], text_length, where)
    # "-1" stays in "D002544|-1", where ids and parts of the mention go in pairs.
    found = ids.split("|") if ids.strip() != NO_CONCEPT else ()
    concept_ids = tuple(filter(None, map(str.strip, found)))
    span = SpanAnnotation(f"T{number}", label, (fragment,), surface, concept_ids)
    return [span, *(NoteAnnotation("", PARTS, span.id, parts) for parts in fields[5:])]


def _roles(concepts: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple((f"Arg{i}", concept) for i, concept in enumerate(concepts, start=1))


def _format_document(document: AnnotatedText) -> str:
    title, _, abstract = document.text.partition("\n")
    if "\n" in abstract or not ID.fullmatch(document.id):
        raise BioclinError(
            f"{document.id}: PubTator holds a title and an abstract of one line, and ids without |"
        )
    parts = {
        note.target: f"\t{note.text}"
        for note in document.annotations
        if isinstance(note, NoteAnnotation) and note.kind == PARTS
    }
    lines = [f"{document.id}|t|{title}", f"{document.id}|a|{abstract}"]
    for span in list_writable(document, "\t\r\n"):
        [(start, end)] = span.fragments
        ids = "|".join(span.concept_ids) or NO_CONCEPT
        surface = BREAK.sub(" ", span.surface)
        fields = [document.id, str(start), str(end), surface, span.label, ids]
        lines.append("\t".join(fields) + parts.get(span.id, ""))
    lines += _format_relations(document)
    return "\n".join(lines) + "\n"


def _format_relations(document: AnnotatedText) -> list[str]:
    """Write the relations between two concepts, or two mentions of one concept each."""
    mentions = {a.id: a for a in document.annotations if isinstance(a, SpanAnnotation)}
    lines: dict[str, None] = {}
    for relation in document.annotations:
        if not isinstance(relation, RelationAnnotation) or len(relation.args) != 2:
            continue
        ids = [
            mentions[target].concept_ids if target in mentions else (target,)
            for _, target in relation.args
        ]
        if all(len(each) == 1 for each in ids):
            lines["\t".join((document.id, relation.label, *(each for [each] in ids)))] = None
    return list(lines)
