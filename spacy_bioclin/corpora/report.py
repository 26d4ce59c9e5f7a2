"""Count what became of the annotations of a corpus, so that nothing is lost unnoticed."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from ..errors import BioclinError
from ..outputs import Output

# What can happen to a span, and, last, to a document. A span can be counted under several.
KINDS = {
    "snapped": "boundary inside a token, moved out to its edge",
    "nested": "inside a span of its layer, or labelled twice; in doc.spans",
    "crossing": "partly overlaps a span of its layer; in doc.spans",
    "duplicate": "same offsets and label as another; in doc.spans",
    "not_in_ents": "not in doc.ents, where another has its tokens; in doc.spans",
    "discontinuous": "several fragments; the span from first to last counts",
    "wrong_offset": "text at the offsets is not that in the file; offsets kept",
    "rounded_id": "its terminology id was rounded by a spreadsheet (1.6E+16): no id",
    "left_out": "its label does not belong to the task; not in the Doc",
    "empty": "touches no token: lost",
    "unread": "attributes, and what else is neither span nor relation; nothing learns from them",
    "skipped": "documents that could not be read",
}
# What can happen to a relation.
RELATION_KINDS = {
    "relation_duplicate": "same label and arguments as another; in the Doc once",
    "relation_other": "its label is not in --relations; not in the Doc",
    "relation_left_out": "the label of an argument does not belong to the task; not in the Doc",
    "relation_no_span": "an argument is no span or concept of the Doc: lost",
    "relation_nary": "not two arguments: lost",
    "relation_no_label": "has no label: lost",
}
LOST_RELATIONS = ("relation_no_span", "relation_nary", "relation_no_label")
MAX_BYTES = 2**26  # of a loss report, which names files
MAX_LOST = 0.001  # share of spans, and of relations; DESIGN.md "Nothing lost"
MAX_NAMED = 30  # labels in an error
MAX_WRONG = 0.01  # share of spans; with more, the text is not the one that was annotated


def make_report_output(
    report: Path | None, out: Path, *, inputs: Iterable[Path] = (), overwrite: bool
) -> Output:
    """Make the output for a loss report, see `Output`.

    report (Path | None): Its file; None for NAME.report.json beside `out`, which may replace an
        older loss report, for a conversion that fails leaves one.
    out (Path): The Docs.
    RAISES (BioclinError): See `check_output`.
    """
    path = report or out.with_suffix(".report.json")
    renewed = report is None and _is_report(path)
    return Output(path, inputs=inputs, others=[out], overwrite=overwrite or renewed)


def _is_report(path: Path) -> bool:
    try:
        content = json.loads(path.read_bytes()) if path.stat().st_size < MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.keys() >= {"docs", "read", "kept", "lost", "files"}


class LossReport:
    """Counts of what happened to spans and relations, with the names of the files, never with their
    text.

    docs, read, kept (int): Documents converted; spans in their files; spans in the Docs.
    relations_read, relations_kept (int): Relations in the files and in the Docs.
    relations_annotated (bool): Whether the Docs were to get relations; if not, none is counted.
    files (dict[str, Counter[str]]): For each of `KINDS` and `RELATION_KINDS`, how often in which
        file.
    annotated (set[str]): Labels that the corpus was annotated for, if it was not for all.
    labels (set[str]): Labels of the spans in the Docs.
    relations_wanted (set[str]): Labels of relations that were asked for, if not all.
    relation_labels (set[str]): Labels of the relations in the files.
    """

    def __init__(self) -> None:
        self.docs = 0
        self.read = 0
        self.kept = 0
        self.relations_read = 0
        self.relations_kept = 0
        self.relations_annotated = False
        self.files: dict[str, Counter[str]] = {
            kind: Counter() for kind in (*KINDS, *RELATION_KINDS)
        }
        self.annotated: set[str] = set()
        self.labels: set[str] = set()
        self.relations_wanted: set[str] = set()
        self.relation_labels: set[str] = set()

    @property
    def unused(self) -> list[str]:
        """List the labels that the corpus was annotated for but has no span of, sorted."""
        return sorted(self.annotated - self.labels)

    @property
    def lost(self) -> int:
        """Count the spans that are in no Doc, although their label belongs to the task."""
        return self.read - self.kept - self.count("left_out")

    @property
    def relations_lost(self) -> int:
        """Count the relations that are in no Doc, although they belong to the task."""
        return sum(map(self.count, LOST_RELATIONS))

    @property
    def unused_relations(self) -> list[str]:
        """List the labels of relations that were asked for but do not occur, sorted."""
        return sorted(self.relations_wanted - self.relation_labels)

    def add(self, kind: str, file: str, n: int = 1) -> None:
        """Count `n` spans (relations, or documents for "skipped") of a file under one kind."""
        if n:
            self.files[kind][file] += n

    def count(self, kind: str) -> int:
        """Count what is under one of `KINDS` or `RELATION_KINDS`, in all files."""
        return sum(self.files[kind].values())

    def to_dict(self) -> dict[str, Any]:
        """List the counts, and the files of each, ready for JSON."""
        counts = {"docs": self.docs, "read": self.read, "kept": self.kept, "lost": self.lost}
        counts.update({kind: self.count(kind) for kind in KINDS})
        unused = {"unused_labels": self.unused}
        if self.relations_annotated:
            counts["relations_read"] = self.relations_read
            counts["relations_kept"] = self.relations_kept
            counts["relations_lost"] = self.relations_lost
            counts.update({kind: self.count(kind) for kind in RELATION_KINDS})
            unused["unused_relations"] = self.unused_relations
        files = {kind: dict(sorted(names.items())) for kind, names in self.files.items() if names}
        return {**counts, **unused, "files": files}

    def write(self, path: Path | Output) -> None:
        """Write the report as JSON, at a path in place of an older one."""
        output = Output(path, overwrite=True) if isinstance(path, Path) else path
        output.write(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n")

    def to_table(self) -> Table:
        """Make a table with a row for each count, for the terminal."""
        table = Table("", "count", "files", title="Loss report", box=SIMPLE_HEAD)
        table.add_column("for example", no_wrap=True, max_width=26)
        table.add_column("meaning", ratio=1)
        table.add_row("docs", f"{self.docs:,}", "", "", "documents converted")
        table.add_row("read", f"{self.read:,}", "", "", "spans in the files")
        table.add_row("kept", f"{self.kept:,}", "", "", "spans in the Docs")
        table.add_row("lost", f"{self.lost:,}", "", "", "spans of the task in no Doc")
        self._add_kinds(table, KINDS)
        if self.unused:
            unused = escape(", ".join(self.unused))
            meaning = f"warning: labels annotated, but without a span: {unused}"
            table.add_row("unused_labels", f"{len(self.unused):,}", "", "", meaning)
        if self.relations_annotated:
            table.add_row("relations_read", f"{self.relations_read:,}", "", "", "in the files")
            table.add_row("relations_kept", f"{self.relations_kept:,}", "", "", "in the Docs")
            meaning = "relations of the task in no Doc"
            table.add_row("relations_lost", f"{self.relations_lost:,}", "", "", meaning)
            self._add_kinds(table, RELATION_KINDS)
        if self.unused_relations:
            unused = escape(", ".join(self.unused_relations))
            meaning = f"warning: labels of --relations that do not occur: {unused}"
            table.add_row("unused_relations", f"{len(self.unused_relations):,}", "", "", meaning)
        return table

    def _add_kinds(self, table: Table, kinds: dict[str, str]) -> None:
        for kind, meaning in kinds.items():
            if names := self.files[kind]:
                count, n_files = f"{self.count(kind):,}", f"{len(names):,}"
                table.add_row(kind, count, n_files, min(names), meaning)

    def check(self, *, allow_loss: bool = False) -> None:
        """Refuse a corpus that lost too much.

        allow_loss (bool): Accept lost spans and relations, and wrong offsets.
        RAISES (BioclinError): There is no document, too many spans or relations are lost or
            misplaced, or there are relations, but none of the labels that were asked for.
        """
        if not self.docs:
            raise BioclinError("no document could be read; the messages above say why")
        wanted, labels = sorted(self.relations_wanted), sorted(self.relation_labels)
        if wanted and labels and not self.relations_wanted & self.relation_labels:
            raise BioclinError(
                f"--relations is {', '.join(wanted)}, but the relations of this corpus are "
                f"{', '.join(labels[:MAX_NAMED])}: choose of these"
            )
        if allow_loss:
            return
        if self.lost > MAX_LOST * self.read:
            raise BioclinError(
                f"{self.lost} of {self.read} spans are lost (limit {MAX_LOST:.1%}); the loss "
                "report names the files; repair them, or convert with --allow-loss"
            )
        if self.relations_lost > MAX_LOST * self.relations_read:
            raise BioclinError(
                f"{self.relations_lost} of {self.relations_read} relations are lost (limit "
                f"{MAX_LOST:.1%}); the loss report names the files and why; choose other labels "
                "with --relations, repair the files, or convert with --allow-loss"
            )
        wrong = self.count("wrong_offset")
        if wrong > MAX_WRONG * self.read:
            raise BioclinError(
                f"{wrong} of {self.read} spans do not cover the text that their file states "
                f"(limit {MAX_WRONG:.0%}); check that the texts are the annotated ones, with the "
                "same line ends and byte-order marks, or convert with --allow-loss"
            )
