"""Resolve the relations of a corpus file to the spans and concepts of a gold Doc."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from ...annotations.relations import GOLD_CONCEPT_RELATIONS, GOLD_RELATIONS
from ...types import Annotation, CharSpan, OtherAnnotation, RelationAnnotation
from ..report import LossReport

ALL: Literal["all"] = "all"
# The labels of the relations that Docs get, or "all".
RelationLabels = Collection[str] | Literal["all"]
# What the relations of a format are between: spans, concepts, or what their arguments happen to be.
Level = Literal["mention", "concept", "either"]


class Arguments(NamedTuple):
    """What the relations of a document can be between.

    spans (dict[str, CharSpan]): Annotation id -> span of the Doc, with the offsets of the file.
    concepts (set[str]): Concept ids of these spans.
    left_out (set[str]): Ids of annotations whose label does not belong to the task, and their
        concept ids.
    """

    spans: dict[str, CharSpan]
    concepts: set[str]
    left_out: set[str]


def find_gold_relations(
    annotations: Iterable[Annotation],
    arguments: Arguments,
    *,
    labels: RelationLabels,
    level: Level,
    name: str,
    report: LossReport,
) -> dict[str, list[list[Any]]]:
    """Find the relations of a document for its gold Doc, and count what becomes of each.

    annotations (Iterable[Annotation]): The annotations of the file.
    arguments (Arguments): What they can be between.
    labels (RelationLabels): The labels to keep.
    level (Level): With "mention" and "concept" the result has one key. With "either" it has the
        keys of what occurs in the document; where nothing does, both, for then there is no
        relation of either kind.
    name (str): Name of the document in the report.
    report (LossReport): Counts the relations.
    RETURNS (dict[str, list]): The keys of relations in `doc.user_data[GOLD_KEY]`, see
        `annotations.relations`. In file order, each relation once.
    """
    annotations = list(annotations)
    triggers = _find_triggers(annotations)
    found: dict[str, dict[tuple[Any, ...], None]] = {GOLD_RELATIONS: {}, GOLD_CONCEPT_RELATIONS: {}}
    report.relations_annotated = True
    for label, ids in _list_relations(annotations):
        report.relations_read += 1
        if not label.strip():
            report.add("relation_no_label", name)
            continue
        report.relation_labels.add(label)
        if labels != ALL and label not in labels:
            report.add("relation_other", name)
        elif len(ids) != 2:
            report.add("relation_nary", name)
        else:
            pair = tuple(triggers.get(id, id) for id in ids)
            key, resolved = _resolve(pair, arguments, level)
            if resolved is None:
                report.add(key, name)
                continue
            relation = (label, *resolved)
            if relation in found[key]:
                report.add("relation_duplicate", name)
            else:
                found[key][relation] = None
                report.relations_kept += 1
    if level != "either":
        kept = {GOLD_RELATIONS if level == "mention" else GOLD_CONCEPT_RELATIONS}
    else:
        kept = {key for key, relations in found.items() if relations} or set(found)
    return {key: [_as_lists(one) for one in found[key]] for key in sorted(kept)}


def _find_triggers(annotations: Iterable[Annotation]) -> dict[str, str]:
    """Find the trigger of each event: brat's "E1<TAB>Label:T5 Role:T6" is about T5."""
    triggers = {}
    for line in annotations:
        if (
            isinstance(line, OtherAnnotation)
            and line.id.startswith("E")
            and (event := _parse_event(line.raw))
        ):
            triggers[line.id] = event[0][1]
    return triggers


def _parse_event(raw: str) -> list[tuple[str, str]]:
    """List the roles and ids of an event: its label with the trigger, then its arguments."""
    pairs = [field.partition(":") for field in raw.split()[1:]]
    return [(role, id) for role, colon, id in pairs if colon and role and id]


def _list_relations(annotations: Iterable[Annotation]) -> Iterator[tuple[str, list[str]]]:
    """List label and arguments of each relation, in file order.

    The arguments of an event are relations from it, with their roles as labels: "Theme" also for
    "Theme2", the second argument of this role. A line "*" says
    that its arguments are related to each other.
    """
    for line in annotations:
        if isinstance(line, RelationAnnotation):
            yield line.label, [id for _, id in line.args]
        elif isinstance(line, OtherAnnotation) and line.id == "*":
            _, label, *ids = (*line.raw.split(), "")
            yield label, list(filter(None, ids))
        elif isinstance(line, OtherAnnotation) and line.id.startswith("E"):
            for role, id in _parse_event(line.raw)[1:]:
                yield role.rstrip("0123456789") or role, [line.id, id]


def _resolve(
    ids: tuple[str, ...], arguments: Arguments, level: Level
) -> tuple[str, tuple[Any, ...] | None]:
    """Find what a relation is between.

    RETURNS (tuple[str, tuple | None]): Key of the gold Doc, and head and child; or the kind of loss
        and None.
    """
    if level != "concept" and all(id in arguments.spans for id in ids):
        return GOLD_RELATIONS, tuple(arguments.spans[id] for id in ids)
    if level != "mention" and all(id in arguments.concepts for id in ids):
        return GOLD_CONCEPT_RELATIONS, ids
    known: set[str] = set()
    known |= set() if level == "concept" else {*arguments.spans}
    known |= set() if level == "mention" else arguments.concepts
    others = [id for id in ids if id not in known]
    is_left_out = bool(others) and all(id in arguments.left_out for id in others)
    return ("relation_left_out" if is_left_out else "relation_no_span"), None


def _as_lists(relation: tuple[Any, ...]) -> list[Any]:
    return [list(field) if isinstance(field, tuple) else field for field in relation]
