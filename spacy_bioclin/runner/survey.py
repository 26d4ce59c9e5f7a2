"""Look at the columns of an input before anything is written."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any

from ..deid.detect.rules import load_rules
from ..errors import BioclinError
from .carried import Carried
from .columns import check_named, find_kind, show_paths, walk_fields
from .records import Form, Record
from .stamps import as_text, read_day

# Records of a file with a header that are looked at; the others have the same columns.
MAX_RECORDS = 10_000
MAX_EXAMPLES = 100
MAX_DISTINCT = 10_000
MAX_CHARS = 500
FEW = 5  # records with one value, below which it may reveal who somebody is
DENSE = 0.2  # share of the values
MIN_WORDS = 8
DATES = "dates"
OPTIONS = """\
  --date-column COLUMN      dates: they move as those of the patient's notes do
  --known WHAT=COLUMN       what is known about the patient: found in the note, and not written
  --patient-column COLUMN   the patient's id: written as a keyed hash
  --id-column COLUMN        the record's id
  --drop COLUMN             not written
  --keep COLUMN             written as it is"""


@dataclass
class Field:
    """What is seen of a column, or of a field inside one.

    n (int): Records that have it.
    examples (list[Any]): The first distinct values.
    counts (Counter[str]): Value -> records that have it, of the first MAX_DISTINCT values.
    """

    n: int = 0
    examples: list[Any] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, value: Any) -> None:
        """Count a value."""
        self.n += 1
        text = as_text(value)[:MAX_CHARS]
        if text not in self.counts:
            if len(self.counts) >= MAX_DISTINCT:
                return
            if len(self.examples) < MAX_EXAMPLES and text.strip():
                self.examples.append(value[:MAX_CHARS] if isinstance(value, str) else value)
        self.counts[text] += 1


def survey(form: Form) -> dict[str, Field]:
    """Look at all records, or at the first ones of a file that has a header.

    RETURNS (dict[str, Field]): By path, without the notes and what is dropped.
    RAISES (BioclinError): A column that the user named is not there.
    """
    columns = form.columns
    fields = {path: Field() for path in form.paths or ()}
    records: Iterable[Any] = form.read()
    if form.paths is not None:
        asked = any(find_kind(columns, path) in (None, "keep") for path in form.paths)
        records = islice(records, MAX_RECORDS) if asked else ()
    n = 0
    for record in records:
        if not isinstance(record, Record):
            continue
        n += 1
        for path, value in walk_fields(record.row):
            found = fields.setdefault(path, Field())
            if find_kind(columns, path) in (None, "keep"):
                found.add(value)
    if n and form.paths is None:
        check_named(form.path, list(fields), columns)
    return {path: each for path, each in fields.items() if find_kind(columns, path) != "drop"}


def check_all_named(form: Form, fields: dict[str, Field], lang: str) -> None:
    """Check that the user has said what becomes of every column.

    RAISES (BioclinError): Some are not named. The message lists them, what they seem to be, and
        what may become of them.
    """
    unknown = {path: each for path, each in fields.items() if not find_kind(form.columns, path)}
    if not unknown:
        return
    lines = {}
    for path in unknown:
        [shown] = show_paths([path])
        about = ", ".join(describe(path, unknown[path], lang))
        lines[shown] = f"  {shown}{about and f': {about}'}"
    shown_paths = [path for path in show_paths(unknown) if path]
    listed = "\n".join(lines.get(path, f"  {path}") for path in shown_paths)
    raise BioclinError(
        f"{form.path}: nothing is written, for it is not known what becomes of these columns:\n"
        f"{listed}\nGive each of them one of:\n{OPTIONS}"
    )


def find_doubts(form: Form, fields: dict[str, Field], lang: str) -> Iterator[tuple[str, str]]:
    """List the columns that are written as they are although they may reveal who somebody is.

    YIELDS (tuple[str, str]): Path, and why.
    """
    for path, each in fields.items():
        if find_kind(form.columns, path) == "keep" and (about := describe(path, each, lang)):
            if DATES in about:
                about[about.index(DATES)] += ", which show how the notes' dates are shifted, if so"
            yield show_paths([path])[0], ", ".join(about)


def describe(path: str, seen: Field, lang: str) -> list[str]:
    """Describe what in a column may reveal who somebody is, without any of its values."""
    values = seen.examples
    if not values:
        return []
    found = []
    texts = [as_text(value) for value in values]
    # Of ten digits, an identifier is more usual than seconds since 1970.
    plain = [value for value in values if not (isinstance(value, int) and len(str(value)) == 10)]
    n_dates = sum(read_day(value, lang) is not None for value in plain)
    if n_dates >= DENSE * len(values):
        found.append(DATES)
    else:
        # Beside the column's name, a value is like a labelled line of a note.
        name = path.rpartition(".")[2].replace("_", " ")
        rules = load_rules(lang)
        labels = Counter(
            label
            for text in texts
            for label in {
                phi.label for phi in rules.find(f"{name}: {text}") if phi.confidence >= 0.5
            }
        )
        phi = [label for label, n in labels.most_common() if n >= DENSE * len(values)]
        if phi:
            found.append(f"PHI ({', '.join(phi[:3])})")
    if any(len(text.split()) >= MIN_WORDS for text in texts):
        found.append("free text, in which no PHI is searched for")
    rare = sum(n < FEW for n in seen.counts.values())
    numbers = all(isinstance(value, float | date | Carried) for value in values)
    if rare and not numbers and DATES not in found:
        more = "+" if len(seen.counts) >= MAX_DISTINCT else ""
        found.append(
            f"{rare:,}{more} of {len(seen.counts):,}{more} values in fewer than {FEW} records"
        )
    return found
