"""Join knowledge bases, or compare two versions of one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..readers.table import read_table
from .build import KbBuilder
from .concepts import BROADER, Concept, SkipReport
from .knowledge_base import KnowledgeBase
from .storage import check_target


def merge_kbs(
    kbs: Sequence[KnowledgeBase],
    path: Path | str,
    *,
    meta: Mapping[str, Any] | None = None,
    report: SkipReport | None = None,
    codes: Mapping[str, Collection[str]] | None = None,
) -> tuple[KnowledgeBase, int]:
    """Join knowledge bases. Concepts of one id become one, with the preferred names of the first.

    kbs (Sequence[KnowledgeBase]): At least one.
    path (Path | str): Folder for the result.
    meta (Mapping | None): Its name and version; its sources are those of all of them.
    report (SkipReport | None): Counts second preferred names, and what is left out.
    codes (Mapping | None): Code -> codes that the concepts with it get, too, see `read_code_map`.
    RETURNS (tuple[KnowledgeBase, int]): Memory-mapped, and how many ids were in several.
    RAISES (BioclinError): The folder holds something else.
    """
    check_target(Path(path))
    builder = KbBuilder(report or SkipReport())
    for kb in kbs:
        for concept in kb:
            for record in _split_languages(add_codes(concept, codes or {})):
                builder.add(record)
    sources = [source for kb in kbs for source in kb.meta["sources"]]
    merged = builder.build(meta={**(meta or {}), "sources": sources}).write(path)
    joined = sum(sum(id in kb.ids for kb in kbs) > 1 for id in merged.ids)
    return merged, joined


def add_codes(concept: Concept, codes: Mapping[str, Collection[str]]) -> Concept:
    """Add to the references of a concept the codes to which its ids and references are mapped.

    What a broader reference is mapped to is broader, too.
    """
    found: dict[str, None] = {}
    for own in (concept.id, *concept.alternative_ids, *concept.xrefs):
        mark = BROADER if own.startswith(BROADER) else ""
        mapped = codes.get(own.removeprefix(BROADER), ())
        found |= dict.fromkeys(f"{mark}{code}" for code in mapped)
    more = (code for code in found if code not in concept.xrefs)
    return concept._replace(xrefs=(*concept.xrefs, *more))


def read_code_map(path: Path, report: SkipReport) -> dict[str, list[str]]:
    """Read a table of codes and the codes that a hospital has for them.

    path (Path): A table with the columns "code" and "maps_to", each with codes such as
        "ICD10CM:I10", in "maps_to" several with "|" between them.
    report (SkipReport): Counts rows that are left out.
    RETURNS (dict[str, list[str]]): Code -> codes.
    RAISES (BioclinError): It cannot be read, or lacks a column.
    """
    found: dict[str, list[str]] = {}
    for record in read_table(path, report, columns={"id": "code", "xref": "maps_to"}):
        found.setdefault(record.id, []).extend(record.xrefs)
    return found


class KbChanges(NamedTuple):
    """What a newer knowledge base has changed, by the ids of its concepts.

    added (list[str]): New ids.
    removed (list[str]): Missing ids that are not alternative ids either.
    merged (dict[str, str]): Missing id -> concept that has it as alternative id.
    renamed (dict[str, tuple[str, str]]): Old and new preferred name.
    names_added, names_removed (dict[str, list[str]]): Names of the concepts that are in both.
    """

    added: list[str]
    removed: list[str]
    merged: dict[str, str]
    renamed: dict[str, tuple[str, str]]
    names_added: dict[str, list[str]]
    names_removed: dict[str, list[str]]

    def counts(self) -> dict[str, int]:
        """Count the concepts, or names, of each kind of change."""
        counts = {key: len(value) for key, value in self._asdict().items()}
        for key in ("names_added", "names_removed"):
            counts[key] = sum(map(len, getattr(self, key).values()))
        return counts


def compare_kbs(old: KnowledgeBase, new: KnowledgeBase) -> KbChanges:
    """List what a newer knowledge base has changed."""
    changes = KbChanges([], [], {}, {}, {}, {})
    rows = {id: row for row, id in enumerate(new.ids)}
    for i, id in enumerate(old.ids):
        if (row := rows.pop(id, None)) is None:
            if (other := new.number(id)) is None:
                changes.removed.append(id)
            else:
                changes.merged[id] = new.ids[other]
            continue
        before, after = _names(old, i), _names(new, row)
        if before[0] != after[0]:
            changes.renamed[id] = before[0], after[0]
        if more := sorted(set(after) - set(before)):
            changes.names_added[id] = more
        if less := sorted(set(before) - set(after)):
            changes.names_removed[id] = less
    changes.added.extend(rows)
    return changes


def _split_languages(concept: Concept) -> Iterator[Concept]:
    """Yield the names of a concept in their order, the first one in each language as preferred."""
    record, langs = concept._replace(aliases=()), {concept.lang}
    for alias in concept.aliases:
        if alias.lang in langs:
            record = record._replace(aliases=(*record.aliases, alias))
            continue
        yield record
        record = Concept(concept.id, *alias)
        langs.add(alias.lang)
    yield record


def _names(kb: KnowledgeBase, i: int) -> list[str]:
    return kb.names[kb.first_name[i] : kb.first_name[i + 1]]
