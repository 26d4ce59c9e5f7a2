"""Read and write columns (CoNLL): a word per line with its tag, an empty line per sentence.

The tag is in the last column, as IOB (IOB1), IOB2 or BIOES/BILUO. Such files do not hold the text.
It is made from the words, joined by single blanks, and the sentences, joined by newlines, so that
writing it gives the same file.
"""

from collections.abc import Iterable
from pathlib import Path

from ..errors import BioclinError
from ..types import AnnotatedText, Annotation, CharSpan, OtherAnnotation, SpanAnnotation
from .files import (
    BOM,
    LAYOUT,
    OnError,
    blocks,
    list_writable,
    raise_error,
    read_text,
    skip_errors,
)

DOCSTART = "-DOCSTART-"
# Ids of the annotations that carry the -DOCSTART- line and what is between word and tag
DOCSTART_LINE, MIDDLE_COLUMNS = f"{LAYOUT}docstart", f"{LAYOUT}columns"
Sentence = list[list[str]]  # per word, its columns


def parse_columns(
    content: str, source: str, on_error: OnError = raise_error
) -> list[AnnotatedText]:
    """Read the content of a file of columns.

    A -DOCSTART- line begins a document. In a file without such lines each sentence is one, because
    nothing says which sentences belong together.

    content (str): The content; columns are separated by tabs, or else by blanks.
    source (str): Name of the file, for error messages.
    on_error (OnError): Called for each malformed sentence.
    RETURNS (list[AnnotatedText]): The documents.
    RAISES (BioclinError): A line is malformed; it names file and line.
    """
    stem = Path(source).stem
    documents: list[tuple[str, list[Sentence]]] = []
    for first_line, lines in blocks(content.removeprefix(BOM)):
        if lines[0].split()[0] == DOCSTART:
            documents.append((lines[0], []))
            lines, first_line = lines[1:], first_line + 1
        elif not documents or not documents[-1][0]:
            documents.append(("", []))
        if lines:
            try:
                documents[-1][1].append(_parse_sentence(lines, first_line, source))
            except BioclinError as error:
                on_error(source, error)
    return [
        _to_annotated(f"{stem}-{number}", docstart, sentences, source)
        for number, (docstart, sentences) in enumerate(documents, start=1)
        if sentences or docstart
    ]


def format_columns(documents: Iterable[AnnotatedText], *, scheme: str = "IOB2") -> str:
    """Write documents as columns; the inverse of `parse_columns`.

    documents (Iterable[AnnotatedText]): Documents whose lines are sentences and whose words are
        separated by single blanks. Spans of several fragments are left out.
    scheme (str): "IOB1", "IOB2" or "BIOES".
    RETURNS (str): The content, columns separated by tabs.
    RAISES (BioclinError): The text of a document is not of this kind.
    """
    parts: list[str] = []
    documents = list(documents)
    # Without such lines, each sentence would be read as a document, and a byte-order mark at the
    # start of a text as that of the file.
    with_docstart = any(
        "\n" in document.text or document.text.startswith(BOM) or _docstart(document)
        for document in documents
    )
    for document in documents:
        other = {a.id: a.raw for a in document.annotations if isinstance(a, OtherAnnotation)}
        between = iter(other[MIDDLE_COLUMNS].split("\n") if MIDDLE_COLUMNS in other else ())
        if with_docstart:
            parts.append((_docstart(document) or f"{DOCSTART}\tO") + "\n\n")
        spans = [(*span.fragments[0], span.label) for span in list_writable(document, "\t\r\n")]
        offset = 0
        for line in document.text.split("\n") if document.text else ():
            words = line.split(" ")
            if not all(words) or "\t" in line or "\r" in line:
                raise BioclinError(
                    f"{document.id}: columns hold words that are separated by single blanks, in "
                    "one sentence a line"
                )
            tags = encode_tags(_word_offsets(words, offset), spans, scheme)
            for word, tag in zip(words, tags, strict=True):
                middle = next(between, "")
                parts.append("\t".join(filter(None, (word, middle, tag))) + "\n")
            parts.append("\n")
            offset += len(line) + 1
    return "".join(parts)


@skip_errors
def read_columns(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read a file of columns, see `parse_columns`."""
    return parse_columns(read_text(path), str(path), on_error)


def decode_tags(tags: list[str]) -> list[tuple[int, int, str]]:
    """Find the entities in the tags of a sentence, in any scheme, as conlleval does: an I (or E)
    that does not continue an entity of its own label begins a new one.

    tags (list[str]): "O" or prefix-label; prefixes B I O E L S U.
    RETURNS (list[tuple[int, int, str]]): First word, end (exclusive), label.
    """
    entities: list[tuple[int, int, str]] = []
    is_open = False
    for i, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix == "O":
            is_open = False
        elif is_open and prefix in "IEL" and entities[-1][2] == label:
            entities[-1] = (entities[-1][0], i + 1, label)
            is_open = prefix == "I"
        else:
            entities.append((i, i + 1, label))
            is_open = prefix in "BI"
    return entities


def encode_tags(words: list[tuple[int, int]], spans: list[CharSpan], scheme: str) -> list[str]:
    """Tag words; the inverse of `decode_tags`.

    words (list[tuple[int, int]]): Character offsets of the words.
    spans (list[CharSpan]): Spans; of overlapping ones the earliest, then the longest, is tagged.
    scheme (str): "IOB1", "IOB2" or "BIOES".
    RETURNS (list[str]): One tag per word.
    """
    if scheme not in ("IOB1", "IOB2", "BIOES"):
        raise BioclinError(f"scheme is {scheme!r}, want IOB1, IOB2 or BIOES")
    tags = ["O"] * len(words)
    for start, end, label in sorted(spans, key=lambda span: (span[0], -span[1])):
        inside = [i for i, (s, e) in enumerate(words) if s < end and e > start]
        if not inside or any(tags[i] != "O" for i in inside):
            continue
        first, last = inside[0], inside[-1]
        after_same = first > 0 and tags[first - 1] in (f"I-{label}", f"B-{label}")
        for i in inside:
            tags[i] = f"I-{label}"
        if scheme != "IOB1" or after_same:
            tags[first] = f"B-{label}"
        if scheme == "BIOES":
            tags[last] = f"S-{label}" if first == last else f"E-{label}"
    return tags


def _docstart(document: AnnotatedText) -> str:
    other = (a for a in document.annotations if isinstance(a, OtherAnnotation))
    return next((a.raw for a in other if a.id == DOCSTART_LINE), "")


def _parse_sentence(lines: list[str], first_line: int, source: str) -> Sentence:
    rows: Sentence = []
    for number, line in enumerate(lines, start=first_line):
        columns = line.split("\t") if "\t" in line else line.split()
        where = f"{source}, line {number}"
        if len(columns) < 2 or (rows and len(columns) != len(rows[0])):
            expected = len(rows[0]) if rows else "2 or more"
            raise BioclinError(f"{where}: {len(columns)} columns, expected {expected}")
        word, tag = columns[0], columns[-1]
        if not word or len(word.split(" ")) > 1:
            raise BioclinError(f"{where}: the word is empty or holds a blank")
        if tag != "O" and not (tag[:1] in "BIELSU" and tag[1:2] == "-" and tag[2:]):
            raise BioclinError(
                f"{where}: the last column is not a tag (O, or one of B I E L S U with -Label)"
            )
        rows.append(columns)
    return rows


def _word_offsets(words: list[str], offset: int) -> list[tuple[int, int]]:
    offsets = []
    for word in words:
        offsets.append((offset, offset + len(word)))
        offset += len(word) + 1
    return offsets


def _to_annotated(id: str, docstart: str, sentences: list[Sentence], source: str) -> AnnotatedText:
    annotations: list[Annotation] = [OtherAnnotation(DOCSTART_LINE, docstart)] if docstart else []
    lines: list[str] = []
    offset = 0
    for rows in sentences:
        words = [row[0] for row in rows]
        line = " ".join(words)
        offsets = _word_offsets(words, 0)
        for first, behind, label in decode_tags([row[-1] for row in rows]):
            start, end = offsets[first][0], offsets[behind - 1][1]
            span = ((offset + start, offset + end),)
            number = len(annotations) + 1
            annotations.append(SpanAnnotation(f"T{number}", label, span, line[start:end]))
        lines.append(line)
        offset += len(line) + 1
    if any(len(row) > 2 for rows in sentences for row in rows):
        between = "\n".join("\t".join(row[1:-1]) for rows in sentences for row in rows)
        annotations.append(OtherAnnotation(MIDDLE_COLUMNS, between))
    return AnnotatedText(id, "\n".join(lines), tuple(annotations), source)
