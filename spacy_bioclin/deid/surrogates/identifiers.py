"""Surrogates of identifiers and telephone numbers: digit for digit, letter for letter.

Separators, case and length stay. Only the letters and digits of the original decide, so a number
written in two ways has one surrogate. Candidates are drawn until one passes exactly the checks
(checks.py) that the original passes: a valid number becomes a valid one, an invalid one stays
invalid.
"""

import re
from collections.abc import Callable, Iterator

import phonenumbers
from stdnum import iban
from stdnum.es import ccc, referenciacatastral

from ...text import compose, fold_alnum
from ..detect.checks import CHECKS, REGIONS, parse_phone, passed_checks
from .context import DIGITS, LETTERS, NON_ZERO, SurrogateContext

# Numbers of persons in films: nobody has them (555-0100 to 555-0199 of any area).
US_FICTION = "55501"
# Provinces of Spain, with Ceuta and Melilla, and 53 for those abroad.
N_PROVINCES = 53

# Words at the beginning that name the number; they stay.
_LABEL_WORDS = re.compile(
    r"(?:(?:n[.ºª°o]|no|num|n[úu]mero|nhc|hc|dni|nie|nif|cif|nass|ss|cip|iban|ssn|mrn|npi|dea|id|tel|"
    r"tlf|tfno|tel[ée]fono|phone|m[óo]vil|fax|col|colegiad[oa]|sn|s/n|ref|imei|mac|vin|lote?|ext)"
    r"[\s.:ºª°#]+)+",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+(?![^\W_])")
_LOWER = re.compile(r"[^\W\d_A-Z]{4}")
_HEX = re.compile(r"(?=.*\d)(?=.*[A-F])[0-9A-F]{8,}")
# Shapes in which a place takes certain letters only: (shape, place, letters); place None: all.
_SHAPES: tuple[tuple[re.Pattern[str], int | None, str], ...] = (
    (re.compile(r"[XYZ]\d{7}[A-Z]"), 0, "XYZ"),
    (re.compile(r"[KLM]\d{7}[0-9A-Z]"), 0, "KLM"),
    (re.compile(r"[ABCDEFGHJNPQRSUVW]\d{7}[0-9A-J]"), 0, "ABCDEFGHJNPQRSUVW"),
    (re.compile(r"\d{7,8}[TRWAGMYFPDXBNJZSQVHLCKE]"), -1, "TRWAGMYFPDXBNJZSQVHLCKE"),
    (re.compile(r"\d{4}[BCDFGHJKLMNPRSTVWXYZ]{3}"), None, "BCDFGHJKLMNPRSTVWXYZ"),
    (re.compile(r"[0-9A-HJ-NPR-Z]{17}"), None, "ABCDEFGHJKLMNPRSTUVWXYZ"),
    (_HEX, None, "ABCDEF"),
)
_MX_STATES = (
    *("AS", "BC", "BS", "CC", "CH", "CL", "CM", "CS", "DF", "DG", "GR", "GT", "HG", "JC", "MC"),
    *("MN", "MS", "NE", "NL", "NT", "OC", "PL", "QR", "QT", "SL", "SP", "SR", "TC", "TL", "TS"),
    *("VZ", "YN", "ZS"),
)


def make_identifier(
    value: str, context: SurrogateContext, purpose: str = "identifier"
) -> str | None:
    """Make another identifier of the same form.

    value (str): The number; words in front that name it stay.
    purpose (str): What it is; equal numbers of two purposes have two surrogates.
    RETURNS (str | None): None if there is nothing to replace, or the value is text, not a number.
    """
    value, forbidden = compose(value), context.forbidden
    label = _LABEL_WORDS.match(value)
    head = label.group() if label and label.end() < len(value) else ""
    body = value[len(head) :]
    # What is replaced, as A-Z and 0-9.
    old = "".join(map(_plain, filter(_is_variable, body)))
    if not old or old in LETTERS or _is_prose(body):
        return None
    wanted = passed_checks(old)
    best = None
    for new in _candidates(old, wanted, context, purpose):
        if new == old or fold_alnum(new) in forbidden:
            continue
        filled = fill(body, new)
        if any(len(word) >= 4 and fold_alnum(word) in forbidden for word in filled.split()):
            continue
        if all(CHECKS[name](new) for name in wanted) and passed_checks(new) == wanted:
            return head + filled
        best = best or head + filled
    return best


def _is_prose(text: str) -> bool:
    """Check whether a text has words ("Residente de 5° año"), not only letters of a number."""
    words = [word for word in _WORD.findall(text) if _LOWER.search(word)]
    return any(not set(word.upper()) <= set("ABCDEF") for word in words)


def _is_variable(char: str) -> bool:
    return char.isalnum() and char not in "ºª"


def _plain(char: str) -> str:
    folded = fold_alnum(char).upper()[:1]
    if char.isdigit():
        return folded if folded in DIGITS and folded else "0"
    return folded if folded in LETTERS and folded else "X"


def fill(text: str, new: str, is_variable: Callable[[str], bool] = _is_variable) -> str:
    """Replace the variable characters of a text (letters and digits) in order, keeping case."""
    chars = iter(new)
    return "".join(
        (next(chars).lower() if char.islower() else next(chars)) if is_variable(char) else char
        for char in text
    )


def _candidates(
    old: str, wanted: frozenset[str], context: SurrogateContext, purpose: str
) -> Iterator[str]:
    alphabets = [DIGITS if char.isdigit() else LETTERS for char in old]
    for shape, place, letters in _SHAPES:
        if shape.fullmatch(old):
            places = range(len(old)) if place is None else [place % len(old)]
            for i in places:
                if not old[i].isdigit():
                    alphabets[i] = letters
            break
    if old[0].isdigit():
        alphabets[0] = "0" if old[0] == "0" and len(old) > 2 else NON_ZERO
    if "card" in wanted:
        alphabets[0] = old[0]
    repairs = [repair for name, repair in _REPAIRS.items() if name in wanted]
    if re.fullmatch(r"\d{11,12}", old) and 0 < int(old[:2]) <= N_PROVINCES:
        alphabets[0] = DIGITS
        repairs.insert(0, _repair_province)
    elif re.fullmatch(r"(\d\d)\1\d{5}", old):
        repairs.append(_repair_licence)
    for new in context.draw(alphabets, purpose, old):
        for repair in repairs:
            new = repair(new, old)
        yield new


# Make a drawn number pass a check that few numbers pass by chance.


def _repair_province(new: str, old: str) -> str:
    return f"{int(new[:2]) % N_PROVINCES + 1:02d}{new[2:]}"


def _repair_licence(new: str, old: str) -> str:
    """Repeat the province, as licences of Spanish doctors do ("28 28 57941")."""
    return f"{_repair_province(new, old)[:2] * 2}{new[4:]}"


def _repair_nass(new: str, old: str) -> str:
    province, own = int(new[:2]), int(new[2:-2])
    power = 10**7 if own < 10**7 else 10**8
    return f"{new[:-2]}{(province * power + own) % 97:02d}"


def _repair_iban(new: str, old: str) -> str:
    new = old[:4] + new[4:]
    if old.startswith("ES") and new[4:].isdigit():
        new = new[:12] + ccc.calc_check_digits(new[4:]) + new[14:]
    return new[:2] + iban.calc_check_digits(new) + new[4:]


def _repair_cadastre(new: str, old: str) -> str:
    return new[:18] + referenciacatastral.calc_check_digits(new)


def _repair_curp(new: str, old: str) -> str:
    state = _MX_STATES[int(new[4:10]) % len(_MX_STATES)]
    return new[:4] + _birth_date(new[4:10]) + old[10] + state + new[13:]


def _repair_rfc(new: str, old: str) -> str:
    start = len(old) - 9
    return new[:start] + _birth_date(new[start : start + 6]) + new[start + 6 :]


def _birth_date(digits: str) -> str:
    """Turn six digits into year, month and day."""
    return f"{digits[:2]}{int(digits[2:4]) % 12 + 1:02d}{int(digits[4:]) % 28 + 1:02d}"


_REPAIRS: dict[str, Callable[[str, str], str]] = {
    "es_nass": _repair_nass,
    "iban": _repair_iban,
    "es_cadastre": _repair_cadastre,
    "mx_curp": _repair_curp,
    "mx_rfc": _repair_rfc,
}

_EXTENSION = re.compile(r"\s*(?:ext(?:ensi[óo]n|ension)?|x)[\s.:]*\d+\s*$", re.IGNORECASE)


def make_phone(value: str, context: SurrogateContext) -> str | None:
    """Make another telephone number of the same kind, written in the same way.

    The first digit of the national number stays (mobile, landline); a number that exists in its
    country becomes another one of the same type (phonenumbers). American ones become numbers that
    are reserved for fiction. With and without the country's prefix a number has one surrogate.
    Without a prefix, numbers are American in English notes, else Spanish.

    RETURNS (str | None): None if there is no digit.
    """
    value = compose(value)
    found = _EXTENSION.search(value)
    main = value[: found.start()] if found else value
    number = _make_number(main, context)
    tail = value[len(main) :]
    if number is None or not tail:
        return number
    digits = "".join(filter(str.isdigit, tail))
    new = context.draw_other([DIGITS] * len(digits), "extension", digits)
    return number + fill(tail, new, str.isdigit)


def _make_number(text: str, context: SurrogateContext) -> str | None:
    digits = "".join(_plain(char) for char in text if char.isdigit())
    if not digits:
        return None
    parsed = parse_phone(text, REGIONS[context.lang])
    national = "" if parsed is None else str(parsed.national_number)
    is_known = parsed is not None and phonenumbers.is_valid_number(parsed)
    if parsed is None or not is_known or not digits.endswith(national):
        alphabets = [digits[0] if len(digits) > 2 else NON_ZERO] + [DIGITS] * (len(digits) - 1)
        drawn = context.draw(alphabets, "phone", digits)
        new = next((x for x in drawn if x != digits and x not in context.forbidden), "")
        return fill(text, new, str.isdigit) if new else None
    kind = phonenumbers.number_type(parsed)
    alphabets = [national[0]] + [DIGITS] * (len(national) - 1)
    if parsed.country_code == 1:
        alphabets = [NON_ZERO[1:], DIGITS, DIGITS, *US_FICTION, DIGITS, DIGITS]
    for new in context.draw(alphabets, "phone", f"{parsed.country_code} {national}"):
        other = phonenumbers.PhoneNumber(parsed.country_code, int(new))
        filled = digits[: -len(national)] + new
        if new == national or not context.forbidden.isdisjoint((new, filled)):
            continue
        if phonenumbers.number_type(other) == kind:
            return fill(text, filled, str.isdigit)
    return None
