"""BioC, XML and JSON, through the `bioc` library (Comeau et al., 2013)."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import bioc
from bioc import biocjson, biocxml

from ..errors import BioclinError, without_context
from ..types import (
    AnnotatedText,
    Annotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from .files import (
    BOM,
    LAYOUT,
    OnError,
    check_no_entities,
    check_offsets,
    check_xml_characters,
    describe_damage,
    is_offset,
    raise_error,
    read_text,
    skip_errors,
)

PASSAGE = (
    f"{LAYOUT}passage"  # id of the annotations that carry offset, length and infons of a passage
)
# Newlines that may stand for what is missing between two passages. A larger offset is a mistake.
MAX_GAP = 1_000_000
TYPE, IDENTIFIER = "type", "identifier"  # infons of an annotation: its label, its concept ids
# In the BioC of BC5CDR: infon with the concept ids of an annotation; infon with the type of a
# relation, whose arguments are its other infons, role and concept id; no concept.
MESH, RELATION, NO_CONCEPT = "MESH", "relation", "-1"


@without_context()
def parse_bioc(content: str, source: str, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read the content of a BioC file, XML or JSON.

    content (str): The content.
    source (str): Name of the file, for error messages.
    on_error (OnError): Called for each malformed document.
    RETURNS (list[AnnotatedText]): The documents. Passages are at their offsets, and newlines fill
        the gaps. Infons other than type and identifier are not kept. Relations are between
        annotations, or, without nodes as in BC5CDR, between concept ids.
    RAISES (BioclinError): The file or a document is malformed; it names the file and document.
    """
    content = content.removeprefix(BOM)
    check_no_entities(content, source)
    try:
        is_json = content.lstrip().startswith("{")
        collection = biocjson.loads(content) if is_json else biocxml.loads(content)
    except Exception as error:  # of lxml, json, or KeyError and ValueError for missing fields
        raise BioclinError(f"{source}: malformed BioC; {describe_damage(error)}") from None
    documents = []
    for number, document in enumerate(collection.documents, start=1):
        where = f"{source}, document {_name(document.id, number)}"
        try:
            documents.append(_to_annotated(document, where, source))
        except BioclinError as error:
            on_error(source, error)
        except Exception as error:  # a value of another type
            on_error(source, BioclinError(f"{where}: malformed BioC ({type(error).__name__})"))
    return documents


def format_bioc(documents: Iterable[AnnotatedText], *, as_json: bool = False) -> str:
    """Write documents as BioC; the inverse of `parse_bioc`.

    documents (Iterable[AnnotatedText]): The documents.
    as_json (bool): Write JSON, not XML.
    RETURNS (str): The content.
    RAISES (BioclinError): XML cannot hold a character of a document.
    """
    collection = bioc.BioCCollection()
    collection.date = ""  # the same documents give the same file on any day
    for document in documents:
        if not as_json:
            check_xml_characters(document, "write a .json file, or another format, such as brat")
        collection.add_document(_to_bioc(document))
    if as_json:
        return str(biocjson.dumps(collection, indent=2))
    try:
        return str(biocxml.dumps(collection))
    except ValueError:
        raise BioclinError(
            "BioC: XML cannot hold a character of an infon of a passage; write a .json file"
        ) from None


@skip_errors
def read_bioc(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read a BioC file, see `parse_bioc`."""
    return parse_bioc(read_text(path), str(path), on_error)


def _name(id: Any, number: int) -> str:
    """Name a document or annotation in a message: by its id, unless that may be anything."""
    is_id = isinstance(id, str | int) and re.fullmatch(r"\S{1,60}", str(id))
    return str(id) if is_id else f"{number:,} of the file"


def _to_annotated(document: bioc.BioCDocument, where: str, source: str) -> AnnotatedText:
    if not isinstance(document.id, str | int):
        raise BioclinError(f"{where}: has no id")
    text = ""
    annotations: list[Annotation] = []
    for passage in document.passages:
        for part in (passage, *passage.sentences):
            _check_offset(part.offset, len(text), where)
        parts = [(passage.offset, passage.text or "")]
        parts += [(sentence.offset, sentence.text or "") for sentence in passage.sentences]
        begin = passage.offset
        for offset, part in filter(lambda part: part[1], parts):
            if offset < len(text):
                raise BioclinError(f"{where}: passages overlap at offset {offset}")
            _check_offset(offset, len(text), where)
            text += "\n" * (offset - len(text)) + part
        infons = {str(key): str(value) for key, value in passage.infons.items()}
        raw = json.dumps([begin, len(text) - begin, infons], ensure_ascii=False)
        annotations.append(OtherAnnotation(PASSAGE, raw))
    spans = [each for holder in _holders(document) for each in holder.annotations]
    for number, each in enumerate(spans, start=1):
        place = f"{where}: annotation {_name(each.id, number)}"
        annotations.append(_to_span(each, len(text), place))
    for holder in _holders(document):
        annotations += [_to_relation(relation) for relation in holder.relations]
    return AnnotatedText(str(document.id), text, tuple(annotations), source)


def _check_offset(offset: Any, text_length: int, where: str) -> None:
    if type(offset) is not int or not 0 <= offset <= text_length + MAX_GAP:
        raise BioclinError(
            f"{where}: the offset of a passage or sentence is not a number from 0 to {MAX_GAP:,} "
            "behind the text before it; offsets count characters from the start of the document"
        )


def _holders(document: bioc.BioCDocument) -> Iterator[bioc.datastructure.AnnotationMixin]:
    """List the document, its passages and sentences: each can have annotations."""
    yield document
    for passage in document.passages:
        yield passage
        yield from passage.sentences


def _to_span(annotation: bioc.BioCAnnotation, text_length: int, where: str) -> SpanAnnotation:
    label = annotation.infons.get(TYPE)
    if not label or not annotation.locations:
        missing = "location" if label else "type"
        raise BioclinError(f"{where} has no {missing}")
    for place in annotation.locations:
        if is_offset(str(place.end)) and place.end > text_length:
            raise BioclinError(
                f"{where} is past the end of the text ({text_length} characters); offsets have to "
                "count from the start of the document"
            )
    fragments = tuple(
        check_offsets(place.offset, place.end, text_length, where) for place in annotation.locations
    )
    ids = annotation.infons.get(IDENTIFIER) or annotation.infons.get(MESH) or ""
    concepts = tuple(filter(None, ids.split("|"))) if ids != NO_CONCEPT else ()
    return SpanAnnotation(
        str(annotation.id), str(label), fragments, annotation.text or "", concepts
    )


def _to_relation(relation: bioc.BioCRelation) -> RelationAnnotation:
    infons = {str(key): str(value) for key, value in relation.infons.items()}
    label = infons.pop(TYPE, "") or infons.pop(RELATION, "")
    args = tuple((node.role, node.refid) for node in relation.nodes) or tuple(infons.items())
    return RelationAnnotation(str(relation.id), label, args)


def _to_bioc(document: AnnotatedText) -> bioc.BioCDocument:
    result = bioc.BioCDocument()
    result.id = document.id
    raw = [
        a.raw for a in document.annotations if isinstance(a, OtherAnnotation) and a.id == PASSAGE
    ]
    for offset, length, infons in map(json.loads, raw) if raw else [(0, len(document.text), {})]:
        text = document.text[offset : offset + length]
        passage = bioc.BioCPassage.of_text(text, offset)
        passage.infons = infons
        result.add_passage(passage)
    for annotation in document.annotations:
        if isinstance(annotation, SpanAnnotation):
            span = bioc.BioCAnnotation()
            span.id, span.text = annotation.id, annotation.surface
            span.infons[TYPE] = annotation.label
            if annotation.concept_ids:
                span.infons[IDENTIFIER] = "|".join(annotation.concept_ids)
            for start, end in annotation.fragments:
                span.add_location(bioc.BioCLocation(start, end - start))
            _holder(result, annotation.fragments[0][0]).add_annotation(span)
        elif isinstance(annotation, RelationAnnotation):
            relation = bioc.BioCRelation()
            relation.id, relation.infons[TYPE] = annotation.id, annotation.label
            for role, target in annotation.args:
                relation.add_node(bioc.BioCNode(target, role))
            result.add_relation(relation)
    return result


def _holder(document: bioc.BioCDocument, offset: int) -> bioc.BioCPassage:
    """Find the last passage that begins at the offset or before."""
    before = [passage for passage in document.passages if passage.offset <= offset]
    return (before or document.passages)[-1]
