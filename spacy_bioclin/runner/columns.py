"""Decide what becomes of each column: nothing is written that the user did not name.

A column of a table, or of the objects of a JSON lines file, may hold objects and lists. A field
inside is named by its path ("visit.date"); a list adds nothing to the path. What is said of a
column holds for the fields inside that are not named themselves.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..errors import BioclinError

Row = dict[str, Any]
FILE, TEXT = "file", "text"
# What --known can name -> key of doc._.patient.
KNOWN = {
    "name": "names",
    "birth_date": "birth_date",
    "identifier": "identifiers",
    "phone": "phones",
    "email": "emails",
    "address": "addresses",
}


class Columns(NamedTuple):
    """Names of the columns of a table, by what becomes of them.

    text (str): The note.
    id (str | None): The record's id.
    patient (str | None): The patient's id. It is written as a keyed hash, unless `keep` or `drop`
        has it too.
    known (tuple[tuple[str, str], ...]): (what, column) of data known about the patient.
    dates (frozenset[str]): Dates, which move with those of the patient's notes.
    drop (frozenset[str]): Not written; the columns of `known` are among them.
    keep (frozenset[str]): Written as they are.
    """

    text: str = TEXT
    id: str | None = None
    patient: str | None = None
    known: tuple[tuple[str, str], ...] = ()
    dates: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()

    @property
    def identifying(self) -> list[str]:
        """List the columns with the ids of the record and of the patient."""
        return [name for name in (self.id, self.patient) if name is not None]

    @property
    def named(self) -> list[str]:
        """List all columns that the user named."""
        others = sorted(self.drop | self.dates | self.keep)
        return list(dict.fromkeys([self.text, *self.identifying, *others]))


@lru_cache(maxsize=10_000)
def find_kind(columns: Columns, path: str) -> str | None:
    """Find what becomes of a field.

    path (str): Path of the field.
    RETURNS (str | None): "drop", "keep", "date", "text", "id" or "patient"; None if the user named
        neither the field nor anything around it.
    """
    while path:
        for kind, names in (
            ("drop", columns.drop),
            ("keep", columns.keep),
            ("date", columns.dates),
            ("text", (columns.text,)),
            ("id", (columns.id,)),
            ("patient", (columns.patient,)),
        ):
            if path in names:
                return kind
        path = path.rpartition(".")[0]
    return None


def make_columns(
    text: str,
    record_id: str | None,
    patient: str | None,
    known: Sequence[str],
    dates: Sequence[str],
    drop: Sequence[str],
    keep: Sequence[str],
) -> Columns:
    """Read the options on columns.

    RAISES (BioclinError): --known names an unknown kind of data, or two options name one column.
    """
    pairs = []
    for pair in known:
        what, _, column = pair.partition("=")
        if what not in KNOWN or not column:
            raise BioclinError(f"--known {pair}: want WHAT=COLUMN, WHAT one of {', '.join(KNOWN)}")
        pairs.append((what, column))
    options: dict[str, Sequence[str | None]] = {
        "--text-column": [text],
        "--id-column": [record_id],
        "--patient-column": [patient],
        "--known": list(dict.fromkeys(column for _, column in pairs)),
        "--date-column": dates,
        "--drop": drop,
        "--keep": keep,
    }
    uses: dict[str, list[str]] = {}
    for option, names in options.items():
        for name in dict.fromkeys(name for name in names if name is not None):
            uses.setdefault(name, []).append(option)
    for name, given in uses.items():
        of_ids = given[0] in ("--id-column", "--patient-column") and given[1:] in (
            ["--drop"],
            ["--keep"],
        )
        if len(given) > 1 and not of_ids:
            raise BioclinError(f"{name}: one column cannot be both {given[0]} and {given[1]}")
    dropped = frozenset([*drop, *(column for _, column in pairs)])
    return Columns(
        text, record_id, patient, tuple(pairs), frozenset(dates), dropped, frozenset(keep)
    )


def walk_fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """List the fields of a row that hold something, with their paths."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from walk_fields(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from walk_fields(inner, path)
    elif value is not None:
        yield path, value


def find_field(value: Any, path: str) -> Iterator[Any]:
    """List the values of the field with a path; several if there are lists."""
    if isinstance(value, list | tuple):
        for inner in value:
            yield from find_field(inner, path)
    elif not path:
        yield value
    elif isinstance(value, dict):
        # "a.b" may be one name, or a field of a.
        for name, inner in value.items():
            if path == name or path.startswith(f"{name}."):
                yield from find_field(inner, path[len(name) + 1 :])


def map_fields(
    value: Any, columns: Columns, change: Callable[[str | None, Any], Any], path: str = ""
) -> Any:
    """Copy a row without the fields that are dropped.

    change (Callable): Makes the new value of a field from its kind (see `find_kind`) and its value.
    """
    if isinstance(value, dict):
        return {
            name: map_fields(inner, columns, change, inside)
            for name, inner in value.items()
            for inside in [f"{path}.{name}" if path else str(name)]
            if find_kind(columns, inside) != "drop"
        }
    if isinstance(value, list | tuple):
        return type(value)(map_fields(inner, columns, change, path) for inner in value)
    return None if value is None else change(find_kind(columns, path), value)


def with_parents(paths: Iterable[str]) -> set[str]:
    """Collect paths, and those of all that is around them."""
    found = set()
    for path in paths:
        while path and path not in found:
            found.add(path)
            path = path.rpartition(".")[0]
    return found


def check_named(source: object, paths: Sequence[str], columns: Columns) -> None:
    """Check that the columns that the user named are there.

    source (object): The file, for the message.
    paths (Sequence[str]): Paths of all fields that there are.
    RAISES (BioclinError): One is missing. The message lists those there are.
    """
    there = with_parents(paths)
    for name in columns.named:
        if name not in there:
            how = "; --text-column says which one holds the notes" if name == columns.text else ""
            has = f"it has {', '.join(show_paths(paths))}"
            if any(map(_is_data, paths)):
                has = "its first line seems to be data, not the names of columns"
            raise BioclinError(f"{source}: no column {name!r}; {has}{how}")


def _is_data(name: str) -> bool:
    """Guess whether a file without a header has a value here: it may be PHI."""
    plain = all(c.isalnum() or c in " _.-/()#%&+'ºª" for c in unicodedata.normalize("NFC", name))
    few_digits = sum(map(str.isdigit, name)) <= 3
    return not (len(name) <= 60 and any(map(str.isalpha, name)) and few_digits and plain)


def show_paths(paths: Iterable[str]) -> list[str]:
    """List paths for a message.

    Names of inner fields may be data ("2021-03-12": 5), so these are shown only if they look like
    names; else the column around them is.
    """
    shown: dict[str, None] = {}
    for path in paths:
        top, dot, inner = path.partition(".")
        plain = all(c.isalnum() or c in "_.-" for c in inner) and sum(map(str.isdigit, inner)) < 3
        shown[path if plain else f"{top}{dot and '.*'}"] = None
    # An object with so many fields is a table by itself.
    many = [top for top in {p.partition(".")[0] for p in shown} if _n_inside(top, shown) > 30]
    return list(
        dict.fromkeys(
            f"{path.partition('.')[0]}.*" if path.partition(".")[0] in many else path
            for path in shown
        )
    )


def _n_inside(top: str, paths: Iterable[str]) -> int:
    return sum(path.startswith(f"{top}.") for path in paths)
