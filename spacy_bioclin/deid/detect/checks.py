"""Check digits and check letters of identifiers.

A check makes a number more, or less, likely to be real. It never decides: numbers in notes are
mistyped, and those in shared corpora are invented. python-stdnum has most of them; it does not have
the five that are computed here.
"""

import re
from collections.abc import Callable

import phonenumbers
from stdnum import iban, imei, luhn
from stdnum.ar import cbu, cuit
from stdnum.cl import rut
from stdnum.co import nit
from stdnum.es import ccc, cif, dni, nie, nif, referenciacatastral
from stdnum.gb import nhs
from stdnum.mx import curp, rfc
from stdnum.us import ssn

Check = Callable[[str], bool]

_NOT_ALNUM = re.compile(r"[^0-9A-Za-z]+")
_VIN_VALUES = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True))
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_CLABE_WEIGHTS = (3, 7, 1)


# Whose telephone numbers those without a prefix are, by language of the note.
REGIONS = {"es": "ES", "en": "US"}


def compact(value: str) -> str:
    """Keep ASCII letters and digits only, in upper case."""
    return _NOT_ALNUM.sub("", value).upper()


def parse_phone(text: str, region: str) -> phonenumbers.PhoneNumber | None:
    """Parse a telephone number, which may not exist.

    region (str): Country of numbers without a prefix ("ES").
    RETURNS (PhoneNumber | None): None if the text cannot be read as one.
    """
    try:
        return phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None


def _is_nass(number: str) -> bool:
    """Check a Spanish social security number.

    It has two digits of the province, seven or eight, and the remainder of all before by 97. A
    number below 10,000,000 is written without its leading zero there.
    """
    province, own, control = int(number[:2]), int(number[2:-2]), int(number[-2:])
    power = 10**7 if own < 10**7 else 10**8
    return (province * power + own) % 97 == control


def _is_npi(number: str) -> bool:
    """Check a US National Provider Identifier: Luhn, after the prefix of American health cards."""
    return luhn.is_valid("80840" + number)


def _is_dea(number: str) -> bool:
    """Check a registration with the US Drug Enforcement Administration."""
    digits = [int(char) for char in number[2:]]
    total = sum(digits[0:5:2]) + 2 * sum(digits[1:6:2])
    return total % 10 == digits[6]


def _is_vin(number: str) -> bool:
    """Check a vehicle identification number (ISO 3779), ninth character as in North America."""
    values = [int(_VIN_VALUES.get(char, char)) for char in number]
    total = sum(value * weight for value, weight in zip(values, _VIN_WEIGHTS, strict=True))
    return number[8] == "0123456789X"[total % 11]


def _is_clabe(number: str) -> bool:
    """Check a Mexican bank account: weights 3, 7, 1."""
    total = sum(int(char) * _CLABE_WEIGHTS[i % 3] % 10 for i, char in enumerate(number[:17]))
    return int(number[17]) == -total % 10


def _make_check(shape: str, is_valid: Check) -> Check:
    """Make a check for any string, which fails if the shape is another."""
    match = re.compile(shape, re.ASCII).fullmatch

    def check(value: str) -> bool:
        number = compact(value)
        return match(number) is not None and bool(is_valid(number))

    return check


CHECKS: dict[str, Check] = {
    name: _make_check(shape, is_valid)
    for name, shape, is_valid in (
        ("es_dni", r"\d{7,8}[A-Z]", lambda number: dni.is_valid(number.zfill(9))),
        ("es_nie", r"[XYZ]\d{7}[A-Z]", nie.is_valid),
        ("es_nif", r"[KLM]\d{7}[0-9A-Z]", nif.is_valid),
        ("es_cif", r"[ABCDEFGHJNPQRSUVW]\d{7}[0-9A-J]", cif.is_valid),
        ("es_nass", r"\d{11,12}", _is_nass),
        ("es_ccc", r"\d{20}", ccc.is_valid),
        ("es_cadastre", r"[0-9A-Z]{20}", referenciacatastral.is_valid),
        ("iban", r"[A-Z]{2}\d{2}[0-9A-Z]{11,30}", lambda n: iban.is_valid(n, check_country=False)),
        ("card", r"[2-6]\d{12,18}", luhn.is_valid),
        ("imei", r"\d{15}", imei.is_valid),
        ("vin", r"[0-9A-HJ-NPR-Z]{17}", _is_vin),
        ("us_ssn", r"\d{9}", ssn.is_valid),
        ("us_npi", r"[12]\d{9}", _is_npi),
        ("us_dea", r"[A-Z][A-Z9]\d{7}", _is_dea),
        ("gb_nhs", r"\d{10}", nhs.is_valid),
        ("mx_curp", r"[A-Z]{4}\d{6}[0-9A-Z]{8}", curp.is_valid),
        ("mx_rfc", r"[A-Z&]{3,4}\d{6}[0-9A-Z]{3}", lambda n: rfc.is_valid(n, True)),
        ("mx_nss", r"\d{11}", luhn.is_valid),
        ("mx_clabe", r"\d{18}", _is_clabe),
        ("cl_rut", r"\d{7,8}[0-9K]", rut.is_valid),
        ("ar_cuit", r"(?:2[03457]|3[034]|5[015])\d{9}", cuit.is_valid),
        ("ar_cbu", r"\d{22}", cbu.is_valid),
        ("co_nit", r"\d{9,10}", nit.is_valid),
    )
}


def passed_checks(value: str) -> frozenset[str]:
    """Name the checks that a value passes, whatever its separators and case.

    A short number passes some by chance.
    """
    return frozenset(name for name, check in CHECKS.items() if check(value))
