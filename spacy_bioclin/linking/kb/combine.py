"""Knowledge bases beside each other: joined into one, or what one has and the other has not."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .build import KbBuilder
from .concepts import SkipReport
from .knowledge_base import KnowledgeBase
from .storage import check_target


def merge_kbs(
    kbs: Sequence[KnowledgeBase],
    path: Path | str,
    *,
    meta: Mapping[str, Any] | None = None,
    report: SkipReport | None = None,
) -> tuple[KnowledgeBase, int]:
    """Join knowledge bases: concepts of one id become one, the preferred name is that of the first.

    kbs (Sequence[KnowledgeBase]): At least one.
    path (Path | str): Folder for the result.
    meta (Mapping | None): Its name and version; its sources are those of all.
    report (SkipReport | None): Counts second preferred names, and what is left out.
    RETURNS (tuple[KnowledgeBase, int]): Memory-mapped, and how many ids were in several.
    RAISES (BioclinError): The folder holds something else.
    """
    check_target(Path(path))
    builder = KbBuilder(report or SkipReport())
    for kb in kbs:
        for concept in kb:
            builder.add(concept)
    sources = [source for kb in kbs for source in kb.meta["sources"]]
    merged = builder.build(meta={**(meta or {}), "sources": sources}).write(path)
    joined = sum(sum(id in kb.ids for kb in kbs) > 1 for id in merged.ids)
    return merged, joined


class KbChanges(NamedTuple):
    """What a newer knowledge base has changed, by the ids of its concepts.

    added (list[str]): New.
    removed (list[str]): Gone, and not known as alternative ids either.
    merged (dict[str, str]): Gone, but an alternative id of another concept: that one's id.
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
        """RETURNS (dict[str, int]): How many concepts, or names, of each."""
        counts = {key: len(value) for key, value in self._asdict().items()}
        for key in ("names_added", "names_removed"):
            counts[key] = sum(map(len, getattr(self, key).values()))
        return counts


def compare_kbs(old: KnowledgeBase, new: KnowledgeBase) -> KbChanges:
    """RETURNS (KbChanges): What is different in the newer one."""
    changes = KbChanges([], [], {}, {}, {}, {})
    for id, i, j in _pairs(old, new):
        if i is None:
            changes.added.append(id)
        elif j is None:
            if (other := new.number(id)) is None:
                changes.removed.append(id)
            else:
                changes.merged[id] = new.ids[other]
        else:
            before, after = _names(old, i), _names(new, j)
            if before[0] != after[0]:
                changes.renamed[id] = before[0], after[0]
            if more := sorted(set(after) - set(before)):
                changes.names_added[id] = more
            if less := sorted(set(before) - set(after)):
                changes.names_removed[id] = less
    return changes


def _pairs(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[tuple[str, int | None, int | None]]:
    """YIELDS (tuple[str, int | None, int | None]): Each id, and its row in both; ids are sorted."""
    i = j = 0
    while i < len(old) or j < len(new):
        before = old.ids[i] if i < len(old) else None
        after = new.ids[j] if j < len(new) else None
        if before is not None and (after is None or before <= after):
            both = before == after
            yield before, i, j if both else None
            i, j = i + 1, j + both
        elif after is not None:
            yield after, None, j
            j += 1


def _names(kb: KnowledgeBase, i: int) -> list[str]:
    return [kb.names[j] for j in range(kb.first_name[i], kb.first_name[i + 1])]
