"""What the columns of a table hold: as the user says, or by the usual headers in Spanish and
English."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import digits
from typing import NamedTuple

import srsly

from ...errors import BioclinError
from ...text import fold_alnum

Columns = Mapping[str, str | Sequence[str]]

_DATA = srsly.read_yaml(Path(__file__).with_name("headers.yml"))
# See headers.yml: what a column holds -> its usual headers; headers of columns that hold aliases.
HEADERS: dict[str, list[str]] = _DATA["columns"]
ALIAS_HEADERS = frozenset(_DATA["aliases"])
WORDS: dict[str, frozenset[str]] = {key: frozenset(words) for key, words in _DATA["words"].items()}
LANGUAGES = {word: code for code, words in _DATA["languages"].items() for word in words}
# Header -> values of retired rows, None for any value.
RETIRED: dict[str, frozenset[str] | None] = {
    header: frozenset(group["values"]) if "values" in group else None
    for group in _DATA["retired"]
    for header in group["headers"]
}
WORD = re.compile(r"[A-ZÀ-Þ]+(?![a-zß-ÿ])|[A-ZÀ-Þ]?[a-zß-ÿ]+")
NOTHING = frozenset({"", "null", "none", "nan", "na", "valid", "n", "no", "0"})
MAX_HEADER = 80  # in characters; a longer one is a text
FAR_AWAY = re.compile(r"(?:20|29|99)99")  # the year of a date that means "never"


class Layout(NamedTuple):
    """What the columns of a table hold.

    found (dict[str, list[int]]): Key of `Columns` -> indices of its columns.
    langs (dict[int, str]): Index -> language of the names in it, where the header states it.
    retired (dict[int, frozenset[str] | None]): Index -> values of retired rows, None for any.
    """

    found: dict[str, list[int]]
    langs: dict[int, str]
    retired: dict[int, frozenset[str] | None]

    def retired_by(self, cells: Sequence[str]) -> int | None:
        """Find the column that says that a row is no longer valid.

        RETURNS (int | None): Its index; None for a valid row.
        """
        for i, values in self.retired.items():
            value = fold_alnum(cells[i])
            if value in values if values is not None else _is_set(value):
                return i
        return None


def _is_set(value: str) -> bool:
    return value not in NOTHING and not FAR_AWAY.search(value)


def has_numbers(columns: Columns) -> bool:
    """Check whether columns are given by number, because the table has no header line."""
    return all(wanted.isdecimal() for value in columns.values() for wanted in _as_list(value))


def find_columns(header: Sequence[str], columns: Columns, where: str) -> Layout:
    """Find the columns that the user named.

    header (Sequence[str]): Cells of the header line.
    columns (Columns): As `read_table` takes them.
    where (str): File and line, for messages.
    RETURNS (Layout): The columns.
    RAISES (BioclinError): A key or a column does not exist, or none is named for the id.
    """
    keys = (*HEADERS, "alias")
    if unknown := sorted(set(columns) - set(keys)):
        raise BioclinError(f"columns: no key {unknown[0]!r}; there are {', '.join(keys)}")
    if "id" not in columns or len(columns) < 2:
        raise BioclinError("columns must name the column of the id and another, such as the name's")
    by_number = has_numbers(columns)
    names = [str(n) for n in range(1, len(header) + 1)] if by_number else list(header)
    found = {}
    for key, value in columns.items():
        wanted = _as_list(value)
        if missing := [name for name in wanted if name not in names]:
            there = ", ".join(map(repr, names))
            raise BioclinError(f"{where}: no column {missing[0]!r} ({key}); there are {there}")
        found[key] = [names.index(name) for name in wanted]
    return _layout([] if by_number else header, found)


def recognise_columns(header: Sequence[str], where: str) -> Layout:
    """Recognise the usual headers in Spanish and English.

    header (Sequence[str]): Cells of the header line.
    where (str): File and line, for messages.
    RETURNS (Layout): The columns.
    RAISES (BioclinError): No column is recognised for the id, or none for names, though there are
        columns that are not recognised.
    """
    plain = [fold_alnum(name).rstrip(digits) for name in header]
    words = [set(_words(name)) for name in header]
    bare, langs = zip(*map(_without_language, [*header, ""]), strict=True)
    found = {"alias": [i for i, name in enumerate(plain) if {name, bare[i]} & ALIAS_HEADERS]}
    free = {i for i, name in enumerate(plain) if name not in RETIRED} - set(found["alias"])

    def take(key: str, indices: list[int]) -> None:
        if indices:
            found.setdefault(key, []).extend(indices)
            free.difference_update(indices)

    for key, usual in HEADERS.items():
        take(key, [i for name in usual for i in sorted(free) if plain[i] == name][:1])
    # Names in a stated language, of which there may be several columns.
    take("name", [i for i in sorted(free) if bare[i] in ("", *HEADERS["name"]) and langs[i]])
    take("alias", [i for i in sorted(free) if _is_alias(words[i])])
    for key in ("id", "name"):
        like = [i for i in free if WORDS[key] & words[i] and not WORDS["others"] & words[i]]
        if key not in found and len(like) == 1:
            take(key, like)
    layout = _layout(header, found)
    is_lost = "name" not in found and any(header[i] for i in free)
    if "id" in found and ("name" in found or found["alias"]) and not is_lost:
        return layout
    there = ", ".join(map(repr, header))
    raise BioclinError(
        f"{where}: no column is recognised as the {'name' if 'id' in found else 'id'}; there are "
        f"{there}. Name them with columns, such as id=codigo and name=descriptor, by number in a "
        "table without a header line; or the delimiter is not a tab, semicolon, comma or |"
    )


def may_hold_list(header: str) -> bool:
    """Check whether a cell of a column of aliases may hold several with commas between them: the
    column of a short name does not."""
    return not (WORDS["name"] | WORDS["short"]) & set(_words(header))


def _layout(header: Sequence[str], found: dict[str, list[int]]) -> Layout:
    """Add what the headers say about languages and retired rows."""
    names = {i for key in ("name", "alias") for i in found.get(key, ())}
    taken = {i for indices in found.values() for i in indices}
    langs = {i: _without_language(header[i])[1] for i in names if i < len(header)}
    retired = {
        i: RETIRED[plain]
        for i, name in enumerate(header)
        if (plain := fold_alnum(name).rstrip(digits)) in RETIRED and i not in taken
    }
    return Layout(found, {i: lang for i, lang in langs.items() if lang}, retired)


def _words(header: str) -> list[str]:
    """Split "DESC_DIAG", "longCommonName" or "Código CIE-10" into words without accents."""
    return [fold_alnum(word) for word in WORD.findall(header)] if len(header) <= MAX_HEADER else []


def _without_language(header: str) -> tuple[str, str]:
    """Take the language off the end of a header: "name_es" is "name" in "es"."""
    *rest, last = _words(header) or [""]
    if last not in LANGUAGES:
        return "".join([*rest, last]), ""
    if rest and rest[-1] in ("en", "in"):  # descripción en castellano
        rest.pop()
    return "".join(rest), LANGUAGES[last]


def _is_alias(words: set[str]) -> bool:
    return bool(words & WORDS["alias"] or (words & WORDS["short"] and words & WORDS["name"]))


def _as_list(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
