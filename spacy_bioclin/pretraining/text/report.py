"""Count what the cleaning of raw text keeps and drops. The counts hold no text."""

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from .documents import Counts


class Report:
    """Counts of documents, sentences and words of one file, or of all: read = kept + dropped.

    read (Counts): What the file has.
    kept (dict[str, Counts]): By output ("es.train").
    dropped (dict[str, Counts]): By reason.
    """

    def __init__(self) -> None:
        self.read = Counts()
        self.kept: dict[str, Counts] = defaultdict(Counts)
        self.dropped: dict[str, Counts] = defaultdict(Counts)

    def add(self, other: "Report") -> None:
        """Add the counts of another report to this one."""
        self.read += other.read
        for total, part in ((self.kept, other.kept), (self.dropped, other.dropped)):
            for name, counts in part.items():
                total[name] += counts

    def to_dict(self) -> dict[str, Any]:
        """Convert to a dict that is ready for JSON."""
        return {
            "read": asdict(self.read),
            "kept": {name: asdict(counts) for name, counts in sorted(self.kept.items())},
            "dropped": {name: asdict(counts) for name, counts in sorted(self.dropped.items())},
        }
