"""Turn the relations that components have found, with their spans, into annotations."""

from collections.abc import Iterable, Mapping

from spacy.tokens import Doc

from ...annotations.relations import RELATIONS_KEY, get_relations
from ...types import (
    Annotation,
    CharSpan,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)


def has_predicted(doc: Doc) -> bool:
    """Tell whether a component has looked for relations in a Doc."""
    return RELATIONS_KEY in doc.user_data


def make_annotations(doc: Doc, spans: Mapping[CharSpan, str]) -> tuple[Annotation, ...]:
    """Make the annotations of spans and of the predicted relations of a Doc.

    spans (Mapping[CharSpan, str]): Span -> its concept ids, joined by "|".
    RETURNS (tuple[Annotation, ...]): The spans, T1 and so on, in the order of the text; then the
        relations, see `_make_relations`.
    """
    spans = {**_list_arguments(doc), **spans}
    made = _make_spans(doc, spans, 1)
    return (*made, *_make_relations(doc, {(*a.fragments[0], a.label): a.id for a in made}))


def replace_relations(
    doc: Doc, annotations: Iterable[Annotation], ids: Mapping[CharSpan, str]
) -> tuple[Annotation, ...]:
    """Replace the relations of a file by the predicted ones of its Doc.

    The notes about these relations are left out with them, and so are the line ends of the file.

    annotations (Iterable[Annotation]): The annotations of the file.
    ids (Mapping[CharSpan, str]): Span of the Doc -> id of its annotation.
    RETURNS (tuple[Annotation, ...]): The annotations, and spans for arguments that have none.
    """
    annotations = list(annotations)
    dropped = {a.id for a in annotations if isinstance(a, RelationAnnotation)}
    kept = [
        a
        for a in annotations
        if not isinstance(a, RelationAnnotation)
        and not (isinstance(a, NoteAnnotation) and a.target in dropped)
        and not (isinstance(a, OtherAnnotation) and a.id in ("", "*"))
    ]
    new = {span: concepts for span, concepts in _list_arguments(doc).items() if span not in ids}
    numbers = (int(a.id[1:]) for a in kept if a.id[:1] == "T" and a.id[1:].isdecimal())
    made = _make_spans(doc, new, max(numbers, default=0) + 1)
    ids = {**ids, **{(*a.fragments[0], a.label): a.id for a in made}}
    return (*kept, *made, *_make_relations(doc, ids))


def _make_spans(doc: Doc, spans: Mapping[CharSpan, str], first: int) -> list[SpanAnnotation]:
    return [
        SpanAnnotation(
            f"T{number}",
            label,
            ((start, end),),
            " ".join(doc.text[start:end].split()),
            tuple(filter(None, spans[start, end, label].split("|"))),
        )
        for number, (start, end, label) in enumerate(sorted(spans), start=first)
    ]


def _list_arguments(doc: Doc) -> dict[CharSpan, str]:
    """List the spans that predicted relations are between, with their concept ids."""
    if not has_predicted(doc):
        return {}
    spans = (span for each in get_relations(doc) for span in (each.head, each.child))
    return {(span.start_char, span.end_char, span.label_): span.kb_id_ for span in spans}


def _make_relations(doc: Doc, ids: Mapping[CharSpan, str]) -> list[RelationAnnotation]:
    """Make the annotations of predicted relations: R1 and so on, with the roles Arg1 and Arg2.

    The arguments of a relation between concepts are the concept ids, as in PubTator.
    """
    if not has_predicted(doc):
        return []
    made = []
    for number, relation in enumerate(get_relations(doc), start=1):
        targets = relation.concepts or tuple(
            ids[span.start_char, span.end_char, span.label_]
            for span in (relation.head, relation.child)
        )
        args = tuple(zip(("Arg1", "Arg2"), targets, strict=True))
        made.append(RelationAnnotation(f"R{number}", relation.label, args))
    return made
