"""What the cleaning of raw text did: counts, never text."""

from collections.abc import Iterable
from typing import Any

from .documents import Counts


class Report:
    """What became of documents, sentences and words, per file: read = kept + all that is dropped.

    read (dict[str, Counts]): Per file.
    kept (dict[str, dict[str, Counts]]): Per file, then per output ("es.train").
    dropped (dict[str, dict[str, Counts]]): Per file, then per reason.
    """

    def __init__(self) -> None:
        self.read: dict[str, Counts] = {}
        self.kept: dict[str, dict[str, Counts]] = {}
        self.dropped: dict[str, dict[str, Counts]] = {}

    def add_read(self, source: str, n: Counts) -> None:
        self.read[source] = self.read.get(source, Counts()).plus(n)

    def add_kept(self, source: str, output: str, n: Counts) -> None:
        row = self.kept.setdefault(source, {})
        row[output] = row.get(output, Counts()).plus(n)

    def add_dropped(self, source: str, reason: str, n: Counts) -> None:
        row = self.dropped.setdefault(source, {})
        row[reason] = row.get(reason, Counts()).plus(n)

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): Totals, then the counts of each file, ready for JSON."""
        files = {
            source: _row(read, self.kept.get(source, {}), self.dropped.get(source, {}))
            for source, read in self.read.items()
        }
        read = _sum({"": read} for read in self.read.values()).get("", Counts())
        return {
            **_row(read, _sum(self.kept.values()), _sum(self.dropped.values())),
            "files": files,
        }


def _row(read: Counts, kept: dict[str, Counts], dropped: dict[str, Counts]) -> dict[str, Any]:
    return {
        "read": read._asdict(),
        "kept": {key: kept[key]._asdict() for key in sorted(kept)},
        "dropped": {key: dropped[key]._asdict() for key in sorted(dropped)},
    }


def _sum(rows: Iterable[dict[str, Counts]]) -> dict[str, Counts]:
    total: dict[str, Counts] = {}
    for row in rows:
        for key, n in row.items():
            total[key] = total.get(key, Counts()).plus(n)
    return total
