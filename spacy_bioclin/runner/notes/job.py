"""Annotate the parts of an input: what each process of `bioclin run` does."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...encoders.cleaner import clean_doc
from ...errors import BioclinError
from ..columns import Columns, Row, find_field
from ..memory import quiet_zone
from ..parts import Part, add_counts
from ..records import Record
from ..sources.ids import find_id
from ..work import Counts, Done
from .annotate import annotate, cut_batches, describe_end
from .coverage import take_coverage, watch_coverage
from .describe import (
    Note,
    count_note,
    count_words,
    describe_categories,
    describe_entities,
    describe_relations,
    describe_results,
)
from .language import guess_language
from .targets import Target

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

PART_RECORDS = 500
BATCH_WORDS = 10_000  # whose vectors are in memory at the same time


class AnnotateJob(NamedTuple):
    """Annotate parts of an input; every process gets a copy through a pipe.

    load (Callable): Loads the pipeline.
    columns (Columns): The columns with the note and its id, and those that are kept.
    id_column (str | None): Column with the id; None if a note's number is its id.
    target (Target): Form of the output.
    """

    load: Callable[[], "Language"]
    columns: Columns
    id_column: str | None
    target: Target

    def start(self) -> Callable[[Part], Done]:
        """Load the pipeline in a process, and return the function that makes a part."""
        nlp = self.load()
        watch_coverage(nlp)

        def make_part(part: Part) -> Done:
            texts = (record.row[self.columns.text] for record in part.records)
            with quiet_zone(nlp, texts):
                return self.make_part(nlp, part)

        return make_part

    def make_part(self, nlp: "Language", part: Part) -> Done:
        """Annotate the notes of a part; those on which the pipeline fails are refused."""
        total: Counts = {"written": 0, "empty": 0}
        taken: list[Any] = []
        refused: list[dict[str, str]] = []
        bad = [(each.number, {"place": each.place, "reason": str(each.error)}) for each in part[2]]

        def refuse(record: Record, error: BioclinError) -> None:
            row = {"place": record.place, "id": self.find_id(record), "reason": str(error)}
            refused.append(row)
            bad.append((record.number, row))

        def make_doc(record: Record) -> "Doc":
            return nlp.make_doc(record.row[self.columns.text])

        def count(record: Record) -> int:
            return count_words(record.row[self.columns.text])

        for batch in cut_batches(part.records, count, BATCH_WORDS):
            made = annotate(nlp, batch, make_doc, self.read, batch_size=len(batch))
            for record, found in zip(batch, made, strict=True):
                if isinstance(found, BioclinError):
                    refuse(record, found)
                    continue
                counts, one = found
                add_counts(total, counts)
                taken.append(one)
        for record in part.deadly:
            refuse(record, describe_end(record))
        bad.sort(key=lambda each: each[0])
        quarantined = [{"record": number, **row} for number, row in bad]
        return Done(self.target.encode(taken), total, refused, quarantined)

    def read(self, doc: "Doc", record: Record) -> tuple[Counts, Any]:
        """Take out of a Doc what is counted and written."""
        coverage = take_coverage(doc)
        clean_doc(doc)
        text = record.row[self.columns.text]
        note = Note(
            record=record.number,
            id=self.find_id(record),
            kept={name: find_value(record.row, name) for name in self.target.kept},
            text=text,
            entities=describe_entities(doc, text),
            relations=describe_relations(doc),
            categories=describe_categories(doc),
            coverage=coverage,
            language=guess_language(text),
            results=describe_results(doc),
        )
        taken = self.target.take(note, doc)
        return {**count_note(note), "converted": self.target.count(taken)}, taken

    def find_id(self, record: Record) -> str:
        """Find the id of a note: the value of a column, or else its number."""
        return find_id(record, self.id_column, self.columns) or str(record.number)


def find_value(row: Row, name: str) -> Any:
    """Find the value of a column, or of a field inside one; None if it is not there."""
    if name in row:
        return row[name]
    found = list(find_field(row, name))
    return found[0] if len(found) == 1 else found or None


def describe_counts(counts: Counts) -> dict[str, Any]:
    """Make the part of the record of a run that is about its notes."""
    coverage = counts.get("coverage")
    return {
        "records": {
            "read": counts["read"],
            "written": counts["written"],
            "quarantined": counts["skipped"],
            "empty": counts.get("empty", 0),
        },
        "characters": counts.get("characters", 0),
        "words": counts.get("words", 0),
        "entities": counts.get("entities", {}),
        "relations": counts.get("relations", {}),
        "languages": counts.get("languages", {}),
        **({"converted": counts["converted"]} if "converted" in counts else {}),
        "coverage": coverage
        and {
            "notes": coverage["notes"],
            "pieces": coverage["pieces"],
            "windows": coverage["windows"],
            "characters_outside": coverage["outside"],
            "characters_without_pieces": coverage["without_pieces"],
            "characters_truncated": coverage["truncated"],
            "notes_with_characters_outside": coverage["partial"],
        },
    }
