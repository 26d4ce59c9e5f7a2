"""The forms of the output: JSON lines, Docs of spaCy, brat. Parquet is in `tables.py`."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from math import isfinite
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, DocBin

from ...context.rules.rule_data import KINDS
from ...corpora.brat import format_ann
from ...corpora.docbin import SHARD_TOKENS, SUFFIX, find_coders_once
from ...corpora.files import to_file_path
from ...corpora.relations.predicted import make_annotations
from ...errors import BioclinError
from ...outputs import write_new
from ...types import Annotation, OtherAnnotation, SpanAnnotation
from ..carried import Number, encode_lines
from ..columns import Row
from ..records import write_parts
from .describe import Note

NAMES = (
    "record",
    "id",
    "text",
    "entities",
    "relations",
    "categories",
    "coverage",
    "language",
    "results",
)


class Target:
    """Base class of the forms of the output.

    libraries (Sequence[str]): Optional packages that write or check it.
    names (Sequence[str]): Names of its columns, which no column that is kept can have.
    distinct_ids (bool): No two notes may have the same id.
    """

    libraries: Sequence[str] = ()
    names: Sequence[str] = NAMES
    distinct_ids = False

    def __init__(self, kept: Sequence[str] = (), *, entity_text: bool, note_text: bool) -> None:
        """Choose what is written.

        kept (Sequence[str]): Columns of the input.
        entity_text (bool): Write the text of each entity.
        note_text (bool): Write the text of each note.
        RAISES (BioclinError): A column has the name of one of the output.
        """
        self.kept = tuple(kept)
        self.entity_text, self.note_text = entity_text, note_text
        for name in self.kept:
            if name in self.names:
                remedy = "give it as --id-column" if name == "id" else "rename it in the input"
                raise BioclinError(f"--keep {name}: the output has a column of this name; {remedy}")

    def options(self) -> dict[str, Any]:
        """Describe what the output depends on, beside its input and the pipeline."""
        return {"entity_text": self.entity_text, "note_text": self.note_text}

    def take(self, note: Note, doc: Doc) -> Any:
        """Take of a note what is written, while the Doc is there.

        RAISES (BioclinError): This form cannot hold it.
        """
        raise NotImplementedError

    def count(self, taken: Any) -> dict[str, int]:
        """Count what was converted or left out, beside the counts that all forms have."""
        return {}

    def encode(self, taken: Sequence[Any]) -> bytes:
        """Write what was taken of the notes of a part."""
        raise NotImplementedError

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Make the output from its parts, in order."""
        raise NotImplementedError

    def describe(self) -> list[str]:
        """List the columns of the output, a line for each table."""
        raise NotImplementedError


class JsonLinesTarget(Target):
    """A .jsonl file: one object for each note."""

    def take(self, note: Note, doc: Doc) -> Row:
        """Make the object of a note."""
        row: Row = {"record": note.record, "id": note.id}
        row |= {name: to_json(note.kept[name]) for name in self.kept}
        if self.note_text:
            row["text"] = note.text
        row["entities"] = [self._shorten(each) for each in note.entities]
        if note.relations:
            row["relations"] = [
                {**each, **{role: self._shorten(each[role]) for role in ("head", "child")}}
                for each in note.relations
            ]
        if note.results:
            row["results"] = [self._shorten_result(each) for each in note.results]
        if note.categories:
            row["categories"] = note.categories
        if note.coverage:
            row["coverage"] = note.coverage._asdict()
        if note.language:
            row["language"] = note.language
        return row

    def _shorten(self, row: Row) -> Row:
        """Leave out what is not known, and the text unless it is wanted."""
        if not self.entity_text and row.get("medication"):
            row = {**row, "medication": without_text(row["medication"])}
        always = ("probability", *(("text",) if self.entity_text else ()))
        return {
            name: value
            for name, value in row.items()
            if name in always or (value is not None and name != "text")
        }

    def _shorten_result(self, row: Row) -> Row:
        """Leave out what a result does not have, and its name unless texts are wanted."""
        return {
            name: value
            for name, value in row.items()
            if value is not None and (name != "text" or self.entity_text)
        }

    def encode(self, taken: Sequence[Row]) -> bytes:
        """Write one line for each note."""
        return encode_lines(taken)

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the lines to a file."""
        write_parts(parts, target)

    def describe(self) -> list[str]:
        """List the fields of an object."""
        text = ["text"] * self.note_text
        names = [
            "record",
            "id",
            *self.kept,
            *text,
            "entities",
            "relations",
            "results",
            "categories",
        ]
        inner = ["start", "end", "label", "layer", *["text"] * self.entity_text, "kb_id"]
        inner += [
            "codes",
            "probability",
            "section",
            *KINDS,
            "medication",
            "value",
            "high",
            "comparator",
            "unit",
        ]
        result = ["start", "end", "name_start", "name_end", *["text"] * self.entity_text, "kind"]
        result += ["value", "high", "comparator", "unit", "out_of", "low_limit", "high_limit"]
        return [
            f"object: {', '.join([*names, 'coverage', 'language'])}",
            f"entities: {', '.join(inner)}",
            f"results: {', '.join([*result, 'flag', 'date'])}",
        ]


def without_text(medication: Row) -> Row:
    """Leave out of what is said of a drug what is text of the note."""
    return {name: value for name, value in medication.items() if name != "reason"}


def to_json(value: Any) -> Any:
    """Convert a value of a column to one that JSON has."""
    if value is None or isinstance(value, str | bool | int | Number):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)  # a decimal number, nanoseconds


class DocsTarget(Target):
    """A folder of .spacy files, each a DocBin, with all annotations of the Docs.

    `doc.user_data` has the record, the id, the columns that are kept, the coverage and the language
    under "note".
    """

    def take(self, note: Note, doc: Doc) -> DocBin:
        """Serialize a Doc."""
        kept = json.loads(encode_lines([{name: to_json(note.kept[name]) for name in self.kept}]))
        about: Row = {"record": note.record, "id": note.id, "columns": kept}
        if note.coverage:
            about["coverage"] = note.coverage._asdict()
        if note.language:
            about["language"] = note.language
        doc.user_data["note"] = about
        with find_coders_once():
            return DocBin(store_user_data=True, docs=[doc])

    def encode(self, taken: Sequence[DocBin]) -> bytes:
        """Join the Docs of a part."""
        shard = DocBin(store_user_data=True)
        for one in taken:
            shard.merge(one)
        return shard.to_bytes()

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write shards of about `SHARD_TOKENS` tokens."""
        target.mkdir(mode=0o700)
        shard, n_shards, n_tokens = DocBin(store_user_data=True), 0, 0
        for part in parts:
            if n_tokens >= SHARD_TOKENS:
                write_new(target / f"{n_shards:05}{SUFFIX}", shard.to_bytes())
                shard, n_shards, n_tokens = DocBin(store_user_data=True), n_shards + 1, 0
            more = DocBin(store_user_data=True).from_bytes(part)
            n_tokens += sum(len(tokens) for tokens in more.tokens)
            shard.merge(more)
        write_new(target / f"{n_shards:05}{SUFFIX}", shard.to_bytes())

    def describe(self) -> list[str]:
        """Say what a file holds."""
        return ["Docs with all annotations; doc.user_data['note']: record, id, columns"]


class BratTarget(Target):
    """A folder with NAME.txt and NAME.ann of each note, named by its id."""

    def take(self, note: Note, doc: Doc) -> Row:
        """Make the content of the two files: concept ids are notes, and what a context says of an
        entity are attributes."""
        spans: dict[tuple[int, int, str], str] = {}
        found: dict[tuple[int, int, str], list[str]] = {}
        for each in note.entities:
            span = each["start"], each["end"], each["label"]
            spans[span] = each["kb_id"] or spans.get(span, "")
            found[span] = [kind for kind in KINDS if each[kind]]
        annotations: list[Annotation] = list(make_annotations(doc, spans))
        n = 0
        for one in list(annotations):
            if isinstance(one, SpanAnnotation):
                for kind in found.get((*one.fragments[0], one.label), ()):
                    n += 1
                    line = f"A{n}\t{kind.capitalize()} {one.id}"
                    annotations.append(OtherAnnotation(f"A{n}", line))
        return {"id": note.id, "text": note.text, "ann": format_ann(annotations)}

    def encode(self, taken: Sequence[Row]) -> bytes:
        """Write one line for each note."""
        return encode_lines(taken)

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write two files for each note. An id that is there already gets a number."""
        target.mkdir(mode=0o700)
        for name, row in _name_files(parts):
            write_new(target / f"{name}.txt", row["text"].encode("utf-8"))
            write_new(target / f"{name}.ann", row["ann"].encode("utf-8"))
        if hasattr(os, "sync"):  # not on Windows
            os.sync()

    def describe(self) -> list[str]:
        """Say what the files hold."""
        return ["ID.txt: the note", "ID.ann: entities, concept ids, relations, context attributes"]


def _name_files(parts: Iterable[bytes]) -> Iterator[tuple[str, Row]]:
    """Name the files of each note. Names that differ in case alone are taken for equal."""
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for part in parts:
        for line in part.split(b"\n")[:-1]:
            row = json.loads(line)
            id = row["id"]
            name = to_file_path(id)
            while name.casefold() in taken:
                numbers[id] += 1
                name = to_file_path(f"{id}-{numbers[id] + 1}")
            taken.add(name.casefold())
            yield name, row
