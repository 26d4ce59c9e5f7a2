"""Known strings are found however they are written, and nothing else is."""

import pytest

from spacy_bioclin.text import find_leaks, find_values, fold_alnum


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("García López", "la Sra. GARCIA LOPEZ acude"),
        ("García López", "García-López"),
        ("García López", "el apellido Garc\nía   López"),
        ("García", "gonza\u0301lez garci\u0301a"),
        ("12.345.678-Z", "DNI 12345678z"),
        ("913908121", "tel. 913 90 81-21."),
        ("ana@hospital.es", "ANA@HOSPITAL.ES"),
        ("Ana", "Ana acude"),
    ],
)
def test_found(value: str, text: str) -> None:
    ((start, end, kind),) = find_values([("NAME", value)], text)
    assert kind == "NAME"
    assert fold_alnum(text[start:end]) == fold_alnum(value)
    assert find_leaks([("NAME", value)], text) == ["NAME"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Ana", "semana sana An a"),  # inside words, and a short word is not put together
        ("12345", "912345 y 123456"),
        ("2012", "en 2012"),  # a year tells nothing
        ("M", "M"),
        ("García López", "García y López"),
    ],
)
def test_not_found(value: str, text: str) -> None:
    assert find_leaks([("NAME", value)], text) == []


def test_the_last_letter_keeps_its_accent() -> None:
    ((start, end, _),) = find_values([("NAME", "José")], "don Jose\u0301.")
    assert (start, end) == (4, 9)


def test_kinds_come_once_and_sorted() -> None:
    values = [("PHONE", "913908121"), ("NAME", "García"), ("NAME", "López")]
    assert find_leaks(values, "García López 913908121 García") == ["NAME", "PHONE"]
