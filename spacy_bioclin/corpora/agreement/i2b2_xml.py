"""The XML of i2b2 2014 and MEDDOCAN: <TEXT> as CDATA, and <TAGS> with one element per span."""

import re
from pathlib import Path

from lxml import etree

from ...errors import BioclinError, without_context
from ...types import AnnotatedText, Annotation, NoteAnnotation, SpanAnnotation
from ..files import (
    OnError,
    check_no_entities,
    check_offsets,
    check_xml_characters,
    from_file_path,
    is_offset,
    list_writable,
    raise_error,
    read_text,
    skip_errors,
)

# Read from the file, not through the parser: XML turns CRLF into LF, and offsets would shift.
TEXT = re.compile(r"<TEXT><!\[CDATA\[(.*?)\]\]></TEXT>", re.DOTALL)
# Kinds of the notes that carry the name of a span's element and its comment.
ELEMENT, COMMENT = "element", "comment"
# Element of a span whose label is no name of an element ("1-Sintoma/agudo"). TYPE has the label.
ANY_ELEMENT = "ENTITY"


@without_context()
def parse_i2b2(content: str, id: str, source: str) -> AnnotatedText:
    """Read the content of an XML file.

    content (str): The content.
    id (str): Identifier of the document.
    source (str): Name of the file, for error messages.
    RETURNS (AnnotatedText): The document; the label of a span is its TYPE, or else its element.
    RAISES (BioclinError): The file is malformed; it names file and line.
    """
    found = TEXT.search(content)
    if found is None:
        raise BioclinError(f"{source}: no <TEXT><![CDATA[…]]></TEXT>; is it i2b2 2014 XML?")
    text = found[1]
    check_no_entities(content[: found.start()] + content[found.end() :], source)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    try:
        root = etree.fromstring(content.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        raise BioclinError(f"{source}, line {error.lineno}: malformed XML") from None
    annotations: list[Annotation] = []
    for number, tag in enumerate(root.iterfind("TAGS/*"), start=1):
        if not isinstance(tag.tag, str):
            continue  # a comment
        span = _parse_tag(tag, number, len(text), f"{source}, line {tag.sourceline}")
        annotations += [span, NoteAnnotation("", ELEMENT, span.id, str(tag.tag))]
        if "comment" in tag.attrib:
            annotations.append(NoteAnnotation("", COMMENT, span.id, tag.attrib["comment"]))
    return AnnotatedText(id, text, tuple(annotations), source)


def format_i2b2(annotated: AnnotatedText, *, root: str = "deIdi2b2") -> str:
    """Write a document as XML; the inverse of `parse_i2b2`.

    annotated (AnnotatedText): The document. Spans of several fragments are left out.
    root (str): Name of the root element.
    RETURNS (str): The content.
    RAISES (BioclinError): XML cannot hold a character of the document.
    """
    check_xml_characters(annotated, "write another format, such as brat")
    if "]]>" in annotated.text:
        raise BioclinError(f"{annotated.id}: the text holds ']]>', which CDATA cannot")
    notes = {
        (note.kind, note.target): note.text
        for note in annotated.annotations
        if isinstance(note, NoteAnnotation)
    }
    tags = etree.Element("TAGS")
    for span in list_writable(annotated):
        [(start, end)] = span.fragments
        element = notes.get((ELEMENT, span.id), span.label)
        if not _is_xml_name(element):
            element = ANY_ELEMENT
        attributes = {"id": span.id, "start": str(start), "end": str(end), "text": span.surface}
        if element != span.label:
            attributes["TYPE"] = span.label
        if (COMMENT, span.id) in notes:
            attributes["comment"] = notes[COMMENT, span.id]
        etree.SubElement(tags, element, attributes)
    etree.indent(tags)
    xml = etree.tostring(tags, encoding="unicode")
    header = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{header}\n<{root}>\n<TEXT><![CDATA[{annotated.text}]]></TEXT>\n{xml}\n</{root}>\n"


@skip_errors
def read_i2b2(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read an XML file, see `parse_i2b2`."""
    return [parse_i2b2(read_text(path), from_file_path(path), str(path))]


def _is_xml_name(name: str) -> bool:
    try:
        etree.Element(name)
    except ValueError:
        return False
    return not name.startswith("{")


def _parse_tag(tag: "etree._Element", number: int, text_length: int, where: str) -> SpanAnnotation:
    start, end = tag.get("start", ""), tag.get("end", "")
    if not (is_offset(start) and is_offset(end)):
        raise BioclinError(f"{where}: <{tag.tag}> has no start and end")
    fragment = check_offsets(start, end, text_length, where)
    id = tag.get("id") or f"T{number}"
    label = tag.get("TYPE") or str(tag.tag)
    return SpanAnnotation(id, label, (fragment,), tag.get("text", ""))
