"""The XML of DDI-2013: sentences with drug names, and pairs of them that interact or do not.

Offsets count the characters of a sentence, and the last one is part of the span: "0-4" covers five.
The fragments of a discontinuous name are separated by ";". The document is its sentences, each
followed by a newline if another comes. Every two names of a sentence are a pair; those with
ddi="true" are relations.

Herrero-Zazo et al. (2013), The DDI corpus.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from ...errors import BioclinError, without_context
from ...types import AnnotatedText, Annotation, Fragment, RelationAnnotation, SpanAnnotation
from ..files import (
    BOM,
    OnError,
    check_no_entities,
    check_offsets,
    raise_error,
    read_text,
    skip_errors,
)

FRAGMENT = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
# Label of an interaction that has no type. The corpus has one.
UNTYPED = "untyped"


@without_context()
def parse_ddi(content: str, source: str) -> AnnotatedText:
    """Read the content of an XML file.

    content (str): The content.
    source (str): Name of the file, for error messages.
    RETURNS (AnnotatedText): The document; the label of a relation is the type of the interaction.
    RAISES (BioclinError): The file is malformed; it names file and line.
    """
    content = content.removeprefix(BOM)
    check_no_entities(content, source)
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, huge_tree=True
    )
    try:
        root = etree.fromstring(content.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        raise BioclinError(f"{source}, line {error.lineno}: malformed XML") from None
    id = root.get("id", "")
    if root.tag != "document" or not id.strip() or root.find("sentence") is None:
        raise BioclinError(
            f"{source}: no <document id=…> with <sentence> elements; is it DDI-2013 XML?"
        )
    texts: list[str] = []
    annotations: list[Annotation] = []
    begin = 0
    for sentence in root.iterfind("sentence"):
        where = f"{source}, line {sentence.sourceline}"
        text = sentence.get("text")
        if text is None:
            raise BioclinError(f"{where}: the sentence has no text")
        annotations += _parse_sentence(sentence, text, begin, source)
        texts.append(text)
        begin += len(text) + 1
    seen: set[str] = set()
    for annotation in annotations:
        if annotation.id in seen:
            raise BioclinError(f"{source}: several entities or pairs have the same id")
        seen.add(annotation.id)
    return AnnotatedText(id, "\n".join(texts), tuple(annotations), source)


@skip_errors
def read_ddi(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read an XML file, see `parse_ddi`."""
    return [parse_ddi(read_text(path), str(path))]


def _parse_sentence(
    sentence: "etree._Element", text: str, begin: int, source: str
) -> Iterator[Annotation]:
    """List the names and interactions of a sentence that begins at character `begin`."""
    for entity in sentence.iterfind("entity"):
        where = f"{source}, line {entity.sourceline}"
        id, label, offsets = _get(entity, ("id", "type", "charOffset"), where)
        fragments = tuple(_fragment(part, text, begin, where) for part in offsets.split(";"))
        yield SpanAnnotation(id, label, fragments, entity.get("text", ""))
    for pair in sentence.iterfind("pair"):
        where = f"{source}, line {pair.sourceline}"
        id, head, child, interacts = _get(pair, ("id", "e1", "e2", "ddi"), where)
        if interacts not in ("true", "false"):
            raise BioclinError(f'{where}: ddi of the pair is neither "true" nor "false"')
        if interacts == "true":
            label = pair.get("type", "").strip() or UNTYPED
            yield RelationAnnotation(id, label, (("Arg1", head), ("Arg2", child)))


def _get(element: "etree._Element", names: tuple[str, ...], where: str) -> list[str]:
    """Get the values of attributes that an element has to have."""
    values = [element.get(name, "").strip() for name in names]
    if "" in values:
        raise BioclinError(f"{where}: <{element.tag}> has no {names[values.index('')]}")
    return values


def _fragment(part: str, text: str, begin: int, where: str) -> Fragment:
    match = FRAGMENT.fullmatch(part.strip())
    if match is None:
        raise BioclinError(f'{where}: charOffset is not like "0-4" or "0-4;10-12"')
    start, behind = check_offsets(match[1], str(int(match[2]) + 1), len(text), where)
    return begin + start, begin + behind
