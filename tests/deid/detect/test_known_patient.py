"""What is known about a patient is found however it is written; what only looks like it is not."""

from functools import partial
from typing import Any

import pytest

from spacy_bioclin.deid.detect.known_patient import find_known
from spacy_bioclin.errors import BioclinError
from tests.hostile.growth.measure import is_linear

JUAN = {"names": ["Juan García López"]}
FORMS = """03/05/1969
3-5-69
1969-05-03
3.5.1969
03051969
19690503
5/3/1969
3/V/1969
3 de mayo de 1969
3 de Mayo del 69
3-may-1969
03 MAYO 1969
May 3, 1969
3rd of May 1969
1969-05-03T00:00
3 mayo, 1969
03 / 05 / 1969
03MAY1969"""


def check(cases: list[tuple[str, list[str]]], **patient: Any) -> None:
    """Compare what is found of a patient in each text with what is wanted."""
    wrong = [(text, shown) for text, wanted in cases if (shown := found(text, **patient)) != wanted]
    assert not wrong, wrong


def found(text: str, lang: str = "es", **patient: Any) -> list[str]:
    return [text[span.start : span.end] for span in find_known(text, patient, lang=lang)]


def test_names() -> None:
    cases = [
        ("Acude Juan García López.", ["Juan García López"]),
        ("LOPEZ GARCIA, JUAN ingresa", ["LOPEZ GARCIA, JUAN"]),
        ("garcia lopez", ["garcia lopez"]),
        ("Juan\nGarcía", ["Juan\nGarcía"]),
        ("el sr. Gar-\ncía acude", ["Gar-\ncía"]),
        ("García-López", ["García-López"]),
        ("GARCIA_LOPEZ_JUAN.pdf", ["GARCIA_LOPEZ_JUAN"]),
        ("J. García refiere", ["J. García"]),
        ("García, J. refiere", ["García, J."]),
        ("García L., J. refiere", ["García L., J."]),
        ("Dice García. Juan asiente", ["García", "Juan"]),
        ("JGL acude", ["JGL"]),
        ("J.G.L. acude", ["J.G.L."]),
        ("J. G. L. acude", ["J. G. L."]),
        ("el paciente Garcia\u0301", ["Garcia\u0301"]),
        ("Juan de García y López", ["Juan de García y López"]),
        ("Gacría acude; Garsía, Lopes", ["Gacría", "Garsía, Lopes"]),
    ]
    check(cases, **JUAN)
    initials = [case for case in cases if case[0].startswith("J")]
    check(initials, names=["García López, Juan"])


def test_no_names() -> None:
    texts = [
        "Gracias por remitirnos al paciente.",  # one edit from García, an ordinary word
        "Presenta juanete.",
        "JG acude. TAC sin cambios.",
        "garsia lopes",  # misspelt and in lower case
        "G. presente. L. aguda. J.",
        "Hospital de Navarra",
        "",
    ]
    check([(text, []) for text in texts], **JUAN)


def test_names_that_are_ordinary_words() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("Dolores abdominales. Rosa acude.", []),
        ("tumoración de color rosa y dolores", []),
        ("acude Rosa por dolor", ["Rosa"]),
        ("Rosa Blanco acude", ["Rosa Blanco"]),
        ("Sra. Blanco: acude", ["Blanco"]),
        ("Nombre: Rosa", ["Rosa"]),
        ("Ingresa.\nBlanco de ojos", []),
    ]
    check(cases, names=["Rosa Blanco Dolores"])


def test_ordinary_words_are_of_the_language() -> None:
    text = "seen in May and may return. Grace said"
    assert found(text, "en", names=["Grace May Zuber"]) == ["May"]
    assert found("Seen. May will", "en", names=["Grace May Will"]) == []
    assert found("grace may zuber", "en", names=["Grace May Will"]) == ["grace may"]
    assert found("Grace May said", "en", names=["Grace May Zuber"]) == ["Grace May"]


def test_a_fuzzy_match_is_no_eponym() -> None:
    names = ["Luis Parkinsen Crahn"]
    assert found("enfermedad de Parkinson", names=names) == []
    assert found("con Parkinson y Crohn", names=names) == []
    assert found("acude Luis Parkinson", names=names) == ["Luis Parkinson"]
    assert found("Dr. Parkinson", names=names) == ["Parkinson"]


def test_confidence_says_how_sure() -> None:
    patient = {"names": ["Rosa García Fernández"]}
    spans = find_known("García vino, vino Rosa, vino Garcia, Ferandes. RGF", patient, lang="es")
    assert [span.confidence for span in spans] == [0.99, 0.9, 0.99, 0.7]
    spans = find_known("vino Ferández", patient, lang="es")
    assert [(span.confidence, span.detector) for span in spans] == [(0.8, "known_patient")]


def test_particles_in_front_belong_to_the_name() -> None:
    names = ["Eva de la Cruz Zuber"]
    assert found("De la Cruz Zuber acude. Del Zuber", names=names) == ["De la Cruz Zuber", "Zuber"]


def test_acronyms_are_no_initials() -> None:
    assert found("Se hace TAC", names=["Teresa Alonso Castro"]) == []
    assert found("el T.A.C.O.", names=["Teresa Alonso Castro"]) == []
    assert found("Se hace TAC a T.A.C.", names=["Teresa Alonso Castro"]) == ["T.A.C."]


def test_birth_date() -> None:
    for form in [*FORMS.splitlines(), "3\nde mayo de 1969"]:
        spans = find_known(f"nacido: {form}, varón", {"birth_date": "1969-05-03"}, lang="es")
        shown = [(f"nacido: {form}"[s.start : s.end], s.label) for s in spans]
        assert shown == [(form.removesuffix("T00:00"), "date")], form


def test_other_dates() -> None:
    forms = ["13/05/1969", "3/05/19690", "4/5/69", "3/5/1969/2", "3 de mayo", "3.5"]
    forms += ["1/3/5/1969"]
    check([(f"el {form} vino", []) for form in forms], birth_date="1969-05-03")


def test_identifiers() -> None:
    cases: list[tuple[str, str, list[str]]] = [
        ("12345678Z", "DNI 12.345.678-Z", ["12.345.678-Z"]),
        ("12345678Z", "dni 12 345 678 z.", ["12 345 678 z"]),
        ("12.345.678-Z", "DNI 12345678", ["12345678"]),
        ("368503", "NHC368503, nhc: 368 503", ["368503"]),
        ("0368503", "NHC: 368503", ["368503"]),
        ("36850342", "36 850-342 y 36850\n342", ["36 850-342", "36850\n342"]),
        ("ES-77/AB", "código es77ab", ["es77ab"]),
        ("4512", "NHC 4512, no 14512 ni 4512,3", ["4512"]),
        ("368503", "1368503 3685031 36850", []),
    ]
    for value, text, wanted in cases:
        check([(text, wanted)], identifiers=[value])


def test_the_id_counts_if_it_is_long_enough() -> None:
    assert found("NHC 368503", id="368503") == ["368503"]
    assert found("17 mg", id="17") == []


def test_phones() -> None:
    cases: list[tuple[str, str, list[str]]] = [
        ("600123456", "tel. 600 12 34 56", ["600 12 34 56"]),
        ("600123456", "+34 600-123-456", ["+34 600-123-456"]),
        ("+34 600 123 456", "600.123.456", ["600.123.456"]),
        ("600123456", "0034600123456", ["0034600123456"]),
        ("600123456", "600123457", []),
    ]
    for value, text, wanted in cases:
        check([(text, wanted)], phones=[value])


def test_emails() -> None:
    assert found("a Ana.Gil@Mail.es o ana.gil@mail.\nes", emails=["ana.gil@mail.es"]) == [
        "Ana.Gil@Mail.es",
        "ana.gil@mail.\nes",
    ]
    assert found("ana.gil@mail.com", emails=["ana.gil@mail.es"]) == []


def test_addresses() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("vive en C/ Mayor, 5, 3º B", ["C/ Mayor, 5, 3º B"]),
        ("CALLE MAYOR Nº 5 de 28013 MADRID", ["CALLE MAYOR Nº 5"]),
        ("CALLE MAYOR Nº 5, 3º B - 28013 MADRID", ["CALLE MAYOR Nº 5, 3º B - 28013 MADRID"]),
        ("calle de la\nMayor", ["calle de la\nMayor"]),
        ("Mayor 5", ["Mayor 5"]),
        ("dolor Mayor que ayer. Madrid", []),
    ]
    check(cases, addresses=["Calle Mayor nº 5, 3º B, 28013 Madrid"])


def test_addresses_with_the_number_first() -> None:
    address = ["12 High Street, Springfield"]
    text = "at 12 High St., Springfield"
    assert found(text, "en", addresses=address) == [text.removeprefix("at ")]
    assert found("lives in High Street", "en", addresses=address) == ["High Street"]
    assert found("a High fever", "en", addresses=address) == []


def test_unreadable_data() -> None:
    cases: list[tuple[Any, str]] = [
        ({"name": ["Zacarías"]}, "name"),
        ({"names": "Zacarías"}, "names"),
        ({"names": ["Zacarías", 7]}, r"names\[1\]"),
        ({"names": ["777"]}, r"names\[0\]"),
        ({"birth_date": "Zacarías"}, "birth_date"),
        ({"birth_date": "1969-02-30"}, "birth_date"),
        ({"birth_date": 1969}, "birth_date"),
        ({"identifiers": ["7"]}, r"identifiers\[0\]"),
        ({"phones": ["777"]}, r"phones\[0\]"),
        ({"emails": ["Zacarías"]}, r"emails\[0\]"),
        ({"addresses": [None, "7"]}, r"addresses\["),
        ({"id": 777}, "id"),
        (["Zacarías"], "patient: want a table"),
    ]
    for patient, key in cases:
        with pytest.raises(BioclinError, match=key) as raised:
            find_known("text", patient, lang="es")
        assert not any(value in str(raised.value) for value in ("Zacarías", "777", "02-30"))


def test_what_is_left_out_is_not_looked_for() -> None:
    empty = {"id": None, "names": [None, " "], "birth_date": "", "phones": [], "emails": None}
    assert find_known("Juan, 3/5/1969", empty, lang="es") == []


def test_time_is_linear() -> None:
    patient = {
        **JUAN,
        "birth_date": "1969-05-03",
        "identifiers": ["12121212Z", "4512"],
        "phones": ["600123456"],
        "addresses": ["Calle Mayor 5 5 5, Madrid"],
    }
    pieces = ["García ", "Garsia, ", "de ", "J. ", "3 de mayo de ", "12", "Mayor 5 ", " ", "Gar-\n"]
    find = partial(find_known, patient=patient, lang="es")
    wrong = [piece for piece in (*pieces, "1-") if not is_linear(find, piece, 8_000)]
    assert not wrong, wrong
    assert is_linear(lambda text: find("García " + text), "de ", 8_000)
