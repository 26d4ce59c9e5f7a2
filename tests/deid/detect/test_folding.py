"""Nothing that a reader cannot see hides PHI: every rule matches the folded text alone."""

import unicodedata
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.detect.allow_list import load_allow_list
from spacy_bioclin.deid.detect.known_patient import find_known
from spacy_bioclin.deid.detect.rule_data import LANGS
from spacy_bioclin.deid.detect.rules import load_rules
from spacy_bioclin.text import fold_plain

from . import test_rules
from .test_rules import LOOK_ALIKES, parse

CHARS = [chr(code) for code in (*range(0x20, 0x10000), *range(0xE0000, 0xE0200))]
# Those with which a line of digits and letters is written again: fullwidth, mathematical bold.
RANDOM = st.builds(Random, st.integers(0, 2**32))
ZEROS = "\uff10\U0001d7ce\u0660"
LETTERS = {"A": "\uff21\U0001d400", "a": "\uff41\U0001d41a"}


@cache
def invisible() -> list[str]:
    """List the characters that are not seen, which takes seconds."""
    return [char for char in CHARS if fold_plain(char) == "" and not char.isspace()]


@cache
def of_category(name: str) -> list[str]:
    return [char for char in CHARS if unicodedata.category(char) == name]


@cache
def ways(char: str) -> list[str]:
    """List other characters that look the same as one, or nearly."""
    if char in " -":
        return of_category("Zs" if char == " " else "Pd")
    if char.isascii() and char.isdigit():
        return [chr(ord(zero) + int(char)) for zero in ZEROS]
    if char.isascii() and char.isalpha():
        first = "A" if char.isupper() else "a"
        return [chr(ord(letter) + ord(char) - ord(first)) for letter in LETTERS[first]]
    return [unicodedata.normalize("NFD", char)]


def disguise(text: str, rng: Random) -> tuple[str, list[int]]:
    """Write a text in another way, and list where each of its characters begins and the end."""
    share, pieces, starts = rng.choice((0.05, 0.2, 0.8)), [], [0]
    for char, following in zip(text, text[1:] + " ", strict=True):
        piece = rng.choice(ways(char)) if rng.random() < share else char
        while rng.random() < share / 2:
            more = invisible()[int(rng.random() * len(invisible()))]
            # A soft hyphen is shown at the end of a line.
            piece += "" if (more, following) == ("\u00ad", "\n") else more
        pieces.append(piece)
        starts.append(starts[-1] + len(piece))
    return "".join(pieces), starts


@cache
def examples() -> list[tuple[str, str]]:
    """List language and text of lines with PHI and of lines with what only looks like it."""
    written = [(lang, parse(line)[0]) for lang, line in test_rules.examples()]
    return written + [(la, line) for la in LANGS for line in LOOK_ALIKES[la].strip().splitlines()]


def test_the_characters_that_hid_phi_are_among_them() -> None:
    reported = "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufe0f"
    assert set(reported) <= set(invisible()) and len(invisible()) > 500
    assert "\u00a0" in of_category("Zs") and "\u2011" in of_category("Pd")


@settings(max_examples=2)
@given(RANDOM)
@pytest.mark.slow
def test_every_case_of_dev_is_found_in_disguise(rng: Random) -> None:
    from benchmarks.deid.phi_suite.generate import make_items, make_look_alikes

    for item in (*make_items("dev"), *make_look_alikes("dev")):
        check_disguise(item.lang, item.text, rng)


@settings(max_examples=2)
@given(RANDOM)
def test_phi_is_found_in_disguise(rng: Random) -> None:
    for lang, text in rng.sample(examples(), 60):
        check_disguise(lang, text, rng)


def check_disguise(lang: str, text: str, rng: Random) -> None:
    disguised, starts = disguise(text, rng)
    found = load_rules(lang).find(text)
    expected = [one._replace(start=starts[one.start], end=starts[one.end]) for one in found]
    assert load_rules(lang).find(disguised) == expected, (text, disguised)


@settings(max_examples=20)
@given(st.text(), RANDOM)
def test_rules_see_the_folded_text_alone(text: str, rng: Random) -> None:
    lang, case = rng.choice(examples())
    text += case
    find = load_rules(lang).find
    seen = [(fold_plain(text[one.start : one.end]), *one[2:]) for one in find(text)]
    folded = fold_plain(text)
    assert seen == [(folded[one.start : one.end], *one[2:]) for one in find(folded)]


KNOWN = {
    "id": "HC-20481",
    "birth_date": "1948-05-12",
    "names": ["García-López, Casilda"],
    "identifiers": ["12345678Z"],
    "phones": ["961 62 24 03"],
    "emails": ["casilda@correo.es"],
    "addresses": ["Calle Mayor, 5"],
}
NOTE = (
    "Acude Casilda García López (C. García, Garzia) el 12-05-1948, hc-20481, DNI 12.345.678-z.\n"
    "Tel. +34 961622403, CASILDA@correo.es, calle Mayor nº 5; nació el 12 de mayo de 1948."
)


@settings(max_examples=10)
@given(RANDOM)
def test_a_known_patient_is_found_in_disguise(rng: Random) -> None:
    found = find_known(NOTE, KNOWN, lang="es")
    labels = {"patient_name", "record_id", "date", "phone", "email", "street"}
    assert {one.label for one in found} == labels
    disguised, starts = disguise(NOTE, rng)
    expected = [one._replace(start=starts[one.start], end=starts[one.end]) for one in found]
    assert find_known(disguised, KNOWN, lang="es") == expected
    known = {
        key: value if key == "birth_date" else _disguise_values(value, rng)
        for key, value in KNOWN.items()
    }
    assert find_known(NOTE, known, lang="es") == found


def _disguise_values(value: str | list[str], rng: Random) -> str | list[str]:
    if isinstance(value, str):
        return disguise(value, rng)[0]
    return [disguise(one, rng)[0] for one in value]


@settings(max_examples=10)
@given(rng=RANDOM)
def test_the_allow_list_reads_through_a_disguise(rng: Random) -> None:
    for text, name, is_allowed in (
        ("Enfermedad de Parkinson", "Parkinson", True),
        ("Avisa al Dr. Parkinson", "Parkinson", False),
        ("Apellidos: Wilson", "Wilson", False),
    ):
        disguised, starts = disguise(text, rng)
        start = text.index(name)
        covers = load_allow_list("es").covers
        assert covers(disguised, starts[start], starts[start + len(name)]) == is_allowed
