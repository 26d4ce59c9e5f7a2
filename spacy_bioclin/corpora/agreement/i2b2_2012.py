"""The XML of i2b2 2012: a discharge summary with events, times, and links between them.

<TEXT> holds the text as CDATA, and <TAGS> an element a line: EVENT, TIMEX3 and SECTIME (the times
of admission and discharge) with start, end and text, and TLINK between two of them. Offsets count
characters from 0 or from 1: the text of the tags shows which. Some files of the release are not
well-formed, such as those with "&" in a value; they are read, too.

Written from the public documentation, and not tested on the corpus, which needs an agreement.
Sun et al. (2013), Evaluating temporal relations in clinical text: 2012 i2b2 Challenge.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import unescape

from lxml import etree

from ...errors import BioclinError, without_context
from ...types import AnnotatedText, Annotation, NoteAnnotation, RelationAnnotation, SpanAnnotation
from ..files import (
    OnError,
    check_no_entities,
    check_offsets,
    from_file_path,
    is_offset,
    raise_error,
    read_text,
    skip_errors,
)

# Read from the file, not through the parser: XML turns CRLF into LF, and offsets would shift.
TEXT = re.compile(r"<TEXT>\s*<!\[CDATA\[(.*?)\]\]>\s*</TEXT>", re.DOTALL)
SPANS = ("EVENT", "TIMEX3", "SECTIME")
LINK = "TLINK"
TAG = re.compile(rf"<({'|'.join((*SPANS, LINK))})\s+(.*?)\s*/?>")
VALUE = re.compile(r'([\w:-]+)="(.*?)"(?=\s+[\w:-]+="|\s*\Z)\s*')
PLACE = ("id", "start", "end", "text", "type")
# Kind of the notes that carry the name of a span's element.
ELEMENT = "element"
# What is added to offsets: nothing, or one less or more.
SHIFTS = (0, -1, 1)


class Tag(NamedTuple):
    """An element of <TAGS>.

    where (str): File and line, for error messages.
    """

    name: str
    values: dict[str, str]
    where: str


@without_context()
def parse_i2b2_2012(content: str, id: str, source: str) -> AnnotatedText:
    """Read the content of an XML file.

    content (str): The content.
    id (str): Identifier of the document.
    source (str): Name of the file, for error messages.
    RETURNS (AnnotatedText): The document. The label of a span or link is its type; a note has its
        element, and further ones its other values (polarity, modality, val, mod, dvalue).
    RAISES (BioclinError): The file is malformed; it names file and line.
    """
    found = TEXT.search(content)
    if found is None:
        raise BioclinError(f"{source}: no <TEXT><![CDATA[…]]></TEXT>; is it i2b2 2012 XML?")
    text = found[1]
    check_no_entities(content[: found.start()] + content[found.end() :], source)
    tags = _read_tags(content, found.end(), source)
    spans = [tag for tag in tags if tag.name in SPANS]
    annotations: list[Annotation] = []
    for number, (tag, span) in enumerate(_place_spans(text, spans), start=1):
        span = span._replace(id=span.id or f"X{number}")
        annotations += [span, NoteAnnotation("", ELEMENT, span.id, tag.name)]
        others = [(key, value) for key, value in tag.values.items() if key not in PLACE and value]
        annotations += [NoteAnnotation("", key, span.id, value) for key, value in others]
    links = [tag for tag in tags if tag.name == LINK]
    for number, tag in enumerate(links, start=1):
        ends = [(role, tag.values.get(role, "").strip()) for role in ("fromID", "toID")]
        if not all(end for _, end in ends):
            raise BioclinError(f"{tag.where}: <{LINK}> has no fromID or no toID")
        label = tag.values.get("type", "").strip()
        annotations.append(
            RelationAnnotation(tag.values.get("id") or f"L{number}", label, tuple(ends))
        )
    return AnnotatedText(id, text, tuple(annotations), source)


@skip_errors
def read_i2b2_2012(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read an XML file, see `parse_i2b2_2012`."""
    return [parse_i2b2_2012(read_text(path), from_file_path(path), str(path))]


def _read_tags(content: str, start: int, source: str) -> list[Tag]:
    """Read the elements of <TAGS>, which begins after character `start`."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    try:
        root = etree.fromstring(content.encode("utf-8"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return list(_read_damaged(content, start, source))
    return [
        Tag(
            str(tag.tag),
            {str(key): str(value) for key, value in tag.attrib.items()},
            f"{source}, line {tag.sourceline}",
        )
        for tag in root.iterfind("TAGS/*")
        if isinstance(tag.tag, str)
    ]


def _read_damaged(content: str, start: int, source: str) -> Iterator[Tag]:
    """Read the elements of a file that is no XML, one a line.

    RAISES (BioclinError): A line is not of this form, or there is none.
    """
    first = content.count("\n", 0, start) + 1
    n_tags = 0
    for number, line in enumerate(content[start:].split("\n"), start=first):
        line = line.strip()
        if not line.startswith(tuple(f"<{name}" for name in (*SPANS, LINK))):
            continue
        where = f"{source}, line {number}"
        found = TAG.fullmatch(line)
        values = list(VALUE.finditer(found[2])) if found else []
        if found is None or sum(len(value[0]) for value in values) < len(found[2]):
            raise BioclinError(
                f'{where}: malformed XML, and not like <EVENT id="E0" start="1" … />'
            )
        entities = {"&quot;": '"', "&apos;": "'"}
        yield Tag(found[1], {v[1]: unescape(v[2], entities) for v in values}, where)
        n_tags += 1
    if not n_tags and "<TAGS" not in content[start:]:
        raise BioclinError(f"{source}: malformed XML without <TAGS>")


def _place_spans(text: str, tags: Sequence[Tag]) -> Iterator[tuple[Tag, SpanAnnotation]]:
    """Find the characters of each tag; how offsets count is what suits most of them.

    RAISES (BioclinError): A tag has no offsets, or suits no way of counting.
    """
    for tag in tags:
        if not all(is_offset(tag.values.get(key, "")) for key in ("start", "end")):
            raise BioclinError(f"{tag.where}: <{tag.name}> has no start and end")
    counts = list(_list_counts(text))
    n_right = [sum(_is_right(text, tag, count, shift) for tag in tags) for count, shift in counts]
    if any(tag.values.get("text", "").strip() for tag in tags) and not any(n_right):
        raise BioclinError(
            f"{tags[0].where}: no tag has the text that is at its offsets; was the text changed "
            "after it was annotated?"
        )
    usual = counts[n_right.index(max(n_right))]
    for tag in tags:
        # The text of a tag proves another way of counting for this tag alone.
        right = (each for each in (usual, *counts) if _is_right(text, tag, *each))
        ends = _count(tag, *next(right, usual))
        start, end = check_offsets(*(ends or (-1, -1)), len(text), tag.where)
        surface = tag.values.get("text", "")
        if _squeeze(surface) == _squeeze(text[start:end]):
            surface = text[start:end]
        label = tag.values.get("type", "").strip() or tag.name
        yield tag, SpanAnnotation(tag.values.get("id", ""), label, ((start, end),), surface)


def _list_counts(text: str) -> Iterator[tuple[list[int], int]]:
    """List the ways of counting: offset of each character that counts, and what is added."""
    every = list(range(len(text) + 1))
    ways = [every]
    if "\r\n" in text:  # a parser gives a line break of two characters as one
        ways.append([at for at in every if text[at : at + 2] != "\r\n"])
    for way in ways:
        yield from ((way, shift) for shift in SHIFTS)


def _count(tag: Tag, way: list[int], shift: int) -> tuple[int, int] | None:
    """Find the offsets of a tag by one way of counting; None if they are outside the text."""
    start, end = int(tag.values["start"]) + shift, int(tag.values["end"]) + shift
    if not 0 <= start <= end < len(way):
        return None
    return way[start], way[end - 1] + 1 if start < end else way[start]


def _is_right(text: str, tag: Tag, way: list[int], shift: int) -> bool:
    """Tell whether a tag has the text that is at its offsets."""
    ends = _count(tag, way, shift)
    surface = _squeeze(tag.values.get("text", ""))
    return bool(surface) and ends is not None and _squeeze(text[ends[0] : ends[1]]) == surface


def _squeeze(text: str) -> str:
    """Bring a text to the form in which those of a note and of its tags are compared."""
    return " ".join(text.split()).casefold()
