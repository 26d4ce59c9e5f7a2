"""Read and write the relations of a Doc: those that a component found, and those of a gold Doc.

What a component finds is in `doc.user_data[RELATIONS_KEY]`, a list for each `relations_key`, so
that several components can write to one Doc. `doc._.relations` shows all of it. Gold relations are
in `doc.user_data[GOLD_KEY]`: those between two spans under "relations", as `GoldRelation`; those
between two concepts of the Doc, whatever their mentions are, under "concept_relations", as
`ConceptRelation`. A gold Doc without these keys was not annotated for relations.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ..errors import BioclinError
from ..types import GOLD_KEY, CharSpan

# Key in `doc.user_data`: {relations_key: [[label, head, child, probability, concept ids], ...]},
# where head and child are [start, end, label] with character offsets.
RELATIONS_KEY = "bioclin_relations"
# Keys in `doc.user_data[GOLD_KEY]`.
GOLD_RELATIONS, GOLD_CONCEPT_RELATIONS = "relations", "concept_relations"


class Relation(NamedTuple):
    """A relation in a Doc.

    head, child (Span): The arguments. Of a relation between two concepts, the mentions that are
        nearest to each other.
    label (str): Type of the relation.
    probability (float | None): From 0 to 1; None for gold relations.
    concepts (tuple[str, str] | None): Concept ids of head and child, if the relation is one between
        concepts.
    """

    head: Span
    child: Span
    label: str
    probability: float | None = None
    concepts: tuple[str, str] | None = None


class GoldRelation(NamedTuple):
    """An annotated relation between two spans, with character offsets as in the corpus file."""

    label: str
    head: CharSpan
    child: CharSpan


class ConceptRelation(NamedTuple):
    """An annotated relation between two concepts of a document."""

    label: str
    head: str
    child: str


def install_extensions() -> None:
    """Register `doc._.relations`, the list of all relations of a Doc."""
    if not Doc.has_extension("relations"):
        Doc.set_extension("relations", getter=get_relations)


def get_relations(doc: Doc, relations_key: str | None = None) -> list[Relation]:
    """Read the relations that components have found.

    relations_key (str | None): Only those of one component; None for all.
    RETURNS (list[Relation]): For a gold Doc over which no component has run, its gold relations.
    """
    stored: dict[str, list[Any]] | None = doc.user_data.get(RELATIONS_KEY)
    if stored is None:
        return _get_gold_as_found(doc)
    keys = stored if relations_key is None else [relations_key]
    found = []
    known: dict[tuple[int, int, int], Span] = {}
    if any(stored.get(key) for key in keys):
        # Spans that the Doc has already have a concept id.
        for span in (*(one for group in doc.spans.values() for one in group), *doc.ents):
            known[span.start, span.end, span.label] = span
    for key in keys:
        for label, head, child, probability, concepts in stored.get(key, ()):
            ids = tuple(concepts) if concepts else None
            spans = _to_span(doc, head, known), _to_span(doc, child, known)
            found.append(Relation(*spans, label, probability, ids))
    return found


def _get_gold_as_found(doc: Doc) -> list[Relation]:
    found = []
    for relation in get_gold_relations(doc) or ():
        head, child = (
            doc.char_span(start, end, label=label, alignment_mode="expand")
            for start, end, label in (relation.head, relation.child)
        )
        if head is not None and child is not None:
            found.append(Relation(head, child, relation.label))
    return found


def set_relations(doc: Doc, relations_key: str, relations: Iterable[Relation]) -> None:
    """Replace what a component has found in a Doc."""
    install_extensions()  # lost when a worker process starts
    stored: dict[str, list[Any]] = doc.user_data.setdefault(RELATIONS_KEY, {})
    stored[relations_key] = [
        [
            relation.label,
            _to_list(relation.head),
            _to_list(relation.child),
            relation.probability,
            list(relation.concepts) if relation.concepts else None,
        ]
        for relation in relations
    ]


def _to_list(span: Span) -> list[Any]:
    return [span.start_char, span.end_char, span.label_]


def _to_span(doc: Doc, fields: list[Any], known: dict[tuple[int, int, int], Span]) -> Span:
    start, end, label = fields
    span = doc.char_span(start, end, label=label, alignment_mode="expand")
    if span is None:  # tokens that a component after this one has merged or changed
        raise BioclinError(f"characters {start} to {end} of the Doc are no tokens any more")
    return known.get((span.start, span.end, span.label), span)


def get_gold_relations(doc: Doc) -> list[GoldRelation] | None:
    """Read the annotated relations between spans.

    RETURNS (list[GoldRelation] | None): None if the Doc was not annotated for them.
    """
    stored = doc.user_data.get(GOLD_KEY, {}).get(GOLD_RELATIONS)
    if stored is None:
        return None
    return [GoldRelation(label, (*head,), (*child,)) for label, head, child in stored]


def get_gold_concept_relations(doc: Doc) -> list[ConceptRelation] | None:
    """Read the annotated relations between concepts.

    RETURNS (list[ConceptRelation] | None): None if the Doc was not annotated for them.
    """
    stored = doc.user_data.get(GOLD_KEY, {}).get(GOLD_CONCEPT_RELATIONS)
    return None if stored is None else [ConceptRelation(*fields) for fields in stored]
