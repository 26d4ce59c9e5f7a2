"""Make the arrays of a knowledge base from the records of its concepts."""

from collections.abc import Collection

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ...errors import BioclinError
from ..names.columns import Strings, as_array, pack_strings, starts
from .concepts import MAX_PLACES, SkipReport, is_type
from .records import MAX_LANGS, Records, Values

# An alias that more concepts have means none of them ("Serum" in LOINC), and makes searches slow.
MAX_SHARED = 100
# An error lists this many of the types that were found.
SHOWN = 20


class Assembly:
    """Make arrays of the concepts that are kept, sorted by id.

    records (Records): The records of all concepts.
    types (Collection[str]): Keep concepts of these types, see `is_type`; empty keeps all.
    ids, below (Collection[str]): Keep the concepts of `ids` and those of `below` with all that are
        below them; both empty keeps all.
    report (SkipReport): Counts what is left out.
    arrays (dict[str, np.ndarray]): All arrays except those of `index_names`.
    names (Strings): The names, those of a concept together, the preferred one first, and of each
        language the one preferred in it.
    type_names (list[str]): Names of the types, by their numbers in the arrays.
    RAISES (BioclinError): No concept is left, or an id of `below` is unknown.
    """

    def __init__(
        self,
        records: Records,
        types: Collection[str],
        report: SkipReport,
        *,
        ids: Collection[str] = (),
        below: Collection[str] = (),
    ) -> None:
        self.records, self.report = records, report
        self._ids = list(records.number)
        owners = self._kept_owners(types, self._asked_for(ids, below) if ids or below else None)
        self.n_concepts = len(owners)
        if not self.n_concepts:
            raise BioclinError(
                f"nothing is left of {sum(records.is_record):,} concepts with langs = "
                f"{sorted(records.langs)}, types = {sorted(types)}; languages found: "
                f"{sorted(records.lang_number)}, types found: "
                f"{sorted(records.type_number)[:SHOWN]}"
            )
        self._row = np.full(len(self._ids), -1, np.int32)
        self._row[owners] = np.arange(self.n_concepts, dtype=np.int32)
        self.arrays: dict[str, np.ndarray] = {}
        self._put_strings("ids", pack_strings(self._ids[owner] for owner in owners))
        self.names = self._put_names()
        self.type_names = self._put_types()
        self._put_parents()
        self._put_definitions()
        rows = self._put_list("xrefs", records.xrefs)
        self._put_strings("xrefs", records.xrefs.texts.strings().take(rows))
        self._put_other_ids()

    def _asked_for(self, ids: Collection[str], below: Collection[str]) -> np.ndarray:
        """Mark the concepts of `ids`, and those of `below` with all that are below them.

        RETURNS (np.ndarray): (n,) bool.
        """
        number = dict(self.records.number)
        # A retired id stands for its concept.
        texts = self.records.other_ids.texts.strings()
        for i, owner in enumerate(self.records.other_ids.owner):
            number.setdefault(texts[i], owner)
        if missing := [id for id in below if id not in number]:
            raise BioclinError(
                f"{missing[0]!r}, of which the concepts below are wanted, is unknown"
            )
        for id in ids:
            if id not in number:
                self.report.skip("id asked for that no source has", id)
        chosen = np.zeros(len(self._ids), bool)
        chosen[[number[id] for id in below]] = True
        child, parent = self.records.parents.arrays()
        n_before = 0
        while (n := int(chosen.sum())) > n_before:
            n_before = n
            chosen[child[chosen[parent]]] = True
        chosen[[number[id] for id in ids if id in number]] = True
        return chosen

    def _kept_owners(self, types: Collection[str], chosen: np.ndarray | None) -> np.ndarray:
        """List the concepts that are kept, sorted by id."""
        kept = as_array(self.records.is_record, bool).copy()
        if chosen is not None:
            self._skip("concept that was not asked for", np.flatnonzero(kept & ~chosen))
            kept &= chosen
        if types:
            wanted = np.array([is_type(name, types) for name in self.records.type_number], bool)
            owner, number = self.records.types.arrays()
            of_type = np.zeros(len(kept), bool)
            of_type[owner[wanted[number]]] = True
            self._skip("concept of another type", np.flatnonzero(kept & ~of_type))
            kept &= of_type
        named = np.zeros(len(kept), bool)
        named[self.records.names.arrays()[0]] = True
        langs = f" in {', '.join(sorted(self.records.langs))}" if self.records.langs else ""
        self._skip(f"concept without a name{langs}", np.flatnonzero(kept & ~named))
        owners = np.flatnonzero(kept & named)
        return np.array(sorted(owners.tolist(), key=self._ids.__getitem__), np.int64)

    def _skip(self, reason: str, owners: np.ndarray) -> None:
        for i, owner in enumerate(owners[:MAX_PLACES]):
            last = i == MAX_PLACES - 1
            self.report.skip(reason, self._ids[owner], len(owners) - i if last else 1)

    def _put_names(self) -> Strings:
        """Store the names, those of a concept together, in the order of `order_names`."""
        owner, text = self.records.names.arrays()
        preferred = as_array(self.records.preferred, bool)
        kept, repeated = self._choose(owner, text, first=preferred)
        self._skip(
            "alias that its concept has already (kept once)", owner[repeated[~preferred[repeated]]]
        )
        kept = self._drop_common(kept, owner, text, preferred)
        lang = as_array(self.records.lang, np.uint8)
        order, further = order_names(self._row[owner[kept]], lang[kept], preferred[kept])
        self._skip("second preferred name in a language (kept as alias)", owner[kept[further]])
        kept = kept[order]
        concept = self._row[owner[kept]]
        begin = starts(np.bincount(concept, minlength=self.n_concepts))
        self.arrays |= {"name_concept": concept, "name_lang": lang[kept], "first_name": begin}
        names = self.records.names.texts.strings().take(kept)
        self._put_strings("names", names)
        return names

    def _drop_common(
        self, kept: np.ndarray, owner: np.ndarray, text: np.ndarray, preferred: np.ndarray
    ) -> np.ndarray:
        """Drop aliases that too many concepts have, unless a concept has no preferred name.

        kept (np.ndarray): Positions of the names in the other arrays, each name of a concept once.
        RETURNS (np.ndarray): The positions that remain.
        """
        _, value, n_concepts = np.unique(text[kept], return_inverse=True, return_counts=True)
        is_named = np.zeros(len(self._ids), bool)
        is_named[owner[kept[preferred[kept]]]] = True
        common = (n_concepts[value] > MAX_SHARED) & ~preferred[kept] & is_named[owner[kept]]
        self._skip(f"alias that over {MAX_SHARED} concepts have", owner[kept[common]])
        return kept[~common]

    def _choose(
        self, owner: np.ndarray, value: np.ndarray, first: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose the different values of each concept that is kept.

        owner, value (np.ndarray): (n,), in the order of the records.
        first (np.ndarray | None): (n,) bool: these are preferred among equal values.
        RETURNS (tuple[np.ndarray, np.ndarray]): Positions of the chosen values, by row of the
            concept, then in the order of the records; and positions of the repeated values.
        """
        row = self._row[owner]
        order = np.lexsort((value, row) if first is None else (~first, value, row))
        row_in, value_in = row[order], value[order]
        same = (row_in[1:] == row_in[:-1]) & (value_in[1:] == value_in[:-1])
        repeated = order[1:][same]
        kept = row >= 0
        repeated = repeated[kept[repeated]]
        kept[repeated] = False
        chosen = np.flatnonzero(kept)
        return chosen[np.argsort(row[chosen], kind="stable")], np.sort(repeated)

    def _put_list(self, name: str, values: Values) -> np.ndarray:
        """Store in X_start where the list of each concept begins.

        RETURNS (np.ndarray): Positions of the values, each once for a concept, list after list.
        """
        owner, value = values.arrays()
        chosen, _ = self._choose(owner, value)
        self._put_starts(name, self._row[owner[chosen]])
        return chosen

    def _put_starts(self, name: str, row: np.ndarray) -> None:
        self.arrays[f"{name}_start"] = starts(np.bincount(row, minlength=self.n_concepts))

    def _put_types(self) -> list[str]:
        """Store the types, and return the names of those that occur, sorted."""
        number = self.records.types.arrays()[1][self._put_list("types", self.records.types)]
        names = list(self.records.type_number)
        there = sorted(np.unique(number).tolist(), key=names.__getitem__)
        rank = np.zeros(len(names), np.int32)
        rank[there] = np.arange(len(there))
        self.arrays["types"] = rank[number]
        return [names[i] for i in there]

    def _put_definitions(self) -> None:
        """Store the first definition of each concept."""
        owner, _ = self.records.definitions.arrays()
        chosen, _ = self._choose(owner, np.zeros(len(owner), np.int64))
        texts = self.records.definitions.texts.strings().take(chosen)
        lengths = np.zeros(self.n_concepts, np.int64)
        lengths[self._row[owner[chosen]]] = np.diff(texts.start)
        self._put_strings("definitions", Strings(texts.data, starts(lengths)))

    def _put_parents(self) -> None:
        """Store the rows of the parents, without those that close a circle."""
        owner, value = self.records.parents.arrays()
        chosen, _ = self._choose(owner, value)
        child, parent = self._row[owner[chosen]], self._row[value[chosen]]
        self._skip("parent that is no concept here", owner[chosen[parent < 0]])
        known = parent >= 0
        child, parent, chosen = child[known], parent[known], chosen[known]
        links = np.ones(len(child), bool), (child, parent)
        graph = sparse.csr_matrix(links, (self.n_concepts, self.n_concepts))
        _, component = connected_components(graph, connection="strong")
        circle = component[child] == component[parent]
        self._skip("parent in a circle", owner[chosen[circle]])
        self.arrays["parents"] = parent[~circle]
        self._put_starts("parents", child[~circle])

    def _put_other_ids(self) -> None:
        """Store alternative ids, sorted, with the row of their concept; and those of each row."""
        owner, value = self.records.other_ids.arrays()
        texts = self.records.other_ids.texts.strings()
        target: dict[str, int] = {}
        for i in self._choose(owner, value)[0].tolist():
            text, row = texts[i], int(self._row[owner[i]])
            number = self.records.number.get(text)
            is_concept = number is not None and self._row[number] >= 0
            if is_concept or target.setdefault(text, row) != row:
                self.report.skip("alternative id that another concept has", self._ids[owner[i]])
        ordered = sorted(target)
        self._put_strings("other_ids", pack_strings(ordered))
        rows = np.array([target[id] for id in ordered], np.int32)
        self.arrays["other_concept"] = rows
        self.arrays["others"] = np.argsort(rows, kind="stable").astype(np.int32)
        self._put_starts("others", rows)

    def _put_strings(self, name: str, texts: Strings) -> None:
        self.arrays[name], self.arrays[f"{name}_at"] = texts.data, texts.start


def order_names(
    row: np.ndarray, lang: np.ndarray, preferred: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put the first preferred name of each concept before its other names, and the first one in
    each language before the other names in that language. All else stays in order.

    row (np.ndarray): (n,) rows of the concepts of the names, sorted.
    lang (np.ndarray): (n,) languages, as numbers below `MAX_LANGS`.
    preferred (np.ndarray): (n,) bool.
    RETURNS (tuple[np.ndarray, np.ndarray]): Positions of the names in their new order; and, sorted,
        those of further preferred names in a language.
    """
    group = row.astype(np.int64) * MAX_LANGS + lang
    flagged = np.flatnonzero(preferred)
    groups, begin = np.unique(group, return_index=True)
    own, first = np.unique(group[flagged], return_index=True)
    place = 2 * np.arange(len(row))
    place[flagged[first]] = 2 * begin[np.searchsorted(groups, own)] - 1
    _, front = np.unique(row[flagged], return_index=True)
    place[flagged[front]] = -1
    return np.lexsort((place, row)), np.delete(flagged, first)
