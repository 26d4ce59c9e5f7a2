"""BioC, XML and JSON, through the `bioc` library (Comeau et al., 2013)."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import bioc
from bioc import biocjson, biocxml

from ..errors import BioclinError
from ..types import (
    AnnotatedText,
    Annotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)
from .files import BOM, LAYOUT, OnError, raise_error, read_text, skip_errors

PASSAGE = (
    f"{LAYOUT}passage"  # id of the annotations that carry offset, length and infons of a passage
)
TYPE, IDENTIFIER = "type", "identifier"  # infons of an annotation: its label, its concept ids


def parse_bioc(content: str, source: str, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read the content of a BioC file, XML or JSON.

    content (str): The content.
    source (str): Name of the file, for error messages.
    on_error (OnError): Called for each malformed document.
    RETURNS (list[AnnotatedText]): The documents. Passages are at their offsets, and newlines fill
        the gaps. Infons other than type and identifier are not kept.
    RAISES (BioclinError): The file or a document is malformed; it names the file and document.
    """
    content = content.removeprefix(BOM)
    try:
        is_json = content.lstrip().startswith("{")
        collection = biocjson.loads(content) if is_json else biocxml.loads(content)
    except Exception as error:  # of lxml, json, or KeyError and ValueError for missing fields
        raise BioclinError(f"{source}: malformed BioC ({type(error).__name__})") from None
    documents = []
    for document in collection.documents:
        try:
            documents.append(_to_annotated(document, source))
        except BioclinError as error:
            on_error(source, error)
    return documents


def format_bioc(documents: Iterable[AnnotatedText], *, as_json: bool = False) -> str:
    """Write documents as BioC; the inverse of `parse_bioc`.

    documents (Iterable[AnnotatedText]): The documents.
    as_json (bool): Write JSON, not XML.
    RETURNS (str): The content.
    """
    collection = bioc.BioCCollection()
    collection.date = ""  # the same documents give the same file on any day
    for document in documents:
        collection.add_document(_to_bioc(document))
    return str(biocjson.dumps(collection, indent=2) if as_json else biocxml.dumps(collection))


@skip_errors
def read_bioc(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read a BioC file, see `parse_bioc`."""
    return parse_bioc(read_text(path), str(path), on_error)


def _to_annotated(document: bioc.BioCDocument, source: str) -> AnnotatedText:
    where = f"{source}, document {document.id}"
    text = ""
    annotations: list[Annotation] = []
    for passage in document.passages:
        parts = [(passage.offset, passage.text or "")]
        parts += [(sentence.offset, sentence.text or "") for sentence in passage.sentences]
        begin = passage.offset
        for offset, part in filter(lambda part: part[1], parts):
            if offset < len(text):
                raise BioclinError(f"{where}: passages overlap at offset {offset}")
            text += "\n" * (offset - len(text)) + part
        infons = {str(key): str(value) for key, value in passage.infons.items()}
        raw = json.dumps([begin, len(text) - begin, infons], ensure_ascii=False)
        annotations.append(OtherAnnotation(PASSAGE, raw))
    for holder in _holders(document):
        annotations += [_to_span(annotation, len(text), where) for annotation in holder.annotations]
    for holder in _holders(document):
        annotations += [_to_relation(relation) for relation in holder.relations]
    return AnnotatedText(document.id, text, tuple(annotations), source)


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
        raise BioclinError(f"{where}: annotation {annotation.id} has no {missing}")
    fragments = tuple((place.offset, place.end) for place in annotation.locations)
    if max(end for _, end in fragments) > text_length:
        raise BioclinError(
            f"{where}: annotation {annotation.id} is past the end of the text ({text_length} "
            "characters); offsets have to count from the start of the document"
        )
    ids = annotation.infons.get(IDENTIFIER) or ""
    concepts = tuple(filter(None, ids.split("|")))
    return SpanAnnotation(annotation.id, label, fragments, annotation.text or "", concepts)


def _to_relation(relation: bioc.BioCRelation) -> RelationAnnotation:
    args = tuple((node.role, node.refid) for node in relation.nodes)
    return RelationAnnotation(relation.id, relation.infons.get(TYPE, ""), args)


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
