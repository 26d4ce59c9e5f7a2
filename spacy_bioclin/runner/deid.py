"""De-identify records: the note goes through the pipeline, the other columns are copied.

A record that would still contain a PHI string is never written.
"""

import json
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..deid.secret import Secret
from ..errors import BioclinError
from ..text import find_leaks
from .parts import Part, add_counts
from .records import FILE, Columns, Form, Record, Row, TextFiles
from .work import Counts, Done, UselessError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# What --known can name -> key of doc._.patient.
KNOWN = {
    "name": "names",
    "birth_date": "birth_date",
    "identifier": "identifiers",
    "phone": "phones",
    "email": "emails",
    "address": "addresses",
}
N_HASH_DIGITS = 20  # 80 bits: among 50 million names, two alike once in a billion runs


class LeakError(UselessError):
    """A record that would be written contains PHI."""


class DeidJob(NamedTuple):
    """De-identify parts of an input; every process gets a copy through a pipe, with the key.

    load (Callable): Makes a pipeline that has bioclin_deid.
    columns (Columns): The text, ids, known data and dropped columns.
    encode (Callable): Rows -> bytes in the form of the output.
    key (bytes | None): The secret key; `rename` needs one.
    rename (bool): Replace names of files, ids and patients with keyed hashes.
    files (bool): The notes are files of a folder.
    out (str | None): Name of the output if it is one note.
    """

    load: Callable[[], "Language"]
    columns: Columns
    encode: Callable[[Sequence[Row]], bytes]
    key: bytes | None
    rename: bool
    files: bool = False
    out: str | None = None

    @classmethod
    def for_form(
        cls,
        form: Form,
        load: Callable[[], "Language"],
        key: bytes | None,
        *,
        out: Path,
        rename: bool,
    ) -> "DeidJob":
        """Make the job for an input.

        RAISES (BioclinError): There is nothing to rename.
        """
        files = form.path.is_dir()
        if rename and not (files or form.columns.identifying):
            raise BioclinError(
                "--rename: no names to hash; say where they are with --id-column, --patient-column"
            )
        if rename:
            form.make_strings(form.columns.identifying)
        name = out.name if isinstance(form, TextFiles) and not files else None
        return cls(load, form.columns, form.encode, key, rename, files, name)

    def describe(self) -> str:
        """Describe what the output depends on, beside pipeline, policy and key, as JSON."""
        columns = {**self.columns._asdict(), "drop": sorted(self.columns.drop)}
        return json.dumps({**columns, "rename": self.rename}, ensure_ascii=False)

    def make_audit(self, counts: Counts) -> dict[str, Any]:
        """Make the audit's part on the records.

        RAISES (BioclinError): No record has a column that was to be dropped.
        """
        unseen = self.columns.drop - {*counts.get("dropped", ())}
        if unseen and counts["written"]:
            raise UselessError(
                f"no record has the column {min(unseen)!r}: give its name (--drop, --known) as "
                "it is in the file"
            )
        names = ("read", "written", "skipped", "empty")
        return {
            "records": {name: counts[name] for name in names},
            "skipped_places": counts["places"],
            "notes": counts.get("notes", {}),
            "columns": json.loads(self.describe()),
        }

    def start(self) -> Callable[[Part], Done]:
        """Load the pipeline in a process, and return the function that makes a part."""
        nlp = self.load()

        def make_part(part: Part) -> Done:
            # A library's warning may quote a note.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.make_part(nlp, part)

        return make_part

    def make_part(self, nlp: "Language", part: Part) -> Done:
        """Make the safe records of a part.

        RAISES (BioclinError): The pipeline fails on a record, or PHI is left in one (LeakError).
        """
        counts: Counts = {"written": len(part.records), "empty": 0, "dropped": {}}
        rows = []
        notes = [record for record in part.records if record.row[self.columns.text].strip()]
        docs = deidentify(nlp, notes, self.columns)
        for record in part.records:
            row = self.keep_columns(record.row)
            add_counts(counts["dropped"], dict.fromkeys(self.columns.drop & {*record.row}, 1))
            values: list[tuple[str, str]] = []
            if record.row[self.columns.text].strip():
                result = next(docs)._.deid
                row[self.columns.text] = result.text
                policies = {result.audit["policy"]: 1}
                add_counts(counts, {"notes": {**result.audit, "policies": policies}})
                values = result.phi_values
            else:
                counts["empty"] += 1
            check_leaks(values, find_known(record, self.columns), row, record.place, self)
            rows.append(row)
        return Done(self.encode(rows), counts)

    def keep_columns(self, row: Row) -> Row:
        """Copy the columns of the output, with hashes instead of names if `rename` is set."""
        kept = {name: value for name, value in row.items() if name not in self.columns.drop}
        if self.rename:
            assert self.key is not None
            secret = Secret(self.key, "")
            if self.files:
                kept[FILE] = rename_file(secret, kept[FILE])
            for name in {*self.columns.identifying}:
                kept[name] = _hash(secret, str(kept[name]))
        return kept


def make_columns(
    text: str, record_id: str | None, patient: str | None, known: Sequence[str], drop: Sequence[str]
) -> Columns:
    """Read the options on columns.

    RAISES (BioclinError): --known names an unknown kind of data, or a needed column is dropped.
    """
    pairs = []
    for pair in known:
        what, _, column = pair.partition("=")
        if what not in KNOWN or not column:
            raise BioclinError(f"--known {pair}: want WHAT=COLUMN, WHAT one of {', '.join(KNOWN)}")
        pairs.append((what, column))
    dropped = frozenset([*drop, *(column for _, column in pairs)])
    for needed in (text, record_id, patient):
        if needed in dropped:
            raise BioclinError(f"{needed}: this column is needed, and cannot be dropped or --known")
    return Columns(text, record_id, patient, tuple(pairs), dropped)


def deidentify(nlp: "Language", records: Sequence[Record], columns: Columns) -> Iterator["Doc"]:
    """Run the pipeline on the notes of records.

    RAISES (BioclinError): The pipeline fails. The message names the record, but does not repeat the
        pipeline's own message, which may quote the note.
    """

    def make_docs(chosen: Iterable[Record]) -> Iterator["Doc"]:
        for record in chosen:
            doc = nlp.make_doc(record.row[columns.text])
            doc._.patient = find_patient(record, columns)
            yield doc

    try:
        docs = list(nlp.pipe(make_docs(records)))
    except Exception as error:
        if len(records) == 1:
            raise _failure(records[0], error) from None
        docs = [doc for record in records for doc in deidentify(nlp, [record], columns)]
    yield from docs


def _failure(record: Record, error: Exception) -> BioclinError:
    if isinstance(error, BioclinError):  # these never quote
        return BioclinError(f"{record.place}: {error}")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}, line {frame.lineno}"
    return BioclinError(
        f"{record.place}: the pipeline failed with {type(error).__name__} ({where}); its message "
        "is not shown, for it may hold text of the note"
    )


def find_patient(record: Record, columns: Columns) -> dict[str, Any]:
    """Collect `doc._.patient`; without a patient column each note has a patient of its own."""
    patient: dict[str, Any] = {}
    if columns.patient is not None:
        patient["id"] = str(record.row[columns.patient])
    for what, value in find_known(record, columns):
        if what == "birth_date":
            patient["birth_date"] = value
        else:
            patient.setdefault(KNOWN[what], []).append(value)
    return patient


def find_known(record: Record, columns: Columns) -> list[tuple[str, str]]:
    """List the kinds and values of the record's columns that describe the patient.

    RAISES (BioclinError): A birth date is not YYYY-MM-DD.
    """
    known = []
    for what, column in columns.known:
        value = record.row.get(column)
        for each in value if isinstance(value, list) else [value]:
            text = "" if each is None else str(each).strip()
            if text and what == "birth_date":
                try:
                    text = date.fromisoformat(text[:10]).isoformat()
                except ValueError:
                    raise BioclinError(
                        f"{record.place}: the known birth_date is not YYYY-MM-DD"
                    ) from None
            if text:
                known.append((what, text))
    return known


def check_leaks(
    found: Sequence[tuple[str, str]],
    known: Sequence[tuple[str, str]],
    row: Row,
    place: str,
    job: DeidJob,
) -> None:
    """Search everything that would be written of a record for PHI, names of columns and file too.

    found (Sequence[tuple[str, str]]): Kinds and strings that must not be anywhere.
    known (Sequence[tuple[str, str]]): Likewise, except in the text: `found` has those that were in
        the note, and a surrogate may be one by chance.
    RAISES (LeakError): It names the record by its place, and by its id if that contains no PHI.
    """
    everything = [*found, *known]
    if not everything:
        return
    texts = {name: "\n".join(find_texts(value)) for name, value in row.items()}
    if job.out is not None:
        texts[FILE] = job.out
    for column, text in texts.items():
        in_note = column == job.columns.text
        kinds = find_leaks(found if in_note else everything, f"{column}\n{text}")
        if not kinds:
            continue
        names = [FILE] if job.files else job.columns.identifying
        own = texts.get(FILE if job.files else job.columns.id or "", "")
        name = place if not own or find_leaks(everything, own) else f"{place} ({own})"
        what = f"{name}: PHI of this record ({', '.join(kinds)}) is in"
        if in_note:
            raise LeakError(f"{what} the safe note: treat it with another operator in the policy")
        if job.out is not None:
            raise LeakError(f"{what} the name of OUT: give it another")
        if column in names and not job.rename:
            raise LeakError(f"{what} its name or id: --rename replaces them with hashes")
        shown = "a column" if find_leaks(everything, column) else f"column {column!r}"
        raise LeakError(f"{what} {shown}: leave it out with --drop")


def find_texts(value: Any) -> Iterator[str]:
    """List every string and number in a value, and the names of nested fields."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from find_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from find_texts(inner)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif value is not None:
        yield str(value)


def rename_file(secret: Secret, name: str) -> str:
    """Hash a path part by part, so that the files of a folder stay together."""
    return "/".join(_hash(secret, part) for part in name.removesuffix(".txt").split("/")) + ".txt"


def _hash(secret: Secret, name: str) -> str:
    return secret.derive("name", name).hex()[:N_HASH_DIGITS]
