"""Gold relations of the parts of a Doc that is cut for training."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...annotations.relations import GOLD_CONCEPT_RELATIONS, GOLD_RELATIONS


class ByStart:
    """Things of a text that can be looked up by where they start. A corpus may have thousands in
    one text, and a hundred parts to look for.

    items (Iterable[tuple[int, Any]]): Start and thing, in any order.
    """

    def __init__(self, items: Iterable[tuple[int, Any]]) -> None:
        self._items = list(items)
        self._order = sorted(range(len(self._items)), key=lambda i: self._items[i][0])
        self._starts = [self._items[i][0] for i in self._order]

    def within(self, start: int, end: int) -> Iterator[Any]:
        """Yield what starts in a part of the text, in the order in which it was given."""
        first, behind = bisect_left(self._starts, start), bisect_left(self._starts, end)
        yield from (self._items[i][1] for i in sorted(self._order[first:behind]))


def index_gold_relations(gold: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare the relations of a gold Doc for `cut_gold_relations`.

    gold (Mapping): What the Doc has under `GOLD_KEY`.
    RETURNS (dict): The keys of relations that it has.
    """
    index: dict[str, Any] = {}
    if GOLD_RELATIONS in gold:
        index[GOLD_RELATIONS] = ByStart((one[1][0], one) for one in gold[GOLD_RELATIONS])
    if GOLD_CONCEPT_RELATIONS in gold:
        index[GOLD_CONCEPT_RELATIONS] = gold[GOLD_CONCEPT_RELATIONS]
    return index


def cut_gold_relations(
    index: Mapping[str, Any], layers: Mapping[str, list[list[Any]]], begin: int, end: int
) -> dict[str, list[list[Any]]]:
    """Find the relations of a part of a gold Doc: those with both arguments in it.

    index (Mapping): See `index_gold_relations`.
    layers (Mapping): The spans of the part, as under `GOLD_KEY`.
    begin, end (int): First character of the part and end (exclusive).
    RETURNS (dict[str, list]): The keys of relations that the Doc has, with the offsets of the part.
    """
    found: dict[str, list[list[Any]]] = {}
    if GOLD_RELATIONS in index:
        found[GOLD_RELATIONS] = [
            [label, *([start - begin, stop - begin, name] for start, stop, name in pair)]
            for label, *pair in index[GOLD_RELATIONS].within(begin, end)
            if begin <= pair[1][0] < end
        ]
    if GOLD_CONCEPT_RELATIONS in index:
        concepts = {id for items in layers.values() for item in items for id in item[3].split("|")}
        found[GOLD_CONCEPT_RELATIONS] = [
            relation
            for relation in index[GOLD_CONCEPT_RELATIONS]
            if concepts.issuperset(relation[1:])
        ]
    return found
