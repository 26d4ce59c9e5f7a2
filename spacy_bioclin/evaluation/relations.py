"""Score relations, between mentions or between concepts; also the scorer for training.

The relations of a document are a set: one that is annotated or predicted twice counts once.

mention: label, offsets and labels of head and child are equal, on the characters of the file.
concept: label and concept ids of head and child are equal, whatever their mentions are.

The direction counts, except for the labels that are symmetric.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.relations import (
    RELATIONS_KEY,
    GoldRelation,
    get_gold_concept_relations,
    get_gold_relations,
    get_relations,
)
from ..errors import BioclinError
from ..types import GIVEN_KEY, GOLD_KEY, CharSpan
from .bootstrap import summarize_all
from .spans import Counts, SpanScores

KEYS = ("rels_p", "rels_r", "rels_f", "rels_macro_f", "rels_per_type")
MENTION, CONCEPT = "mention", "concept"

# (label, head, child); the arguments are spans of characters, or concept ids.
Triple = tuple[str, Any, Any]


class ComparedRelations(NamedTuple):
    """The relations of a document: sets of gold and predicted ones.

    mentions (tuple[set, set] | None): Relations between spans; None if the document was not
        annotated for them.
    concepts (tuple[set, set] | None): Relations between concepts; None in the same way.
    """

    mentions: tuple[set[Triple], set[Triple]] | None
    concepts: tuple[set[Triple], set[Triple]] | None


def has_gold_relations(doc: Doc) -> bool:
    """Check whether a Doc was annotated for relations, even if there are none in it."""
    found = get_gold_relations(doc), get_gold_concept_relations(doc)
    return any(relations is not None for relations in found)


def compare_relations(
    eg: Example, relations_key: str, symmetric: Collection[str] = ()
) -> ComparedRelations:
    """Read the gold and the predicted relations of an Example.

    If the predicted Doc was given the gold spans, these end at its tokens. Then the gold offsets
    are aligned in the same way. An argument that touches no token could not be given, and its
    relation counts as missed.

    eg (Example): The Example, which is not changed.
    relations_key (str): Which relations of the predicted Doc.
    symmetric (Collection[str]): Labels of relations without direction.
    RETURNS (ComparedRelations): The sets.
    RAISES (BioclinError): The predicted Doc has another text than the reference.
    """
    if eg.predicted.text != eg.reference.text:
        name = eg.reference.user_data.get(GOLD_KEY, {}).get("id", "without id")
        raise BioclinError(
            f"Cannot score the relations of document {name}: predicted and reference Doc hold "
            "different texts, so their character offsets do not compare. Make the predicted Doc "
            "with nlp.make_doc(reference.text), and that of a pair with make_pair."
        )
    has_run = RELATIONS_KEY in eg.predicted.user_data  # else its gold relations would be read
    found = get_relations(eg.predicted, relations_key) if has_run else []
    gold, concepts = get_gold_relations(eg.reference), get_gold_concept_relations(eg.reference)
    mentions = None
    if gold is not None:
        if eg.predicted.user_data.get(GIVEN_KEY):
            gold = _align(eg.predicted, gold)
        predicted = [
            (
                one.label,
                (one.head.start_char, one.head.end_char, one.head.label_),
                (one.child.start_char, one.child.end_char, one.child.label_),
            )
            for one in found
        ]
        mentions = _to_set(gold, symmetric), _to_set(predicted, symmetric)
    between = None
    if concepts is not None:
        linked = [(one.label, *one.concepts) for one in found if one.concepts is not None]
        between = _to_set(concepts, symmetric), _to_set(linked, symmetric)
    return ComparedRelations(mentions, between)


def _to_set(relations: Iterable[Triple], symmetric: Collection[str]) -> set[Triple]:
    """Collect relations; those of a symmetric label get one of their two directions."""
    return {
        (label, *(sorted(arguments) if label in symmetric else arguments))
        for label, *arguments in relations
    }


def _align(doc: Doc, relations: Iterable[GoldRelation]) -> list[GoldRelation]:
    def align(span: CharSpan) -> CharSpan:
        start, end, label = span
        return *(align_span(doc, start, end) or (start, end)), label

    return [GoldRelation(one.label, align(one.head), align(one.child)) for one in relations]


def align_span(doc: Doc, start: int, end: int) -> tuple[int, int] | None:
    """Move the ends of a span to those of the tokens that it touches, without blank ones.

    start, end (int): Character offsets.
    RETURNS (tuple[int, int] | None): Those of the tokens; None if the span touches none.
    """
    index = bisect_right(doc, start, key=lambda token: token.idx + len(token))
    touched = takewhile(lambda token: token.idx < end, (doc[i] for i in range(index, len(doc))))
    tokens = [token for token in touched if not token.is_space]
    if start >= end or not tokens:
        return None
    return tokens[0].idx, tokens[-1].idx + len(tokens[-1])


def choose_level(docs: Iterable[ComparedRelations]) -> str:
    """Choose between mentions and concepts, by what is annotated and what was found.

    RETURNS (str): "concept" if the documents are annotated for relations between concepts only, or
        for both and the predictions are between concepts; else "mention".
    """
    docs = list(docs)
    has_mentions = any(doc.mentions is not None for doc in docs)
    has_concepts = any(doc.concepts is not None for doc in docs)
    finds_concepts = any(doc.concepts is not None and doc.concepts[1] for doc in docs)
    return CONCEPT if has_concepts and (finds_concepts or not has_mentions) else MENTION


def count_relations(
    docs: Iterable[ComparedRelations], level: str | None = None
) -> SpanScores | None:
    """Count right, wrong and missed relations per document and label.

    docs (Iterable[ComparedRelations]): Documents that are not annotated at this level are left out.
    level (str | None): "mention" or "concept"; None for what `choose_level` chooses.
    RETURNS (SpanScores | None): The counts of each document; None if none is annotated.
    """
    docs = list(docs)
    level = level or choose_level(docs)
    pairs = [doc.concepts if level == CONCEPT else doc.mentions for doc in docs]
    annotated = [_count(*pair) for pair in pairs if pair is not None]
    return SpanScores(annotated) if annotated else None


def _count(gold: Set[Triple], found: Set[Triple]) -> dict[str, Counts]:
    of_label: dict[str, tuple[set[Triple], set[Triple]]] = defaultdict(lambda: (set(), set()))
    for side, relations in enumerate((gold, found)):
        for relation in relations:
            of_label[relation[0]][side].add(relation)
    return {label: Counts.of_sets(*sides) for label, sides in of_label.items()}


def list_labels(compared: Iterable[ComparedRelations]) -> tuple[set[str], set[str]]:
    """List the labels of the gold relations, and those of the relations that were found.

    compared (Iterable[ComparedRelations]): The relations of each document.
    RETURNS (tuple[set[str], set[str]]): Gold and predicted labels.
    """
    pairs = [pair for doc in compared for pair in doc if pair is not None]
    gold, found = ({one[0] for pair in pairs for one in pair[side]} for side in (0, 1))
    return gold, found


def relation_metrics(
    predicted: Sequence[ComparedRelations], given: Sequence[ComparedRelations], level: str | None
) -> dict[str, Any] | None:
    """Compute the scores of a component that finds relations.

    predicted (Sequence[ComparedRelations]): Relations between the entities that the pipeline finds;
        empty if it finds none.
    given (Sequence[ComparedRelations]): Relations between the gold entities.
    level (str | None): "mention" or "concept"; None for what `choose_level` chooses.
    RETURNS (dict[str, Any] | None): "predicted_entities" (None if the pipeline finds none) and
        "gold_entities", each with the level, the number of documents, and scores with counts and
        95 % intervals of F1. None if no document is annotated at this level. Ready for JSON.
    """
    level = level or choose_level([*predicted, *given])
    metrics: dict[str, Any] = {}
    for name, docs in (("predicted_entities", predicted), ("gold_entities", given)):
        metrics[name] = None
        if (scores := count_relations(docs, level)) is not None:
            n_docs = len(scores.per_doc)
            metrics[name] = {"level": level, "docs": n_docs, **summarize_all(scores)}
    return metrics if any(metrics.values()) else None


def spacy_relation_scores(relations: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Give scores of relations spaCy's keys: `rels_f`, or `rels_{key}_f` for other keys.

    relations (Mapping[str, dict]): `relations_key` -> `relation_metrics`. The entities are those
        that the pipeline finds, or the gold ones if it finds none.
    """
    scores: dict[str, Any] = {}
    for relations_key, metrics in relations.items():
        prefix = "rels" if relations_key == "relations" else f"rels_{relations_key}"
        figures = metrics["predicted_entities"] or metrics["gold_entities"]
        scores.update({f"{prefix}_{key}": figures["micro"][key] for key in "prf"})
        scores[f"{prefix}_macro_f"] = figures["macro"]["f"]
        scores[f"{prefix}_per_type"] = {
            label: {key: of_label[key] for key in "prf"}
            for label, of_label in figures["per_type"].items()
        }
    return scores


def relation_score(
    examples: Iterable[Example],
    *,
    relations_key: str,
    symmetric: Collection[str] | None = None,
    level: str | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Compute the scores of relations.

    examples (Iterable[Example]): The Examples, which are not changed.
    relations_key (str): Which relations of the predicted Docs.
    symmetric (Collection[str] | None): Labels of relations without direction.
    level (str | None): "mention" or "concept"; None for what `choose_level` chooses.
    RETURNS (dict[str, Any]): `rels_p`, `rels_r` and `rels_f` over all relations; `rels_macro_f`,
        the mean F1 of the labels of the reference; and `rels_per_type`. All are None if no
        reference is annotated for relations.
    """
    compared = [compare_relations(eg, relations_key, symmetric or ()) for eg in examples]
    scores = count_relations(compared, level)
    if scores is None:
        return dict.fromkeys(KEYS)
    micro = scores.micro
    return {
        "rels_p": micro.precision,
        "rels_r": micro.recall,
        "rels_f": micro.f1,
        "rels_macro_f": scores.macro["f"],
        "rels_per_type": {label: counts.prf() for label, counts in scores.per_label.items()},
    }


def make_relation_scorer(
    relations_key: str = "relations", symmetric: Iterable[str] = ()
) -> Callable[..., dict[str, Any]]:
    """Make a scorer for relations: `spacy-bioclin.relation_scorer.v1`.

    relations_key (str): Which relations of the predicted Docs.
    symmetric (Iterable[str]): Labels of relations without direction. A component may give its own
        with the Examples: `scorer(examples, symmetric=[...])`.
    RETURNS (Callable): `relation_score` for these relations, which can be pickled.
    """
    return partial(relation_score, relations_key=relations_key, symmetric=tuple(symmetric))
