"""Streets and institutions keep the words that say what they are."""

import re
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.addresses import make_address
from spacy_bioclin.deid.surrogates.context import SurrogateContext
from spacy_bioclin.deid.surrogates.places import load_gazetteer, load_places, make_place
from spacy_bioclin.text import fold_alnum

KEY = b"0123456789abcdef"
SECRETS = st.builds(Secret, st.just(KEY), st.text(max_size=5))


def es(secret: Secret) -> SurrogateContext:
    return SurrogateContext(secret, "es")


PATIENTS = [Secret(KEY, patient) for patient in "abc"]
NAME = r"[\w ]+"


def test_streets_keep_their_shape() -> None:
    cases = [
        ("es", "C/ Ramón y Cajal, nº 3, 2º B", rf"C/ {NAME}, nº [1-9], [1-9]º [A-H]"),
        ("es", "Avda. Valdecilla s/n", rf"Avda\. {NAME} s/n"),
        ("es", "Av. Galaxia 16, esc. 2, 2ºb", rf"Av\. {NAME} [1-9]\d, esc\. [1-9], [1-9]º[a-h]"),
        ("es", "Pº de la Fuente 261", rf"Pº de {NAME} [1-9]\d\d"),
        ("es", "CALLE SERRANO 5, 4D", r"CALLE [A-ZÁÉÍÓÚÑÜ ]+ [1-9], [1-9][A-H]"),
        ("es", "Arturo Prat 3755", rf"{NAME} [1-9]\d{{3}}"),
        ("en", "123 Main Street, Apt 4B", rf"[1-9]\d\d {NAME} Street, Apt [1-9][A-H]"),
        ("en", "4500 N. Lamar Blvd Suite 12", rf"[1-9]\d{{3}} N\. {NAME} Blvd Suite [1-9]\d"),
        ("en", "PO Box 1234", r"PO Box [1-9]\d{3}"),
    ]
    for (lang, value, shape), secret in product(cases, PATIENTS):
        surrogate = make_address(value, SurrogateContext(secret, lang), kind="street")
        assert surrogate is not None and re.fullmatch(shape, surrogate), surrogate
        old = {word.lower() for word in re.findall(r"\w{5,}", value)} - {"street", "calle", "suite"}
        assert not old & {word.lower() for word in re.findall(r"\w+", surrogate)}


def test_one_street_in_two_forms() -> None:
    for secret in PATIENTS:
        one = make_address("C/ Ramón y Cajal, 3", es(secret), kind="street") or ""
        two = make_address("CALLE RAMON Y CAJAL 3", es(secret), kind="street") or ""
        assert fold_alnum(one.removeprefix("C/ ")) == fold_alnum(two.removeprefix("CALLE "))


def test_institutions_keep_generic_words() -> None:
    cases = [
        ("es", "hospital", "Hospital General Gregorio Marañón", "Hospital General {}"),
        ("es", "hospital", "Hospital Carlos Haya de Málaga", "Hospital {} de {}"),
        ("es", "hospital", "Hospital Clínico Universitario", "Hospital {}"),
        ("es", "hospital", 'Hospital "12 de Octubre"', 'Hospital "{}"'),
        ("es", "hospital", "Hospital del Mar", "Hospital de {}"),
        ("es", "hospital", "H. U. La Princesa", "H. U. {}"),
        ("es", "hospital", "HOSPITAL LA PAZ, PLANTA 11", "HOSPITAL {}, PLANTA {}"),
        ("es", "health_centre", "Centro de Salud de Chantrea", "Centro de Salud de {}"),
        ("es", "organization", "Universidad de Valencia", "Universidad de {}"),
        ("es", "organization", "Instituto de Medicina (IOBA)", "Instituto de Medicina ({})"),
        ("en", "hospital", "Mount Sinai Medical Center", "{} Medical Center"),
        ("en", "hospital", "St. Mary's Hospital", "{} Hospital"),
        ("en", "hospital", "VA Hospital", "{} Hospital"),
        ("en", "organization", "Smith & Sons Inc.", "{} Inc."),
    ]
    for (lang, kind, value, shape), secret in product(cases, PATIENTS):
        pattern = re.escape(shape).replace(r"\{\}", rf"({NAME})")
        old = re.fullmatch(pattern, value)
        surrogate = make_address(value, SurrogateContext(secret, lang), kind=kind)
        assert surrogate is not None and surrogate.isupper() == value.isupper()
        new = re.fullmatch(pattern, surrogate)
        assert new is not None, surrogate
        if old is not None:
            assert not set(map(fold_alnum, old.groups())) & set(map(fold_alnum, new.groups()))


def test_a_town_in_a_name_is_the_patients_other_town() -> None:
    for secret in PATIENTS:
        town = make_place("Albacete", es(secret))
        for value in ("Hospital Universitario de Albacete", "Universidad de ALBACETE"):
            surrogate = make_address(value, es(secret), kind="hospital") or ""
            assert fold_alnum(surrogate).endswith(fold_alnum(town or "?"))


def test_a_noun_alone_has_no_surrogate() -> None:
    assert make_address("Hospital", es(PATIENTS[0]), kind="hospital") is None


def test_acronyms_stay_acronyms() -> None:
    for secret in PATIENTS:
        for value in ("HUVN", "INTCF"):
            surrogate = make_address(value, es(secret), kind="organization") or ""
            assert re.fullmatch(f"[A-Z]{{{len(value)}}}", surrogate) and surrogate != value


@settings(max_examples=30)
@given(SECRETS, st.text(min_size=1, max_size=30), st.sampled_from(["es", "en"]))
def test_any_text_becomes_another_or_nothing(secret: Secret, value: str, lang: str) -> None:
    for make in (
        lambda: make_address(value, SurrogateContext(secret, lang), kind="street"),
        lambda: make_address(value, SurrogateContext(secret, lang), kind="hospital"),
    ):
        surrogate = make()
        assert surrogate == make()
        assert surrogate is None or fold_alnum(surrogate) != fold_alnum(value)


@settings(max_examples=20)
@given(SECRETS, st.data())
def test_forbidden_words_do_not_come_out(secret: Secret, data: st.DataObject) -> None:
    names = load_places()["hospitals_es"]
    forbidden = {
        fold_alnum(name.split()[-1]) for name in data.draw(st.sets(st.sampled_from(names)))
    }
    surrogate = make_address(
        "Hospital La Paz", SurrogateContext(secret, "es", forbidden), kind="hospital"
    )
    if len(forbidden) < len(names) / 2:
        assert surrogate is not None
        assert not {fold_alnum(word) for word in surrogate.split()} & forbidden


def test_data_is_clean() -> None:
    data = load_places()
    for key, names in data.items():
        if isinstance(names, list):
            assert len(names) == len(set(map(fold_alnum, names))), key
    assert not set(map(fold_alnum, data["hospitals_es"])) & set(load_gazetteer("es").towns)
