"""Outputs of `bioclin run` in the forms of OMOP and FHIR."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import Field
from spacy.tokens import Doc

from ...errors import BioclinError
from ...files import hash_file
from ...settings import Settings, read_settings, read_yaml
from ..carried import encode_lines
from ..columns import FILE
from ..notes.describe import Note
from ..notes.targets import Target
from ..parquet import GroupWriter, encode_table, import_pyarrow
from ..records import write_parts
from ..separated import encode_line
from ..stamps import as_integer, as_text
from .fhir import FhirSettings, to_bundle
from .fhir_check import check_bundle
from .mapping import Namespaces, read_concept_map
from .omop import NoteNlpRow, OmopSettings, check_id, to_note_nlp

S = TypeVar("S", bound=Settings)
PATIENT = "Patient/"
RESOURCE_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}")  # of FHIR


class TableSettings(OmopSettings):
    """Settings of the table NOTE_NLP, beside those of `OmopSettings`.

    first_id (int): note_nlp_id of the first row. The others follow in order.
    """

    first_id: int = Field(default=1, ge=1)


class Taken(NamedTuple):
    """What was made of a note: rows or a Bundle, and what was counted."""

    made: Any
    counts: Counter[str]


def load_more(model: type[S], path: Path | None, **values: Any) -> S:
    """Read the YAML of --settings.

    path (Path | None): The file; None for the defaults.
    values (Any): Settings that the file may replace.
    RAISES (BioclinError): It cannot be read, or has a mistake in it.
    """
    more = read_yaml(path) if path is not None else None
    if more is not None and not isinstance(more, Mapping):
        return read_settings(model, more, where=str(path))  # which says what is wrong
    return read_settings(model, {**values, **(more or {})}, where=str(path or "settings"))


class OmopTarget(Target):
    """The table NOTE_NLP of OMOP's CDM 5.4: a .csv or .parquet file.

    The ids of its rows are given when the parts are joined, so that they do not depend on how the
    input was cut. They follow each other in the order of the notes.
    """

    def __init__(
        self,
        id_column: str | None,
        settings: TableSettings,
        *,
        concepts: Path | None = None,
        parquet: bool = False,
    ) -> None:
        """Choose what is written.

        id_column (str | None): The column with NOTE.note_id.
        concepts (Path | None): Table of concept ids, see `read_concept_map`.
        parquet (bool): Write Parquet, not CSV.
        RAISES (BioclinError): There is no such column, or the table cannot be read.
        """
        if id_column is None:
            raise BioclinError(
                "--to omop: a row of NOTE_NLP has the note_id of its note; say which column of IN "
                "holds it with --id-column"
            )
        super().__init__((), entity_text=True, note_text=False)
        self.kept, self.id_column = (id_column,), id_column
        self.settings, self.parquet = settings, parquet
        if parquet:
            import_pyarrow()  # or an error, before anything is read
            self.libraries = ("pyarrow",)
        self.concepts = self.concepts_hash = None
        namespaces = Namespaces(settings)  # or an error
        if concepts is not None:
            self.concepts = read_concept_map(concepts, namespaces)
            self.concepts_hash = hash_file(concepts)

    def options(self) -> dict[str, Any]:
        """Describe the settings. The time of a run is only one if the user has given it."""
        given = self.settings.model_fields_set
        left_out = set() if "nlp_datetime" in given else {"nlp_datetime"}
        return {
            "table": "parquet" if self.parquet else "csv",
            "concepts": self.concepts_hash,
            **self.settings.model_dump(mode="json", exclude=left_out),
        }

    def take(self, note: Note, doc: Doc) -> Taken:
        """Make the rows of a note; their ids are given later.

        RAISES (BioclinError): The id of the note is not one of OMOP.
        """
        counts: Counter[str] = Counter()
        rows = to_note_nlp(
            doc,
            note_id=self._read_id(note.kept[self.id_column]),
            first_id=1,
            settings=self.settings,
            concepts=self.concepts,
            counts=counts,
        )
        return Taken(rows, counts)

    def _read_id(self, value: Any) -> int:
        number = as_integer(value)
        if number is None and isinstance(value, str):
            text = value.removesuffix(".txt") if self.id_column == FILE else value.strip()
            number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
        if number is None or number < 0:
            raise BioclinError(
                "its id is not an integer, as NOTE.note_id is; name the column with that id with "
                "--id-column"
            )
        return number

    def count(self, taken: Taken) -> dict[str, int]:
        """Count the rows, and what was cut, left out or not mapped."""
        return taken.counts

    def encode(self, taken: Sequence[Taken]) -> bytes:
        """Write a line of JSON for each row, without its id and time."""
        rows = (list(row[1:]) for each in taken for row in each.made)
        lines = (json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in rows)
        return "".join(lines).encode("utf-8")

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the table, and give the rows their ids."""
        next_id = self.settings.first_id
        with target.open("wb") as file:
            writer = self._open_writer(file)
            with writer:
                for part in parts:
                    rows = list(self._read_rows(part, next_id))
                    next_id += len(rows)
                    self._check_row_id(next_id - 1)
                    writer.add(rows)
            file.flush()
            os.fsync(file.fileno())

    def _check_row_id(self, last: int) -> None:
        """Check that the column can hold the ids.

        RAISES (BioclinError): It cannot. Parts do not fit other settings: with ids of four bytes,
            they have no notes whose own id has eight.
        """
        try:
            check_id("note_nlp_id", last, self.settings)
        except BioclinError as error:
            raise BioclinError(
                f"{error}; a lower first_id gives smaller ones. Begin again with --overwrite "
                "(without --resume), for finished parts have the old settings"
            ) from None

    def _read_rows(self, part: bytes, first_id: int) -> Iterator[NoteNlpRow]:
        moment = self.settings.moment
        for id, line in enumerate(part.split(b"\n")[:-1], start=first_id):
            row = NoteNlpRow(id, *json.loads(line))
            yield row._replace(nlp_date=moment.date(), nlp_datetime=moment)

    def _open_writer(self, file: Any) -> Any:
        return ParquetRows(file, self.settings) if self.parquet else CsvRows(file)

    def describe(self) -> list[str]:
        """List the columns of the table."""
        return [f"NOTE_NLP: {', '.join(NoteNlpRow._fields)}"]


class CsvRows:
    """Write rows of NOTE_NLP as CSV with a header; nothing between two commas is NULL.

    file (IO[bytes]): Open for writing. It is not closed.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._file.write(encode_line(NoteNlpRow._fields, ",", "\n"))

    def __enter__(self) -> "CsvRows":
        return self

    def __exit__(self, *exception: Any) -> None:
        """Leave the file open."""

    def add(self, rows: Sequence[NoteNlpRow]) -> None:
        """Write rows."""
        self._file.write(b"".join(encode_line(row, ",", "\n") for row in rows))


class ParquetRows(GroupWriter):
    """Write rows of NOTE_NLP as Parquet, with the types of the CDM.

    file (IO[bytes]): Open for writing. It is not closed.
    settings (TableSettings): Say whether ids have four bytes or eight.
    """

    def __init__(self, file: Any, settings: TableSettings) -> None:
        pa, _ = import_pyarrow()
        id = pa.int64() if settings.bigint else pa.int32()
        types = {
            "note_nlp_id": id,
            "note_id": id,
            "section_concept_id": pa.int32(),
            "note_nlp_concept_id": pa.int32(),
            "note_nlp_source_concept_id": pa.int32(),
            "nlp_date": pa.date32(),
            "nlp_datetime": pa.timestamp("us"),
        }
        fields = ((name, types.get(name, pa.string())) for name in NoteNlpRow._fields)
        self._rows = pa.schema(fields)
        super().__init__(file, self._rows)

    def add(self, rows: Any) -> None:
        """Write rows."""
        super().add(encode_table([row._asdict() for row in rows], schema=self._rows))


class FhirTarget(Target):
    """A .ndjson file: a Bundle of FHIR R4B for each note, checked if fhir.resources is there."""

    libraries = ("fhir.resources",)
    distinct_ids = True  # those of the resources are made of them

    def __init__(
        self, id_column: str | None, settings: FhirSettings, *, patient_column: str | None = None
    ) -> None:
        """Choose what is written.

        id_column (str | None): The column with the id of the note.
        patient_column (str | None): The column with the id of the patient's resource.
        RAISES (BioclinError): There is no such column, or the settings name an unknown terminology.
        """
        if id_column is None:
            raise BioclinError(
                "--to fhir: ids of resources are made of the id of their note, and a server "
                "replaces one by another of the same id; say which column of IN holds it with "
                "--id-column"
            )
        super().__init__((), entity_text=settings.words, note_text=settings.attach_text)
        Namespaces(settings)  # or an error, before anything is read
        self.kept = () if patient_column is None else (patient_column,)
        self.settings = settings
        self.is_checked = find_spec("fhir") is not None and find_spec("fhir.resources") is not None

    def options(self) -> dict[str, Any]:
        """Describe the settings."""
        patient = self.kept[0] if self.kept else None
        return {
            "patient": patient,
            "checked": self.is_checked,
            **self.settings.model_dump(mode="json"),
        }

    def take(self, note: Note, doc: Doc) -> Taken:
        """Make the Bundle of a note.

        RAISES (BioclinError): Its patient has no id that a resource can have, or it is not valid.
        """
        counts: Counter[str] = Counter()
        subject = self._read_patient(note.kept[self.kept[0]]) if self.kept else None
        bundle = to_bundle(
            doc, note_id=note.id, settings=self.settings, subject=subject, counts=counts
        )
        if self.is_checked:
            check_bundle(bundle)
            counts["Bundles checked"] += 1
        return Taken(bundle, counts)

    def _read_patient(self, value: Any) -> str:
        id = as_text(value).removeprefix(PATIENT)
        if not RESOURCE_ID.fullmatch(id):
            raise BioclinError(
                f"{self.kept[0]!r} is not the id of a resource of FHIR: want 1 to 64 letters, "
                "digits, - and ."
            )
        return f"{PATIENT}{id}"

    def count(self, taken: Taken) -> dict[str, int]:
        """Count the resources by type, and what was left out."""
        return taken.counts

    def encode(self, taken: Sequence[Taken]) -> bytes:
        """Write one line for each note."""
        return encode_lines([each.made for each in taken])

    def join(self, parts: Iterable[bytes], target: Path) -> None:
        """Write the lines to a file."""
        write_parts(parts, target)

    def describe(self) -> list[str]:
        """Say what a line holds."""
        return [
            "Bundle: DocumentReference, Condition, Observation, MedicationStatement, "
            "FamilyMemberHistory"
        ]
