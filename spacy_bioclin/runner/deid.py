"""De-identify records: the note goes through the pipeline, the other columns as the user said.

A record that would still contain something that was hidden is never written.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dates import find_day_first
from ..deid.labels import label_of
from ..deid.pipeline import find_deid
from ..deid.secret import Secret, SecretKey, patient_secret
from ..deid.surrogates.context import DateShift, SurrogateContext
from ..deid.surrogates.dates import shift_days
from ..errors import BioclinError
from .columns import FILE, KNOWN, Columns, Row, find_field, find_kind, map_fields, walk_fields
from .leaks import Hidden, find_names
from .memory import quiet_zone
from .notes.annotate import annotate, describe_end
from .parts import Part, add_counts
from .records import Form, Record, TextFiles
from .stamps import as_text, read_birth_date, shift_value
from .work import Counts, Done

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ..deid.component import Deidentifier
    from ..deid.result import DeidResult

N_HASH_DIGITS = 20  # 80 bits: among 50 million names, two alike once in a billion runs


class LeakError(BioclinError):
    """A record that would be written contains PHI.

    id (str): Its id or the name of its file; "" if that contains PHI, or there is none.
    """

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id


class DeidJob(NamedTuple):
    """De-identify parts of an input; every process gets a copy through a pipe, with the key.

    load (Callable): Makes a pipeline that has bioclin_deid.
    columns (Columns): What becomes of each column.
    encode (Callable): Rows -> bytes in the form of the output.
    key (SecretKey): The secret key.
    rename (bool): Replace names of files and ids of records with keyed hashes.
    lang (str): Language of the notes, and of the dates in columns.
    files (bool): The notes are files of a folder.
    out (str | None): Name of the output if it is one note.
    """

    load: Callable[[], "Language"]
    columns: Columns
    encode: Callable[[Sequence[Row]], bytes]
    key: SecretKey
    rename: bool
    lang: str
    files: bool = False
    out: str | None = None

    @classmethod
    def for_form(
        cls,
        form: Form,
        load: Callable[[], "Language"],
        key: SecretKey,
        *,
        out: Path,
        rename: bool,
        lang: str,
    ) -> "DeidJob":
        """Make the job for an input.

        RAISES (BioclinError): There is nothing to rename.
        """
        columns, files = form.columns, form.path.is_dir()
        if rename and not (files or columns.id):
            raise BioclinError("--rename: no names to hash; say where they are with --id-column")
        if isinstance(form, TextFiles):
            columns = columns._replace(keep=frozenset([FILE]))
        name = out.name if isinstance(form, TextFiles) and not files else None
        job = cls(load, columns, form.encode, key, rename, lang, files, name)
        form.make_strings(column for column in columns.identifying if job.is_hashed(column))
        return job._replace(encode=form.encode)

    @property
    def needs_key(self) -> str:
        """Name the option for which a key is needed, or ""."""
        if self.rename:
            return "--rename"
        if self.columns.dates:
            return "--date-column (dates are shifted)"
        if self.columns.patient is not None and self.is_hashed(self.columns.patient):
            return "--patient-column (its ids are hashed; --keep or --drop are the other ways)"
        return ""

    def is_hashed(self, path: str) -> bool:
        """Check whether the values of a field are written as hashes."""
        kind = find_kind(self.columns, path)
        return kind == "patient" or (kind == "id" and self.rename)

    def is_copied(self, path: str) -> bool:
        """Check whether the values of a field are written as they are."""
        kind = find_kind(self.columns, path)
        return kind not in ("date", "text") and not self.is_hashed(path)

    def describe(self) -> str:
        """Describe what the output depends on, beside pipeline, policy and key, as JSON."""
        columns = {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in self.columns._asdict().items()
        }
        return json.dumps({**columns, "rename": self.rename}, ensure_ascii=False)

    def make_audit(self, counts: Counts) -> dict[str, Any]:
        """Make the audit's part on the records."""
        names = ("read", "written", "skipped", "empty")
        return {
            "records": {name: counts[name] for name in names},
            "skipped_places": counts["places"],
            "refused": counts["refused"],
            "notes": counts.get("notes", {}),
            "dates": counts.get("dates", {}),
            "columns": json.loads(self.describe()),
        }

    def start(self) -> Callable[[Part], Done]:
        """Load the pipeline in a process, and return the function that makes a part.

        RAISES (BioclinError): Dates are shifted beside the notes, and kept in them.
        """
        nlp = self.load()
        policy = find_deid(nlp).policy
        kept = policy.operator_for(label_of("date", policy.scheme), "date") == "keep"
        if self.columns.dates and kept:
            raise BioclinError(
                "--date-column: the policy keeps the dates of the notes, which would show by how "
                "many days the column is shifted; let the policy shift or mask dates, or --drop "
                "the column"
            )

        def make_part(part: Part) -> Done:
            texts = (record.row[self.columns.text] for record in part.records)
            with quiet_zone(nlp, texts):
                return self.make_part(nlp, part)

        return make_part

    def make_part(self, nlp: "Language", part: Part) -> Done:
        """Make the safe records of a part; those that cannot be made safe are refused."""
        total: Counts = {"written": 0, "empty": 0}
        rows: list[Row] = []
        refused: list[dict[str, str]] = []
        deid = find_deid(nlp)
        docs = self.deidentify(nlp, [each for each in part.records if not self.is_blank(each)])
        for record in part.records:
            counts: Counts = {"written": 1}
            try:
                result = None
                if self.is_blank(record):
                    counts["empty"] = 1
                else:
                    doc = next(docs)
                    if isinstance(doc, BioclinError):
                        raise doc
                    result = doc._.deid
                    policies = {result.audit["policy"]: 1}
                    counts["notes"] = {**result.audit, "policies": policies}
                row, counts["dates"] = self.make_row(record, result, deid)
                self.check_leaks(record, result, row)
            except BioclinError as error:
                id = {"id": error.id} if isinstance(error, LeakError) and error.id else {}
                reason = str(error)
                if not reason.startswith(record.place):
                    reason = f"{record.place}: {reason}"
                refused.append({"place": record.place, **id, "reason": reason})
                continue
            rows.append(row)
            add_counts(total, counts)
        refused += [{"place": r.place, "reason": str(describe_end(r))} for r in part.deadly]
        return Done(self.encode(rows), total, refused)

    def is_blank(self, record: Record) -> bool:
        """Check whether a record has no note."""
        return not record.row[self.columns.text].strip()

    def make_row(
        self, record: Record, result: "DeidResult | None", deid: "Deidentifier"
    ) -> tuple[Row, Counts]:
        """Make the record that is written.

        RETURNS (tuple[Row, Counts]): The row, and how many dates were shifted and removed.
        """
        counts: Counts = {}
        context = None
        if self.columns.dates:
            key = self.key.reveal()
            assert key is not None  # Setup.check has looked
            patient = self.find_id(record)
            text = record.row[self.columns.text]
            secret = patient_secret(key, patient, text if text.strip() else record.place)
            days = shift_days(secret, deid.policy.keep_weekdays)
            values = (record.row.get(name) for name in self.columns.dates)
            order = find_day_first([text, *(value for value in values if isinstance(value, str))])
            dates = DateShift(days, day_first=order)
            context = SurrogateContext(secret, self.lang, dates=dates)

        def change(kind: str | None, value: Any) -> Any:
            if kind == "text":
                return value if result is None else result.text
            if kind == "date" and context is not None:
                new = shift_value(value, context)
                if new != value:  # blank
                    add_counts(counts, {"removed" if new is None else "shifted": 1})
                return new
            if kind == "patient" or (kind == "id" and self.rename):
                return hash_name(self.key, as_text(value).strip())
            if kind is None:
                raise BioclinError(f"{record.place}: has a column that was not there before")
            return value

        row = map_fields(record.row, self.columns, change)
        if self.files and self.rename:
            row[FILE] = rename_file(self.key, row[FILE])
        return row, counts

    def deidentify(
        self, nlp: "Language", records: Sequence[Record]
    ) -> Iterator["Doc | BioclinError"]:
        """Run the pipeline on the notes of records.

        YIELDS (Doc | BioclinError): What the pipeline made, or how it failed. The error names the
            record, but does not repeat the pipeline's own message, which may quote the note.
        """

        def make_doc(record: Record) -> "Doc":
            doc = nlp.make_doc(record.row[self.columns.text])
            doc._.patient = self.find_patient(record)
            return doc

        return annotate(nlp, records, make_doc, lambda doc, record: doc)

    def find_id(self, record: Record) -> str | None:
        """Find the patient's id; None without a patient column."""
        if self.columns.patient is None:
            return None
        return as_text(record.row[self.columns.patient]).strip()

    def find_patient(self, record: Record) -> dict[str, Any]:
        """Collect `doc._.patient`; without a patient column each note has a patient of its own.

        RAISES (BioclinError): A birth date cannot be read.
        """
        patient: dict[str, Any] = {}
        if self.columns.patient is not None:
            patient["id"] = self.find_id(record)
        for what, value in self.find_known(record):
            if what == "birth_date":
                patient["birth_date"] = value
            else:
                patient.setdefault(KNOWN[what], []).append(value)
        return patient

    def find_known(self, record: Record) -> list[tuple[str, str]]:
        """List the kinds and values of the record's columns that describe the patient.

        RAISES (BioclinError): A birth date cannot be read.
        """
        known = []
        for what, column in self.columns.known:
            for value in find_field(record.row, column):
                text = "" if value is None else as_text(value).strip()
                if text and what == "birth_date":
                    day = read_birth_date(value, self.lang)
                    if day is None:
                        order = "MM/DD/YYYY" if self.lang == "en" else "DD/MM/YYYY"
                        raise BioclinError(
                            f"the known birth_date is not a day, month and year of four digits: "
                            f"want YYYY-MM-DD, or {order} as --lang {self.lang} has it"
                        )
                    text = day.isoformat()
                if text:
                    known.append((what, text))
        return known

    def check_leaks(self, record: Record, result: "DeidResult | None", row: Row) -> None:
        """Search everything that would be written of a record for PHI, names of columns and file
        too.

        What is known about the patient is not searched for in the note: what the note had of it is
        hidden, and a surrogate may be the same by chance.

        RAISES (LeakError): It names the record by its place, and by its id if that has no PHI.
        """
        found = [] if result is None else result.phi_values
        known = self.find_known(record)
        if not found and not known:
            return
        hidden = Hidden([*found, *known], self.lang)
        own = as_text(row.get(FILE if self.files else self.columns.id or "") or "")
        own = "" if hidden.find(own) else own
        name = f"{record.place} ({own})" if own else record.place

        def leak(kinds: list[str], where: str) -> LeakError:
            return LeakError(f"{name}: PHI of this record ({', '.join(kinds)}) is in {where}", own)

        in_note = Hidden(found, self.lang) if known else hidden
        if result is not None and (kinds := in_note.find_in_note(result.checked_text)):
            raise leak(kinds, "the safe note: treat it with another operator in the policy")
        if self.out is not None and (kinds := hidden.find(self.out)):
            raise leak(kinds, "the name of OUT: give it another")
        for column, value in row.items():
            copied = [each for path, each in walk_fields(value, column) if self.is_copied(path)]
            if not (kinds := hidden.find([column, *find_names(value), *copied])):
                continue
            if column == self.columns.patient and not self.is_hashed(column):
                raise leak(kinds, "its patient's id: it is hashed if --keep does not name it")
            if column == (FILE if self.files else self.columns.id):
                raise leak(kinds, "its name or id: --rename replaces them with hashes")
            shown = "a column" if hidden.find(column) else f"column {column!r}"
            raise leak(kinds, f"{shown}: leave it out with --drop, or shift it with --date-column")


def rename_file(key: SecretKey, name: str) -> str:
    """Hash a path part by part, so that the files of a folder stay together."""
    return "/".join(hash_name(key, part) for part in name.removesuffix(".txt").split("/")) + ".txt"


def hash_name(key: SecretKey, name: str) -> str:
    """Hash the name of a file or patient, or an id."""
    secret = key.reveal()
    assert secret is not None  # Setup.check has looked
    return Secret(secret, "").derive("name", name).hex()[:N_HASH_DIGITS]
