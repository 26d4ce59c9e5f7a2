"""Identifiers and telephone numbers: same shape, same checks, never the original."""

import re

import phonenumbers
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.detect.checks import passed_checks
from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.context import SurrogateContext
from spacy_bioclin.deid.surrogates.identifiers import make_identifier, make_phone
from spacy_bioclin.text import fold_alnum

KEY = b"0123456789abcdef"
SECRETS = st.builds(Secret, st.just(KEY), st.text(max_size=5))


def es(secret: Secret) -> SurrogateContext:
    return SurrogateContext(secret, "es")


# Examples that pass a check, from the documentation of python-stdnum and of the issuers.
VALID = {
    "es_dni": "54362315-K",
    "es_nie": "X-2482300W",
    "es_cif": "J99216582",
    "es_nass": "28 12345678 40",
    "es_cadastre": "9872023 VH5797S 0001 WX",
    "iban": "ES77 1234 1234 1612 3456 7890",
    "card": "4111 1111 1111 1111",
    "vin": "1M8GDM9AXKP042788",
    "us_ssn": "536-90-4399",
    "us_npi": "1234567893",
    "us_dea": "AB1234563",
    "gb_nhs": "943-476-5870",
    "mx_curp": "BOXW310820HNERXN09",
    "mx_rfc": "GODE561231GR8",
    "cl_rut": "12531909-2",
    "ar_cuit": "20-05536168-2",
}


def shape_of(text: str) -> str:
    text = re.sub(r"\d", "9", text)
    return re.sub("[a-z]", "a", re.sub("[A-Z]", "A", text))


def test_a_valid_number_becomes_another_valid_one() -> None:
    for check, value in VALID.items():
        assert check in passed_checks(value), value
        for patient in range(3):
            surrogate = make_identifier(value, es(Secret(KEY, str(patient))), "id")
            assert surrogate is not None and fold_alnum(surrogate) != fold_alnum(value), value
            assert passed_checks(surrogate) == passed_checks(value), value
            assert shape_of(surrogate) == shape_of(value), value


@settings(max_examples=30)
@given(
    st.from_regex(r"[A-Z]{0,3}[-. ]?\d{2,4}[-/. ]?\d{3,7}[- ]?[A-Za-z]?", fullmatch=True), SECRETS
)
def test_shape_and_checks_are_kept(value: str, secret: Secret) -> None:
    value = re.sub(r"\d", lambda digit: str(int(digit.group())), value)
    surrogate = make_identifier(value, es(secret), "id")
    assert surrogate == make_identifier(value, es(secret), "id")
    assert surrogate is not None and shape_of(surrogate) == shape_of(value)
    assert fold_alnum(surrogate) != fold_alnum(value)
    assert passed_checks(surrogate) == passed_checks(value)


@settings(max_examples=20)
@given(st.integers(10**5, 10**9), SECRETS, st.sampled_from([".", " ", "-", "/", ""]))
def test_separators_case_and_label_do_not_count(number: int, secret: Secret, sep: str) -> None:
    digits = str(number)
    plain = make_identifier(f"{digits}K", es(secret), "id")
    assert plain is not None
    apart = make_identifier(f"NHC: {digits[:3]}{sep}{digits[3:]}{sep}k", es(secret), "id")
    assert apart is not None and apart.startswith("NHC: ")
    assert fold_alnum(apart.removeprefix("NHC: ")) == fold_alnum(plain)


@settings(max_examples=20)
@given(st.integers(10**5, 10**9), SECRETS)
def test_a_forbidden_number_does_not_come_out(number: int, secret: Secret) -> None:
    first = make_identifier(str(number), es(secret), "id")
    assert first is not None
    second = make_identifier(str(number), SurrogateContext(secret, "es", {fold_alnum(first)}), "id")
    assert second not in (None, first, str(number))


def test_spanish_shapes_stay_plausible() -> None:
    for patient in map(str, range(10)):
        secret = Secret(KEY, patient)
        nass = make_identifier("28 12345678 40", es(secret), "id") or ""
        assert 1 <= int(nass[:2]) <= 53
        licence = make_identifier("28 28 57941", es(secret), "id") or ""
        assert licence[:2] == licence[3:5] and 1 <= int(licence[:2]) <= 53
        nie = make_identifier("X1234567B", es(secret), "id") or ""
        assert re.fullmatch(r"[XYZ]\d{7}[A-Z]", nie)
        plate = make_identifier("1234 bcd", es(secret), "id") or ""
        assert re.fullmatch(r"[1-9]\d{3} [^aeiouq0-9]{3}", plate)
        iban = make_identifier("ES7712341234161234567890", es(secret), "id") or ""
        assert iban.startswith("ES")
        card = make_identifier("00:1b:44:11:3a:b7", es(secret), "id") or ""
        assert re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", card)
        assert (make_identifier("078165", es(secret), "id") or "").startswith("0")


def test_text_has_no_surrogate() -> None:
    for value in ("", "-", "Residente de 5° año", "negra", "K", "n.º "):
        assert make_identifier(value, es(Secret(KEY, "1")), "id") is None, value
    assert make_phone("no consta", es(Secret(KEY, "1"))) is None


PHONES = [
    ("es", "913 36 80 00", r"9\d\d \d\d \d\d \d\d"),
    ("es", "+34 913 368 000", r"\+34 9\d\d \d{3} \d{3}"),
    ("es", "0034-670-97-10-26", r"0034-6\d\d-\d\d-\d\d-\d\d"),
    ("es", "670.97.10.26", r"6\d\d\.\d\d\.\d\d\.\d\d"),
    ("es", "34 93 567 22 28", r"34 9\d \d{3} \d\d \d\d"),
    ("es", "986413144 ext 1530", r"9\d{8} ext \d{4}"),
    ("es", "+52 55 1234 5678", r"\+52 \d\d \d{4} \d{4}"),
    ("es", "55304000", r"5\d{7}"),
    ("en", "(415) 867-5309", r"\([2-9]\d\d\) 555-01\d\d"),
    ("en", "+44 20 7946 0958", r"\+44 2\d \d{4} \d{4}"),
]


def test_phones_keep_form_and_kind() -> None:
    for lang, value, shape in PHONES:
        region = "US" if lang == "en" else "ES"
        for patient in "12345":
            surrogate = make_phone(value, SurrogateContext(Secret(KEY, patient), lang))
            assert surrogate is not None and re.fullmatch(shape, surrogate), (value, surrogate)
            assert fold_alnum(surrogate) != fold_alnum(value)
            old, new = (phonenumbers.parse(text, region) for text in (value, surrogate))
            assert old.country_code == new.country_code
            if phonenumbers.is_valid_number(old):
                assert phonenumbers.number_type(old) == phonenumbers.number_type(new)


@settings(max_examples=20)
@given(st.integers(600_000_000, 699_999_999), SECRETS)
def test_a_phone_has_one_surrogate_in_all_its_forms(number: int, secret: Secret) -> None:
    digits = str(number)
    plain = make_phone(digits, es(secret))
    assert plain is not None and plain != digits
    for form in (f"+34 {digits}", f"0034{digits}", f"{digits[:3]} {digits[3:6]} {digits[6:]}"):
        surrogate = make_phone(form, es(secret)) or ""
        assert fold_alnum(surrogate).endswith(plain)
        assert make_phone(form, SurrogateContext(secret, "es", {plain})) != surrogate
