"""Values of identifiers: with a right check digit, or with a wrong one."""

import random
import string
from collections.abc import Callable

import stdnum.ar.cuit
import stdnum.cl.rut
import stdnum.co.nit
import stdnum.es.ccc
import stdnum.es.cif
import stdnum.es.dni
import stdnum.es.nie
import stdnum.es.nif
import stdnum.es.referenciacatastral as cadastre
import stdnum.gb.nhs
import stdnum.iban
import stdnum.imei
import stdnum.luhn
import stdnum.mx.curp
import stdnum.mx.rfc
import stdnum.us.rtn

from .templates import expand

PLATE_LETTERS = "BCDFGHJKLMNPRSTVWXYZ"
VIN_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
MBI_LETTERS = "ACDEFGHJKMNPQRTUVWXY"
MONTHS = {
    "es": "enero febrero marzo abril mayo junio "
    "julio agosto septiembre octubre noviembre diciembre",
    "en": "January February March April May June July August September October November December",
}
ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]


def nass_is_valid(value: str) -> bool:
    """Spanish social security: province and number modulo 97."""
    province, number, check = int(value[:2]), int(value[2:10]), int(value[10:])
    whole = province * 10**7 + number if number < 10**7 else province * 10**8 + number
    return whole % 97 == check


def vin_is_valid(value: str) -> bool:
    """ISO 3779 with the check character of North America in place 9 (49 CFR 565.15)."""
    letters = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True))
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    digits = [int(letters.get(char, char)) for char in value]
    rest = sum(a * b for a, b in zip(digits, weights, strict=True)) % 11
    return value[8] == ("X" if rest == 10 else str(rest))


def dea_is_valid(value: str) -> bool:
    """Registration of the US Drug Enforcement Administration: two letters, seven digits."""
    digits = [int(char) for char in value[2:]]
    return (sum(digits[0:6:2]) + 2 * sum(digits[1:6:2])) % 10 == digits[6]


def npi_is_valid(value: str) -> bool:
    """National Provider Identifier: Luhn after the prefix 80840 (45 CFR 162.406)."""
    return stdnum.luhn.is_valid("80840" + value)


def iban_is_valid(value: str) -> bool:
    return stdnum.iban.is_valid(value, check_country=False)


def cadastre_is_valid(value: str) -> bool:
    return cadastre.is_valid(value)


# Kind of value -> how it looks, the character that the check decides, whether it is right.
CHECKED: dict[str, tuple[str, str, Callable[[str], bool]]] = {
    "dni": ("########", "letter", stdnum.es.dni.is_valid),
    "nie": ("<X|Y|Z>#######", "letter", stdnum.es.nie.is_valid),
    "nif_klm": ("<K|L|M>#######", "letter", stdnum.es.nif.is_valid),
    "cif": ("<A|B|G|J|U|V>#######", "digit", stdnum.es.cif.is_valid),
    "nass": ("<01-52>########", "digits", nass_is_valid),
    "card": ("<4|51|52|54>", "digit", stdnum.luhn.is_valid),
    "amex": ("<34|37>############", "digit", stdnum.luhn.is_valid),
    "imei": ("35############", "digit", stdnum.imei.is_valid),
    "rut": ("<5-25>######", "digit or K", stdnum.cl.rut.is_valid),
    "cuit": ("<20|23|27|30>########", "digit", stdnum.ar.cuit.is_valid),
    "nit": ("<8|9>########", "digit", stdnum.co.nit.is_valid),
    "nhs": ("4########", "digit", stdnum.gb.nhs.is_valid),
    "npi": ("1########", "digit", npi_is_valid),
    "dea": ("<A|B|F|M>§######", "digit", dea_is_valid),
    "routing": ("<01|02|11|12|21|31>######", "digit", stdnum.us.rtn.is_valid),
}
CHECKS = {
    "letter": "TRWAGMYFPDXBNJZSQVHLCKE",
    "digit": string.digits,
    "digit or K": string.digits + "K",
    "digits": [f"{i:02}" for i in range(100)],
}
LENGTHS = {"card": 15, "rut": 8}  # without the check digit, where the pattern does not say


def make_checked(kind: str, rng: random.Random, valid: bool) -> str:
    """Make a value of a kind in CHECKED, with a valid or an invalid check."""
    pattern, alphabet, is_valid = CHECKED[kind]
    while True:
        body = expand(pattern, rng)
        if length := LENGTHS.get(kind):
            body = (body + expand("#" * length, rng))[:length]
        ends = [end for end in CHECKS[alphabet] if is_valid(body + end) == valid]
        if ends:  # some bodies have no check digit at all
            return body + rng.choice(ends)


def make_vin(rng: random.Random, valid: bool) -> str:
    alphabet = VIN_LETTERS + string.digits
    while True:
        body = "".join(rng.choice(alphabet) for _ in range(11)) + expand("######", rng)
        if vin_is_valid(body) == valid:
            return body


def make_plate(rng: random.Random, valid: bool) -> str:
    return expand("####", rng) + "".join(rng.choice(PLATE_LETTERS) for _ in range(3))


def make_mbi(rng: random.Random, valid: bool) -> str:
    """Medicare Beneficiary Identifier: C A AN N A AN N A A N N, no check digit."""
    pools = {"C": "123456789", "N": string.digits, "A": MBI_LETTERS}
    pools["X"] = pools["A"] + pools["N"]
    return "".join(rng.choice(pools[place]) for place in "CAXNAXNAANN")


def make_nino(rng: random.Random, valid: bool) -> str:
    """National Insurance number, no check digit."""
    return rng.choice(["AB", "CE", "JK", "LM", "PR", "ST", "WX"]) + expand("######<A|B|C|D>", rng)


def make_mac(rng: random.Random, valid: bool) -> str:
    return "".join(rng.choice("0123456789ABCDEF") for _ in range(12))


def make_ccc(rng: random.Random, valid: bool) -> str:
    account = expand("<0049|2100|0182|2038>####", rng), expand("##########", rng)
    right = stdnum.es.ccc.calc_check_digits(f"{account[0]}00{account[1]}")
    wrong = f"{(int(right) + rng.randint(1, 99)) % 100:02}"
    return f"{account[0]}{right if valid else wrong}{account[1]}"


def _iban(country: str, body: str, rng: random.Random, valid: bool) -> str:
    checks = [f"{i:02}" for i in range(2, 99) if iban_is_valid(f"{country}{i:02}{body}") == valid]
    return f"{country}{rng.choice(checks)}{body}"


def make_iban_es(rng: random.Random, valid: bool) -> str:
    return _iban("ES", make_ccc(rng, True), rng, valid)


def make_iban_gb(rng: random.Random, valid: bool) -> str:
    return _iban("GB", expand("<NWBK|BARC|LOYD>##############", rng), rng, valid)


def make_cadastre(rng: random.Random, valid: bool) -> str:
    while True:
        body = expand("#######<VK|DF|TG|NM>####<S|N|G>####", rng)
        right = cadastre.calc_check_digits(body + "AA")
        value = body + (right if valid else expand("§§", rng))
        if cadastre_is_valid(value) == valid:
            return value


def _birth(rng: random.Random) -> str:
    return expand("<50-99><01-12><01-28>", rng)


def make_curp(rng: random.Random, valid: bool) -> str:
    while True:
        letters = expand("<GO|RO|MA|LE|SA>", rng) + expand("<LM|RC|ND|ZP>", rng)
        body = letters + _birth(rng) + expand("<H|M><DF|JC|NL|PL><BCD|LNR|STZ>0", rng)
        ends = [end for end in string.digits if stdnum.mx.curp.is_valid(body + end) == valid]
        if ends:
            return body + rng.choice(ends)


def make_rfc(rng: random.Random, valid: bool) -> str:
    alphabet = string.digits + "A"
    while True:
        body = expand("<GO|RO|MA|LE|SA><LM|RC|ND|ZP>", rng) + _birth(rng) + expand("§#", rng)
        ends = [
            end
            for end in alphabet
            if stdnum.mx.rfc.is_valid(body + end, validate_check_digits=True) == valid
        ]
        if ends:
            return body + rng.choice(ends)


def make_ip6(rng: random.Random, valid: bool) -> dict[str, str]:
    groups = [f"{rng.randint(0x1000, 0xFFFF):x}" for _ in range(8)]
    return {
        "full": "2001:0db8:" + ":".join(groups[:6]),
        "short": f"fe80::{groups[0]}:{groups[1]}",
        "middle": f"2001:db8:{groups[2]}::{groups[3]}:{groups[4]}",
        "upper": "2001:0DB8:" + ":".join(groups[:6]).upper(),
    }


def make_date(rng: random.Random, lang: str) -> dict[str, str | int]:
    """Draw a date from 1990 to 2023, as d, m, y, yy, month, mon, roman and nth."""
    d, m, y = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1990, 2023)
    month = MONTHS[lang].split()[m - 1]
    short = month[:4] if month in ("septiembre", "September") and rng.random() < 0.5 else month[:3]
    ending = {1: "st", 2: "nd", 3: "rd"}.get(d % 10, "th") if d not in (11, 12, 13) else "th"
    return {
        **{
            "d": d,
            "m": m,
            "y": y,
            "yy": f"{y % 100:02}",
            "roman": ROMAN[m - 1],
            "nth": f"{d}{ending}",
        },
        **{"month": month.lower(), "Month": month.capitalize(), "MONTH": month.upper()},
        **{"mon": short.lower(), "Mon": short.capitalize(), "MON": short.upper()},
    }


MAKERS: dict[str, Callable[[random.Random, bool], str | dict[str, str]]] = {
    **{"vin": make_vin, "plate": make_plate, "mbi": make_mbi, "nino": make_nino, "mac": make_mac},
    **{"ccc": make_ccc, "iban_es": make_iban_es, "iban_gb": make_iban_gb, "ip6": make_ip6},
    **{"cadastre": make_cadastre, "curp": make_curp, "rfc": make_rfc},
}
WITH_CHECK = {*CHECKED, "vin", "ccc", "iban_es", "iban_gb", "cadastre", "curp", "rfc"}


def write_value(spec: dict, form: str, rng: random.Random, valid: bool) -> str:
    """Write a new value of a kind.

    spec (dict): The kind (kinds_es.yml).
    form (str): How it is written.
    valid (bool): Whether its check digit is right, where it has one.
    RETURNS (str): The value.
    """
    maker = spec.get("maker")
    if maker is None:
        return expand(form, rng)
    if maker == "date":
        return form.format(**make_date(rng, spec["lang"]))
    made = make_checked(maker, rng, valid) if maker in CHECKED else MAKERS[maker](rng, valid)
    if isinstance(made, dict):
        return form.format(**made)
    if form.count("_") < len(made):  # a form of its own, such as a short one
        return expand(form.replace("_", "§"), rng)
    chars = iter(made)
    return "".join(next(chars) if char == "_" else char for char in form)
