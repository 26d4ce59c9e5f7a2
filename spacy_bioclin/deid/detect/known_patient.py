"""Find in a note the known data of its patient: names (known_names.py), birth date, identifiers,
phones, e-mail addresses and addresses, as `doc._.patient` holds them.

Everything but misspelt words, initials and ordinary words has the confidence EXACT: it is the
patient's own data, whatever its case, accents and separators.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from itertools import chain, takewhile
from typing import Annotated, Any

import phonenumbers
from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from ...dates import MONTH_NAMES, ROMANS
from ...settings import Settings, read_settings
from ...text import (
    MIN_CHARS,
    MIN_DIGITS,
    FoldedText,
    ValueSearch,
    fold_alnum,
    fold_plain,
    index_keys,
)
from ..spans import PhiSpan
from ..surrogates.wording import word_set
from .allow_list import load_allow_list
from .checks import REGIONS, parse_phone
from .known_names import DETECTOR, EXACT, Word, find_names, read_names, split_words

# A shorter id is a number of the database, which notes do not use for the patient.
MIN_ID_CHARS = 5
_ISO = re.compile(r"\d{4}-\d\d-\d\d\Z")
_SPANISH_ID = re.compile(r"\d{7,8}[A-Za-z]\Z")
_ADDRESS_GAP = re.compile(r"[\s,.ºª/:\-]{0,12}\Z")
_TOKEN = re.compile(r"[^\W_]+")
_GLUED_NUMBER = re.compile(r"(?<=[^\W\d_])\d+(?![^\W_])")
_BEFORE_ID = re.compile(r"(?<![^\W_])(?<!\d[.,/:])")
_AFTER_ID = re.compile(r"(?![^\W_]|[.,/:]\d)")
STREET_TYPES = word_set(
    "c cl calle av avda avenida plaza pza pl paseo po camino carretera ctra ronda travesia urb "
    "urbanizacion via street st road rd avenue ave drive dr lane ln square boulevard blvd"
)
# Optional words of an address, which are not enough to find it.
ADDRESS_FILL = STREET_TYPES | word_set("de del la las los el y n no num numero bis s")

Place = tuple[int, int]


def _at_least(n: int, what: str, counts: Callable[[str], bool]) -> AfterValidator:
    def check(text: str) -> str:
        if sum(map(counts, fold_alnum(text))) < n:
            raise ValueError(f"has fewer than {n} {what}, leave it out")
        return text

    return AfterValidator(check)


def _check_email(text: str) -> str:
    if "@" not in text.strip("@ "):
        raise ValueError("is not an e-mail address, want NAME@DOMAIN")
    return text


def _read_date(value: Any) -> date | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str) and _ISO.match(value.strip()):
        with suppress(ValueError):
            return date.fromisoformat(value.strip())
    raise ValueError("want a str, YYYY-MM-DD")


class Patient(Settings):
    """The known data of a patient, as in `doc._.patient`. None and blank strings are left out.

    birth_date (str): YYYY-MM-DD.
    """

    id: str | None = None
    birth_date: Annotated[date | None, BeforeValidator(_read_date)] = None
    names: list[Annotated[str, _at_least(2, "letters", str.isalpha)]] = Field(default_factory=list)
    identifiers: list[Annotated[str, _at_least(MIN_CHARS, "letters or digits", str.isalnum)]] = (
        Field(default_factory=list)
    )
    phones: list[Annotated[str, _at_least(6, "digits", str.isdigit)]] = Field(default_factory=list)
    emails: list[Annotated[str, AfterValidator(_check_email)]] = Field(default_factory=list)
    addresses: list[Annotated[str, _at_least(MIN_CHARS, "letters or digits", str.isalnum)]] = Field(
        default_factory=list
    )

    @field_validator("names", "identifiers", "phones", "emails", "addresses", mode="before")
    @classmethod
    def _drop_blanks(cls, values: Any) -> Any:
        if not isinstance(values, list | tuple | None):
            return values
        folded = [fold_plain(v) if isinstance(v, str) else v for v in values or ()]
        return [v for v in folded if v is not None and (not isinstance(v, str) or v.strip())]


def find_known(text: str, patient: Mapping[str, Any], *, lang: str) -> list[PhiSpan]:
    """Find the known data of a patient.

    patient (Mapping[str, Any]): See `Patient`.
    lang (str): Language of the note: it decides which ordinary words are not names, and the country
        of phones without a prefix.
    RETURNS (list[PhiSpan]): Sorted, with PHI types as labels. Spans of two labels may overlap.
    RAISES (BioclinError): A mistake in the data. The message names the key, never the value.
    """
    known = read_settings(Patient, patient, where="patient", private=True)
    folded = FoldedText(text)
    spans = _find_folded(FoldedText(folded.plain), known, lang)
    return sorted(
        span._replace(start=start, end=end)
        for span in spans
        for start, end in [folded.place(span.start, span.end)]
    )


def _find_folded(folded: FoldedText, known: Patient, lang: str) -> list[PhiSpan]:
    """Find the known data in a text that is folded already."""
    text, allow_list = folded.text, load_allow_list(lang)
    spans = find_names(text, read_names(known.names, allow_list), allow_list) if known.names else []
    ids = list(known.identifiers)
    if known.id is not None and len(fold_alnum(known.id)) >= MIN_ID_CHARS:
        ids.append(fold_plain(known.id))
    places = {
        "record_id": _find_ids(folded, ids),
        "phone": _find_phones(folded, known.phones, lang),
        "email": _find_values(folded, known.emails),
        "street": chain(
            _find_values(folded, known.addresses),
            _find_addresses(text, known.addresses),
        ),
        "date": _find_date(text, known.birth_date),
    }
    for label, found in places.items():
        spans += [PhiSpan(*place, label, EXACT, DETECTOR) for place in _outermost(found)]
    return spans


def _find_values(folded: FoldedText, values: Iterable[str]) -> Iterator[Place]:
    search = ValueSearch(("", value) for value in values)
    return ((start, end) for start, end, _ in search.find(folded))


def _find_ids(folded: FoldedText, values: Iterable[str]) -> Iterator[Place]:
    """Find identifiers, also without leading zeros or check letter, or after letters ("NHC36")."""
    forms: dict[str, str] = {}
    for value in values:
        forms |= {form: fold_alnum(form) for form in (value.strip(), value.strip().lstrip("0"))}
        if _SPANISH_ID.match(fold_alnum(value)):
            forms[fold_alnum(value)[:-1]] = fold_alnum(value)[:-1]
    yield from _find_values(folded, forms)
    numbers = {key for key in forms.values() if key.isdigit() and len(key) >= MIN_DIGITS}
    for number in _GLUED_NUMBER.finditer(folded.text):
        if number[0] in numbers:
            yield number.span()
    # Too short to be broken: as it is written, between other characters.
    short: dict[str, list[str]] = {}
    for form, key in forms.items():
        if key.isdigit() and MIN_CHARS <= len(key) < MIN_DIGITS:
            short.setdefault(key, []).append(form)
    for start, _, key in folded.find_keys(index_keys(short)):
        for form in short[key]:
            at = start - next((i for i, char in enumerate(form) if char.isalnum()), 0)
            if folded.text.startswith(form, max(0, at)) and at >= 0:
                end = at + len(form)
                if _BEFORE_ID.match(folded.text, at) and _AFTER_ID.match(folded.text, end):
                    yield at, end


def _find_phones(folded: FoldedText, values: Iterable[str], lang: str) -> Iterator[Place]:
    """Find phones with or without the prefix of the country."""
    forms: dict[str, None] = {}
    for value in values:
        forms["".join(filter(str.isdigit, value))] = None
        number = parse_phone(value, REGIONS[lang])
        if number is not None:
            national = phonenumbers.national_significant_number(number)
            prefix = str(number.country_code)
            written = (national, prefix + national, f"00{prefix}{national}", f"0{national}")
            # +44 (0) 20 ...
            forms |= dict.fromkeys((*written, f"{prefix}0{national}"))
    for start, end in _find_values(folded, forms):
        plus = start > 0 and folded.text[start - 1] == "+"
        yield start - plus, end


def _find_date(text: str, day: date | None) -> Iterator[Place]:
    """Find a date in any written form with day, month and year, in figures in either order."""
    if day is None:
        return
    names = "|".join(name for name, number in MONTH_NAMES.items() if number == day.month)
    names = f"(?:{names})"
    months = rf"(?:0?{day.month}|{ROMANS[day.month - 1]}|{names})"
    days = rf"0?{day.day}(?:st|nd|rd|th|\s?[ºª])?"
    years = rf"'?(?:{day.year:04d}|{day.year % 100:02d})"
    sep = r"(?:\s{0,3}[/.\-,]{1,2}\s{0,3}|\s{1,3}(?:(?:del?|of|the)\s{1,3}){0,2})"
    pattern = re.compile(
        rf"(?<![^\W_])(?<!\d[/.\-])(?:{days}{sep}{months}\.?{sep}(?:ano\s{{1,3}})?{years}"
        rf"|{months}\.?{sep}{days}{sep}{years}|{day.year:04d}{sep}{months}{sep}{days}"
        rf"|{day.year:04d}{day.month:02d}{day.day:02d}|{day.day:02d}{day.month:02d}{day.year:04d}"
        rf"|{day.day:02d}{names}{day.year:04d})(?:(?=T\d)|(?![^\W_]|[/.\-]\d))",
        re.IGNORECASE,
    )
    yield from (match.span() for match in pattern.finditer(text))


def _find_addresses(text: str, values: Iterable[str]) -> Iterator[Place]:
    """Find addresses: all words of the street and as much as follows of what is known.

    A street of one word needs its type beside it or its number after it.
    """
    tokens = split_words(text, _TOKEN)
    places: dict[str, list[int]] = {}
    for i, token in enumerate(tokens):
        places.setdefault(token.folded, []).append(i)
    for value in values:
        words = [word.folded for word in split_words(value, _TOKEN)]
        words = [word for word in words if word not in ADDRESS_FILL]
        number = list(takewhile(str.isdigit, words))  # "12 High Street"
        words = words[len(number) :]
        first_part = (word.folded for word in split_words(value.partition(",")[0], _TOKEN))
        n_street = len(list(takewhile(str.isalpha, filter(words.__contains__, first_part))))
        for i in places.get(words[0], ()) if n_street else ():
            n, last = _match_words(text, tokens, i, words)
            left, right = i, last
            while left and i - left < 3 and tokens[left - 1].folded in (*ADDRESS_FILL, *number):
                left -= 1
            if n == n_street and last + 1 < len(tokens):
                right += tokens[last + 1].folded in STREET_TYPES
            typed = any(token.folded in STREET_TYPES for token in tokens[left : right + 1])
            if n >= n_street and (typed or n > 1):
                yield tokens[left if typed else i].start, tokens[right].end


def _match_words(text: str, tokens: list[Word], at: int, words: list[str]) -> tuple[int, int]:
    """Match words in order from a token on, with optional words between.

    RETURNS (tuple[int, int]): How many words match, and the last token of them.
    """
    n, last, i = 0, at, at
    while n < len(words) and i < len(tokens) and i - last < 4:
        if i > at and not _ADDRESS_GAP.match(text[tokens[i - 1].end : tokens[i].start]):
            break
        if tokens[i].folded == words[n]:
            n, last = n + 1, i
        elif tokens[i].folded not in ADDRESS_FILL:
            break
        i += 1
    return n, last


def _outermost(places: Iterable[Place]) -> Iterator[Place]:
    """Sort places, and leave out those within another one."""
    furthest = -1
    for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
        if end > furthest:
            furthest = end
            yield start, end
