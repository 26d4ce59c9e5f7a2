"""Build a knowledge base from concepts of any source: join them by id, filter, deduplicate."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..names.index import index_names
from .assemble import Assembly
from .concepts import Concept, SkipReport
from .knowledge_base import KnowledgeBase
from .records import Records
from .storage import check_target, seal


class KbBuilder:
    """Collect records, then build a knowledge base of them.

    report (SkipReport): Counts what is left out.
    langs (Collection[str]): Keep names in these languages, and names without a language; empty
        keeps all.
    """

    def __init__(self, report: SkipReport, *, langs: Collection[str] = ()) -> None:
        self.report, self._records = report, Records(report, langs)

    def add(self, record: Concept) -> None:
        """Add a concept, or more about one that was added before.

        RAISES (BioclinError): There are too many languages for a knowledge base.
        """
        self._records.add(record)

    def build(
        self,
        *,
        types: Collection[str] = (),
        ids: Collection[str] = (),
        below: Collection[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> KnowledgeBase:
        """Build the knowledge base; nothing can be added afterwards.

        The preferred name of a concept is the first preferred name of its records in a language
        that is kept, or else the first alias.

        types (Collection[str]): Keep concepts of these types, "C04*" for all that begin with C04;
            empty keeps all.
        ids (Collection[str]): Keep these concepts; retired ids stand for theirs.
        below (Collection[str]): Keep these concepts and all that are below them; with `ids`, both.
            If both are empty, all are kept.
        meta (Mapping | None): Name, version and sources, to be stored in it; "compact": True for a
            smaller folder that takes longer to open.
        RETURNS (KnowledgeBase): In memory.
        RAISES (BioclinError): No concept is left, or an id of `below` is unknown.
        """
        records, self._records = self._records, Records(self.report, ())
        assembly = Assembly(records, types, self.report, ids=ids, below=below)
        arrays, names, type_names = assembly.arrays, assembly.names, assembly.type_names
        lang_codes = list(records.lang_number)
        # The index needs more memory than all the records, so these go first.
        del assembly, records
        arrays |= index_names(names)
        about = {
            "name": "",
            "version": "",
            "sources": [],
            **(meta or {}),
            "langs": sorted(lang_codes[i] for i in np.unique(arrays["name_lang"])),
            "lang_codes": lang_codes,
            "types": type_names,
            "n_concepts": len(arrays["ids_at"]) - 1,
            "n_names": len(names),
            # Without the places, because they contain paths of this machine.
            "skipped": dict(self.report.counts.most_common()),
        }
        return KnowledgeBase(arrays, seal(arrays, about))


def build_kb(
    concepts: Iterable[Concept],
    path: Path | str,
    *,
    langs: Collection[str] = (),
    types: Collection[str] = (),
    meta: Mapping[str, Any] | None = None,
    report: SkipReport | None = None,
) -> KnowledgeBase:
    """Build a knowledge base and write it. See `KbBuilder`.

    concepts (Iterable[Concept]): From any readers; records of one id are joined.
    path (Path | str): Folder for the knowledge base.
    RETURNS (KnowledgeBase): Memory-mapped.
    RAISES (BioclinError): No concept is left, or the folder holds something else.
    """
    check_target(Path(path))
    builder = KbBuilder(report or SkipReport(), langs=langs)
    for concept in concepts:
        builder.add(concept)
    return builder.build(types=types, meta=meta).write(path)
