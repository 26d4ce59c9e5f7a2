"""Find in a note what is known about its patient: names (known_names.py), birth date, identifiers,
phones, e-mail addresses and addresses, as `doc._.patient` holds them.

All but misspelt words, initials and ordinary words has confidence EXACT: what stands there is the
patient's own data, whatever its case, accents and separators.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import takewhile
from typing import Any, NamedTuple

import phonenumbers

from ...dates import MONTH_NAMES, ROMANS
from ...errors import BioclinError
from ...text import MIN_CHARS, MIN_DIGITS, FoldedText, fold_alnum
from ..spans import PhiSpan
from .allow_list import load_allow_list
from .known_names import DETECTOR, EXACT, find_names, read_names

LISTS = ("names", "identifiers", "phones", "emails", "addresses")
KEYS = ("id", "birth_date", *LISTS)
MIN_PHONE_DIGITS = 6
# An id that is shorter is a number of the data base, not what a note calls the patient by.
MIN_ID_CHARS = 5
REGIONS = {"es": "ES", "en": "US"}
_ISO = re.compile(r"\d{4}-\d\d-\d\d\Z")
_SPANISH_ID = re.compile(r"\d{7,8}[A-Za-z]\Z")
_ADDRESS_GAP = re.compile(r"[\s,.ºª°/:\-–]{0,12}\Z")
_TOKEN = re.compile(r"(?:[^\W_][\u0300-\u036f]*)+")


def _words(text: str) -> list[str]:
    return [fold_alnum(match.group()) for match in _TOKEN.finditer(text)]


STREET_TYPES = frozenset(
    _words(
        "c cl calle av avda avenida plaza pza pl paseo po camino carretera ctra ronda travesia urb "
        "urbanizacion via street st road rd avenue ave drive dr lane ln square boulevard blvd"
    )
)
# Words of an address that may stand or not, and are no reason to find it.
ADDRESS_FILL = STREET_TYPES.union(_words("de del la las los el y n no num numero bis s"))


class Known(NamedTuple):
    """A patient's data, checked: as in `doc._.patient`, with nothing left out."""

    id: str
    birth_date: date | None
    names: list[str]
    identifiers: list[str]
    phones: list[str]
    emails: list[str]
    addresses: list[str]


def find_known(text: str, patient: Mapping[str, Any], *, lang: str) -> list[PhiSpan]:
    """Find what is known about a patient.

    patient (Mapping[str, Any]): Any of "id" (str), "birth_date" (str, YYYY-MM-DD), and lists of str
        under "names", "identifiers", "phones", "emails", "addresses". None and blank strings count
        as left out.
    lang (str): Of the note: whose ordinary words are no names, how phones without a prefix read.
    RETURNS (list[PhiSpan]): Sorted; label = PHI type. Spans of two labels may overlap.
    RAISES (BioclinError): The data cannot be read. The message names the key, never the value.
    """
    known = read_patient(patient)
    if not any(known):
        return []
    allow_list = load_allow_list(lang)
    spans = []
    if known.names:
        spans += find_names(text, read_names(known.names, allow_list), allow_list)
    folded = FoldedText(text)
    ids = [
        *known.identifiers,
        *([known.id] if len(fold_alnum(known.id)) >= MIN_ID_CHARS else []),
    ]
    found = [("record_id", place) for place in _find_ids(folded, ids)]
    found += [("phone", place) for place in _find_phones(folded, known.phones, lang)]
    found += [("email", place) for value in known.emails for place in folded.find(value)]
    found += [("street", place) for value in known.addresses for place in folded.find(value)]
    found += [("street", place) for place in _find_addresses(text, known.addresses)]
    if known.birth_date is not None:
        found += [("date", place) for place in _find_date(text, known.birth_date)]
    spans += [PhiSpan(*place, label, EXACT, DETECTOR) for label, place in _outermost(found)]
    return sorted(spans)


def read_patient(patient: Mapping[str, Any]) -> Known:
    """Check a patient's data.

    RAISES (BioclinError): An unknown key, a value of the wrong type, a date that is none, or a
        string that says too little to be looked for.
    """
    if not isinstance(patient, Mapping):
        raise BioclinError(f"patient: want a dict, not {type(patient).__name__}")
    for key in patient:
        if key not in KEYS:
            raise BioclinError(f"patient: unknown key {key!r}, want some of {', '.join(KEYS)}")
    lists = {key: _strings(patient.get(key), key) for key in LISTS}
    for key, least, what in (
        ("names", 2, "letters"),
        ("identifiers", MIN_CHARS, "letters or digits"),
        ("phones", MIN_PHONE_DIGITS, "digits"),
        ("addresses", MIN_CHARS, "letters or digits"),
    ):
        for i, value in enumerate(lists[key]):
            wanted = {"letters": str.isalpha, "digits": str.isdigit}.get(what, str.isalnum)
            if sum(map(wanted, fold_alnum(value))) < least:
                raise BioclinError(
                    f"patient: {key}[{i}] has fewer than {least} {what}, leave it out"
                )
    for i, value in enumerate(lists["emails"]):
        if "@" not in value.strip("@ "):
            raise BioclinError(f"patient: emails[{i}] is no e-mail address, want NAME@DOMAIN")
    identity = patient.get("id")
    if not isinstance(identity, str | None):
        raise BioclinError(f"patient: id is of type {type(identity).__name__}, want str")
    return Known(identity or "", _date(patient.get("birth_date")), **lists)


def _strings(values: Any, key: str) -> list[str]:
    if values is None:
        return []
    if not isinstance(values, list | tuple):
        raise BioclinError(f"patient: {key} is of type {type(values).__name__}, want list of str")
    for i, value in enumerate(values):
        if not isinstance(value, str | None):
            raise BioclinError(f"patient: {key}[{i}] is of type {type(value).__name__}, want str")
    return [value for value in values if value is not None and value.strip()]


def _date(value: Any) -> date | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise BioclinError(f"patient: birth_date is of type {type(value).__name__}, want str")
    try:
        if _ISO.match(value.strip()):
            return date.fromisoformat(value.strip())
    except ValueError:
        pass
    raise BioclinError("patient: birth_date is no date, want YYYY-MM-DD")


def _find_ids(folded: FoldedText, values: Iterable[str]) -> Iterator[tuple[int, int]]:
    """YIELDS (tuple[int, int]): Where identifiers stand: also without leading zeros, without the
    check letter of a Spanish one, or right after letters ("NHC368503")."""
    for value in values:
        forms = {value.strip(), value.strip().lstrip("0")}
        if _SPANISH_ID.match(fold_alnum(value)):
            forms.add(fold_alnum(value)[:-1])
        for form in forms:
            key = fold_alnum(form)
            if len(key) < (MIN_DIGITS if key.isdigit() else MIN_CHARS):
                # Too short to be broken: as it is written, between other characters.
                pattern = re.compile(
                    rf"(?<![^\W_])(?<!\d[.,/:]){re.escape(form)}(?![^\W_]|[.,/:]\d)"
                )
                if len(key) >= MIN_CHARS:
                    yield from (match.span() for match in pattern.finditer(folded.text))
                continue
            yield from folded.find(form)
            if key.isdigit():
                pattern = re.compile(rf"(?<=[^\W\d_]){key}(?![^\W_])")
                yield from (match.span() for match in pattern.finditer(folded.text))


def _find_phones(folded: FoldedText, values: Iterable[str], lang: str) -> Iterator[tuple[int, int]]:
    """YIELDS (tuple[int, int]): Where phones stand, with the prefix of the country or without."""
    for value in values:
        forms = {"".join(filter(str.isdigit, value))}
        try:
            number = phonenumbers.parse(value, REGIONS.get(lang, "ES"))
        except phonenumbers.NumberParseException:
            number = None
        if number is not None:
            national = phonenumbers.national_significant_number(number)
            prefix = str(number.country_code)
            forms |= {national, prefix + national, f"00{prefix}{national}", f"0{national}"}
            forms.add(f"{prefix}0{national}")  # +44 (0) 20 ...
        for form in forms:
            for start, end in folded.find(form):
                plus = start > 0 and folded.text[start - 1] == "+"
                yield start - plus, end


def _find_date(text: str, day: date) -> Iterator[tuple[int, int]]:
    """YIELDS (tuple[int, int]): Where a date stands, in any written form with day, month and year;
    in figures, day and month may come in either order."""
    names = "|".join(name for name, number in MONTH_NAMES.items() if number == day.month)
    names = f"(?:{names})"
    months = rf"(?:0?{day.month}|{ROMANS[day.month - 1]}|{names})"
    days = rf"0?{day.day}(?:st|nd|rd|th|\s?[ºª°])?"
    years = rf"['’]?(?:{day.year:04d}|{day.year % 100:02d})"
    sep = r"(?:\s{0,3}[/.\-–,]{1,2}\s{0,3}|\s{1,3}(?:(?:del?|of|the)\s{1,3}){0,2})"
    pattern = re.compile(
        rf"(?<![^\W_])(?<!\d[/.\-])(?:{days}{sep}{months}\.?{sep}(?:a[ñn]o\s{{1,3}})?{years}"
        rf"|{months}\.?{sep}{days}{sep}{years}|{day.year:04d}{sep}{months}{sep}{days}"
        rf"|{day.year:04d}{day.month:02d}{day.day:02d}|{day.day:02d}{day.month:02d}{day.year:04d}"
        rf"|{day.day:02d}{names}{day.year:04d})(?:(?=T\d)|(?![^\W_]|[/.\-]\d))",
        re.IGNORECASE,
    )
    yield from (match.span() for match in pattern.finditer(text))


def _find_addresses(text: str, values: Iterable[str]) -> Iterator[tuple[int, int]]:
    """YIELDS (tuple[int, int]): Where addresses stand, in whole or in part: all words of the street
    and as much as follows of what is known. A street of one word needs its type beside it or its
    number after it."""
    tokens = [
        (match.start(), match.end(), fold_alnum(match.group())) for match in _TOKEN.finditer(text)
    ]
    places: dict[str, list[int]] = {}
    for i, token in enumerate(tokens):
        places.setdefault(token[2], []).append(i)
    for value in values:
        words = [word for word in _words(value) if word not in ADDRESS_FILL]
        number = list(takewhile(str.isdigit, words))  # "12 High Street"
        words = words[len(number) :]
        first_part = [word for word in _words(value.partition(",")[0]) if word in words]
        n_street = len(list(takewhile(str.isalpha, first_part)))
        for i in places.get(words[0], ()) if n_street else ():
            n, last = _match_words(text, tokens, i, words)
            left, right = i, last
            while left and i - left < 3 and tokens[left - 1][2] in (*ADDRESS_FILL, *number):
                left -= 1
            if n == n_street and last + 1 < len(tokens) and tokens[last + 1][2] in STREET_TYPES:
                right += 1
            typed = any(token[2] in STREET_TYPES for token in tokens[left : right + 1])
            if n >= n_street and (typed or n > 1):
                yield tokens[left if typed else i][0], tokens[right][1]


def _match_words(
    text: str, tokens: list[tuple[int, int, str]], at: int, words: list[str]
) -> tuple[int, int]:
    """RETURNS (tuple[int, int]): How many of the words stand in order from a token on, with words
    that may be left out between; the last token of them."""
    n, last, i = 0, at, at
    while n < len(words) and i < len(tokens) and i - last < 4:
        if i > at and not _ADDRESS_GAP.match(text[tokens[i - 1][1] : tokens[i][0]]):
            break
        if tokens[i][2] == words[n]:
            n, last = n + 1, i
        elif tokens[i][2] not in ADDRESS_FILL:
            break
        i += 1
    return n, last


def _outermost(found: list[tuple[str, tuple[int, int]]]) -> Iterator[tuple[str, tuple[int, int]]]:
    """YIELDS (tuple): Sorted; what lies within another of its label is left out."""
    ends: dict[str, int] = {}
    for label, (start, end) in sorted(found, key=lambda each: (each[1][0], -each[1][1])):
        if end > ends.get(label, -1):
            ends[label] = end
            yield label, (start, end)
