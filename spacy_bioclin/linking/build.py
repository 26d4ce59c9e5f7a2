"""Concepts of any source become a knowledge base: joined by id, filtered, deduplicated, counted."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..errors import BioclinError
from .concepts import Concept, SkipReport
from .kb import NGRAM, KnowledgeBase, hash_text, pack_strings
from .ngrams import build_arrays
from .normalize import name_key, normalize

# A longer "name" is a definition or a table read wrongly.
MAX_NAME = 500


class _Column:
    """Strings that belong to concepts, in the order they came, in one buffer."""

    def __init__(self) -> None:
        self.data, self.at, self.owner = bytearray(), array("q", [0]), array("i")

    def add(self, owner: int, text: str) -> None:
        self.data += text.encode("utf-8")
        self.at.append(len(self.data))
        self.owner.append(owner)

    def by_owner(self) -> Iterator[tuple[int, int]]:
        """YIELDS (tuple[int, int]): Owner and row, by owner, then in the order they came."""
        order = np.argsort(np.array(self.owner), kind="stable")
        return zip((self.owner[i] for i in order), order.tolist(), strict=True)

    def __getitem__(self, i: int) -> str:
        return self.data[self.at[i] : self.at[i + 1]].decode("utf-8")


class KbBuilder:
    """Takes records, then makes the knowledge base; holds names as bytes, not as objects."""

    def __init__(self, report: SkipReport) -> None:
        self.report = report
        self.number: dict[str, int] = {}
        self.names, self.lang, self.preferred = _Column(), array("B"), array("B")
        self.definitions, self.xrefs, self.other_ids = _Column(), _Column(), _Column()
        self.types, self.parents = _Column(), _Column()
        self.lang_codes: list[str] = []
        self._has_name: set[int] = set()

    def add(self, record: Concept) -> None:
        """Add a concept, or more about one that was added before."""
        owner = self.number.setdefault(record.id, len(self.number))
        if record.name:
            if owner in self._has_name:
                self.report.skip("preferred name of an id that has one (kept as alias)", record.id)
            self._add_name(owner, record.name, record.lang, owner not in self._has_name)
            self._has_name.add(owner)
        for alias in record.aliases:
            self._add_name(owner, alias.text, alias.lang, False)
        if record.definition:
            self.definitions.add(owner, record.definition)
        for column, values in (
            (self.types, record.types),
            (self.parents, record.parents),
            (self.xrefs, record.xrefs),
            (self.other_ids, record.alternative_ids),
        ):
            for value in values:
                column.add(owner, value)

    def _add_name(self, owner: int, text: str, lang: str, preferred: bool) -> None:
        text = " ".join(text.split())
        if not text or len(text) > MAX_NAME:
            reason = f"name over {MAX_NAME} characters" if text else "empty name"
            return self.report.skip(reason, self._id(owner))
        if lang not in self.lang_codes:
            self.lang_codes.append(lang)
        self.names.add(owner, text)
        self.lang.append(self.lang_codes.index(lang))
        self.preferred.append(preferred)

    def _id(self, owner: int) -> str:
        return next(id for id, number in self.number.items() if number == owner)

    def build(
        self, *, langs: Collection[str], types: Collection[str], meta: Mapping[str, Any]
    ) -> KnowledgeBase:
        """Make the knowledge base of what was added.

        langs (Collection[str]): Keep names of these languages, and names without one; empty: all.
        types (Collection[str]): Keep concepts of these types, "C04*" for all that begin so; empty:
            all.
        meta (Mapping): Name, version, sources: what the knowledge base says of itself.
        RETURNS (KnowledgeBase): In memory.
        RAISES (BioclinError): Nothing is left.
        """
        type_lists = self._lists(self.types)
        names = self._choose_names(langs)
        ids = sorted(
            (
                (id, owner)
                for id, owner in self.number.items()
                if self._is_kept(id, owner, names, type_lists, langs, types)
            ),
            key=lambda pair: pair[0].encode("utf-8"),
        )
        if not ids:
            raise BioclinError(
                f"nothing is left of {len(self.number):,} concepts with langs = {sorted(langs)}, "
                f"types = {sorted(types)}; languages found: {sorted(self.lang_codes)}, types "
                f"found: {sorted({t for ts in type_lists.values() for t in ts})[:20]}"
            )
        owners = [owner for _, owner in ids]
        rows = [row for owner in owners for row in names[owner]]
        texts = [self.names[row] for row in rows]
        n_names = [len(names[owner]) for owner in owners]
        type_names = sorted({t for owner in owners for t in type_lists.get(owner, ())})
        type_number = {name: i for i, name in enumerate(type_names)}
        id_rows = {id: i for i, (id, _) in enumerate(ids)}
        first_definition = {
            owner: row for owner, row in reversed(list(self.definitions.by_owner()))
        }
        arrays: dict[str, np.ndarray] = {}
        _put_strings(arrays, "ids", [id for id, _ in ids])
        _put_strings(arrays, "names", texts)
        arrays["first_name"] = _starts(n_names)
        arrays["name_concept"] = np.repeat(np.arange(len(ids), dtype=np.int32), n_names)
        arrays["name_lang"] = np.array([self.lang[row] for row in rows], np.uint8)
        _put_lists(
            arrays, "types", [[type_number[t] for t in type_lists.get(o, ())] for o in owners]
        )
        _put_strings(
            arrays,
            "definitions",
            [
                self.definitions[first_definition[o]] if o in first_definition else ""
                for o in owners
            ],
        )
        xrefs = self._lists(self.xrefs)
        _put_strings(arrays, "xrefs", [x for o in owners for x in xrefs.get(o, ())])
        arrays["xref_start"] = _starts([len(xrefs.get(o, ())) for o in owners])
        _put_lists(arrays, "parents", self._parent_rows(ids, id_rows))
        self._put_other_ids(arrays, ids, id_rows)
        arrays |= index_names(texts)
        about = {
            "name": "",
            "version": "",
            "sources": [],
            **meta,
            "langs": sorted({self.lang_codes[self.lang[row]] for row in rows}),
            "lang_codes": self.lang_codes,
            "types": type_names,
            "n_concepts": len(ids),
            "n_names": len(rows),
            "skipped": self.report.as_dict(),
        }
        return KnowledgeBase(arrays, about)

    def _lists(self, column: _Column) -> dict[int, list[str]]:
        """RETURNS (dict[int, list[str]]): Owner -> its different strings."""
        lists: dict[int, dict[str, None]] = {}
        for owner, row in column.by_owner():
            lists.setdefault(owner, {})[column[row]] = None
        return {owner: list(texts) for owner, texts in lists.items()}

    def _choose_names(self, langs: Collection[str]) -> dict[int, list[int]]:
        """RETURNS (dict[int, list[int]]): Owner -> rows of its names, the preferred one first."""
        wanted = {
            i for i, lang in enumerate(self.lang_codes) if not langs or not lang or lang in langs
        }
        chosen: dict[int, list[int]] = {}
        seen: dict[int, set[str]] = {}
        for owner, row in self.names.by_owner():
            if self.lang[row] not in wanted:
                self.report.skip("name in another language", self.lang_codes[self.lang[row]])
                continue
            text = self.names[row]
            if not normalize(text):
                self.report.skip("name without a letter or digit", f"name {row}")
            elif text in seen.setdefault(owner, set()):
                self.report.skip("name that the concept has already", f"name {row}")
            else:
                seen[owner].add(text)
                rows = chosen.setdefault(owner, [])
                rows.insert(0, row) if self.preferred[row] else rows.append(row)
        return chosen

    def _is_kept(
        self,
        id: str,
        owner: int,
        names: Mapping[int, list[int]],
        type_lists: Mapping[int, Sequence[str]],
        langs: Collection[str],
        types: Collection[str],
    ) -> bool:
        if owner not in names:
            asked = f" in {', '.join(sorted(langs))}" if langs else ""
            self.report.skip(f"concept without a name{asked}", id)
            return False
        if types and not any(is_type(t, types) for t in type_lists.get(owner, ())):
            self.report.skip("concept of another type", id)
            return False
        return True

    def _parent_rows(
        self, ids: Sequence[tuple[str, int]], id_rows: Mapping[str, int]
    ) -> list[list[int]]:
        """RETURNS (list[list[int]]): Rows of the parents; none that closes a circle."""
        lists = self._lists(self.parents)
        pairs = []
        for row, (id, owner) in enumerate(ids):
            for parent in lists.get(owner, ()):
                if parent in id_rows:
                    pairs.append((row, id_rows[parent]))
                else:
                    self.report.skip("parent that is no concept here", f"{id} -> {parent}")
        child, parent = np.array(pairs, np.int32).reshape(-1, 2).T
        graph = sparse.csr_matrix((np.ones(len(pairs), bool), (child, parent)), (len(ids),) * 2)
        _, component = connected_components(graph, connection="strong")
        kept: list[list[int]] = [[] for _ in ids]
        for i, j in pairs:
            if component[i] == component[j]:
                self.report.skip("parent in a circle", f"{ids[i][0]} -> {ids[j][0]}")
            else:
                kept[i].append(j)
        return kept

    def _put_other_ids(
        self,
        arrays: dict[str, np.ndarray],
        ids: Sequence[tuple[str, int]],
        id_rows: Mapping[str, int],
    ) -> None:
        lists = self._lists(self.other_ids)
        target: dict[str, int] = {}
        for row, (id, owner) in enumerate(ids):
            for other in lists.get(owner, ()):
                if other in id_rows or target.setdefault(other, row) != row:
                    self.report.skip("alternative id that another concept has", f"{id}: {other}")
        ordered = sorted(target, key=lambda id: id.encode("utf-8"))
        _put_strings(arrays, "other_ids", ordered)
        arrays["other_concept"] = np.array([target[id] for id in ordered], np.int32)


def build_kb(
    concepts: Iterable[Concept],
    path: Path,
    *,
    langs: Collection[str] = (),
    types: Collection[str] = (),
    meta: Mapping[str, Any] | None = None,
    report: SkipReport | None = None,
) -> KnowledgeBase:
    """Build a knowledge base and write it; see `KbBuilder.build`.

    concepts (Iterable[Concept]): From any readers; records of one id are joined.
    path (Path): Folder for it.
    RETURNS (KnowledgeBase): Memory-mapped.
    """
    builder = KbBuilder(report or SkipReport())
    for concept in concepts:
        builder.add(concept)
    return builder.build(langs=langs, types=types, meta=meta or {}).write(path)


def is_type(name: str, wanted: Collection[str]) -> bool:
    """RETURNS (bool): One of the wanted types is this one, or ends in "*" and this begins so."""
    return any(name.startswith(w[:-1]) if w.endswith("*") else name == w for w in wanted)


def index_names(names: Sequence[str]) -> dict[str, np.ndarray]:
    """RETURNS (dict[str, np.ndarray]): The arrays by which names are found."""
    key_numbers: dict[str, int] = {}
    key_of_name = np.array(
        [key_numbers.setdefault(name_key(name), len(key_numbers)) for name in names], np.int32
    )
    keys = list(key_numbers)
    arrays = {f"{NGRAM}{name}": values for name, values in build_arrays(keys).items()}
    arrays["exact_hash"], arrays["exact_row"] = _sorted_hashes([normalize(name) for name in names])
    arrays["key_hash"], arrays["key_row"] = _sorted_hashes(keys)
    arrays["key_names"] = np.argsort(key_of_name, kind="stable").astype(np.int32)
    arrays["key_names_start"] = _starts(np.bincount(key_of_name, minlength=len(keys)))
    return arrays


def _sorted_hashes(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    hashes = np.array([hash_text(text) for text in texts], np.uint64)
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    return hashes[order], order


def _starts(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _put_strings(arrays: dict[str, np.ndarray], name: str, texts: Sequence[str]) -> None:
    arrays[name], arrays[f"{name}_at"] = pack_strings(texts)


def _put_lists(arrays: dict[str, np.ndarray], name: str, rows: Sequence[Sequence[int]]) -> None:
    arrays[name] = np.array([value for row in rows for value in row], np.int32)
    arrays[f"{name}_start"] = _starts([len(row) for row in rows])
