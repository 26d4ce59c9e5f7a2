"""What relation heads learn from: annotated spans, and which candidates are annotated relations."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.relations import get_gold_concept_relations, get_gold_relations
from ..corpora.docs import align, find_edges
from ..spans import get_spans
from ..types import GOLD_KEY
from .candidates import Candidates, Mention, Types

# Label, head and child: the arguments as (first token, end, label) or (concept id, label).
Key = tuple[str, tuple[object, ...], tuple[object, ...]]


class Target(NamedTuple):
    """What the candidates of a Doc are.

    labels (ndarray): Whether a candidate has a label, (n_pairs, n_labels).
    known (bool): Whether the Doc was annotated for relations; if not, nothing is learned from it.
    missed (list[str]): Labels of the annotated relations that no candidate is.
    """

    labels: np.ndarray
    known: bool
    missed: list[str]


def get_gold_mentions(eg: Example, spans_key: str | None) -> list[Mention]:
    """Read the annotated spans of an example, in tokens of its predicted Doc.

    Spans of the corpus file are used where the reference has them: doc.ents may lack those that
    overlap.
    """
    layer = "ents" if spans_key is None else spans_key
    layers = eg.reference.user_data.get(GOLD_KEY, {}).get("layers", {})
    spans: Iterable[tuple[int, int, str, str]]
    if layer in layers:
        spans = [tuple(fields) for fields in layers[layer]]
    else:
        spans = [
            (span.start_char, span.end_char, span.label_, span.kb_id_)
            for span in get_spans(eg.reference, spans_key)
        ]
    edges = find_edges(eg.predicted)
    mentions = []
    for start, end, label, kb_id in spans:
        tokens = align(eg.predicted, edges, start, end)
        if tokens is not None:
            mentions.append(Mention(*tokens, label, tuple(kb_id.split("|"))))
    return mentions


def get_mentions(doc: Doc, spans_key: str | None) -> list[Mention]:
    """Read the spans that components have found, or that were given."""
    return [
        Mention(span.start, span.end, span.label_, tuple(span.kb_id_.split("|")))
        for span in get_spans(doc, spans_key)
    ]


def is_annotated(doc: Doc, *, by_concept: bool) -> bool:
    """Check whether a gold Doc was annotated for relations."""
    read = get_gold_concept_relations if by_concept else get_gold_relations
    return read(doc) is not None


def get_gold_labels(doc: Doc, *, by_concept: bool) -> list[str]:
    """List the labels of the annotated relations of a gold Doc, one for each."""
    read = get_gold_concept_relations if by_concept else get_gold_relations
    return [relation.label for relation in read(doc) or ()]


def collect_types(
    examples: Iterable[Example], spans_key: str | None, *, by_concept: bool
) -> dict[str, set[tuple[str, str]]]:
    """Collect the labels of annotated relations, and the labels of their arguments.

    RETURNS (dict): Label -> pairs of labels of head and child.
    """
    found: dict[str, set[tuple[str, str]]] = {}
    for eg in examples:
        if not by_concept:
            for relation in get_gold_relations(eg.reference) or ():
                pair = (relation.head[2], relation.child[2])
                found.setdefault(relation.label, set()).add(pair)
            continue
        gold = get_gold_concept_relations(eg.reference)
        labels: dict[str, set[str]] = {}
        for mention in get_gold_mentions(eg, spans_key) if gold else ():
            for concept in mention.concepts:
                labels.setdefault(concept, set()).add(mention.label)
        for concepts in gold or ():
            for head in labels.get(concepts.head, ()):
                for child in labels.get(concepts.child, ()):
                    found.setdefault(concepts.label, set()).add((head, child))
    return found


def make_target(eg: Example, candidates: Candidates, types: Types, *, by_concept: bool) -> Target:
    """Find which candidates are annotated relations of the labels in `types`."""
    labels = np.zeros((len(candidates.pairs), len(types.labels)), dtype=bool)
    if not is_annotated(eg.reference, by_concept=by_concept):
        return Target(labels, False, [])
    arguments = candidates.arguments
    if by_concept:
        names: list[tuple[object, ...]] = [(argument.concept,) for argument in arguments]
    else:
        names = [tuple(candidates.mentions[a.mentions[0]][:3]) for a in arguments]
    rows: dict[tuple[object, object], list[int]] = {}
    for row, (head, child) in enumerate(candidates.pairs.tolist()):
        rows.setdefault((names[head], names[child]), []).append(row)
    columns = {label: column for column, label in enumerate(types.labels)}
    missed = []
    for label, gold_head, gold_child in _read_gold(eg, by_concept=by_concept):
        if label not in columns:
            continue
        column = columns[label]
        own = list(rows.get((gold_head, gold_child), ()))
        if types.symmetric[column]:
            own += rows.get((gold_child, gold_head), ())
        labels[own, column] = True
        if not own:
            missed.append(label)
    return Target(labels, True, missed)


def _read_gold(eg: Example, *, by_concept: bool) -> Iterable[Key]:
    if by_concept:
        for concepts in get_gold_concept_relations(eg.reference) or ():
            yield concepts.label, (concepts.head,), (concepts.child,)
        return
    edges = find_edges(eg.predicted)
    for relation in get_gold_relations(eg.reference) or ():
        head, child = (
            (*(align(eg.predicted, edges, start, end) or (-1, -1)), label)
            for start, end, label in (relation.head, relation.child)
        )
        yield relation.label, head, child
