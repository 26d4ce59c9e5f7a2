"""Surrogates of identifiers and telephone numbers: digit for digit, letter for letter.

Separators, case and length stay. Only the letters and digits of the original decide, so a number
written in two ways has one surrogate. Candidates are drawn until one passes exactly the checks
(checks.py) that the original passes: a valid number becomes a valid one, an invalid one stays
invalid.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence

import phonenumbers
from stdnum import iban
from stdnum.es import ccc, referenciacatastral

from ...text import compose, fold_alnum
from ..detect.checks import CHECKS, passed_checks
from ..secret import Secret

MAX_TRIES = 5000
DIGITS, NON_ZERO = "0123456789", "123456789"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Numbers of persons in films: nobody has them (555-0100 to 555-0199 of any area).
US_FICTION = "55501"
# Provinces of Spain, with Ceuta and Melilla, and 53 for those abroad.
N_PROVINCES = 53

# Words that name the number, at its beginning; they stay and do not count.
_LABEL_WORDS = re.compile(
    r"(?:(?:n[.ºª°o]|no|num|n[úu]mero|nhc|hc|dni|nie|nif|cif|nass|ss|cip|iban|ssn|mrn|npi|dea|id|tel|"
    r"tlf|tfno|tel[ée]fono|phone|m[óo]vil|fax|col|colegiad[oa]|sn|s/n|ref|imei|mac|vin|lote?|ext)"
    r"[\s.:ºª°#]+)+",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]+(?![^\W_])")
_LOWER = re.compile(r"[^\W\d_A-Z]{4}")
_HEX = re.compile(r"(?=.*\d)(?=.*[A-F])[0-9A-F]{8,}")
# Shapes of which a place takes certain letters only: (shape, place, letters); place None: all.
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
    value: str, purpose: str, secret: Secret, forbidden: Collection[str] = ()
) -> str | None:
    """Make another identifier of the same form.

    value (str): The number as it stands in the text; words in front that name it stay.
    purpose (str): What it is; equal numbers of two purposes have two surrogates.
    forbidden (Collection[str]): Folded words that must not come out.
    RETURNS (str | None): None if there is nothing to replace, or the value is no number but text.
    """
    value = compose(value)
    label = _LABEL_WORDS.match(value)
    head = label.group() if label and label.end() < len(value) else ""
    body = value[len(head) :]
    old = _variable(body)
    if not old or old in LETTERS or _is_prose(body):
        return None
    wanted = passed_checks(old)
    best = None
    for new in _candidates(old, wanted, secret, purpose):
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
    """RETURNS (bool): It holds words ("Residente de 5° año"), not only letters of a number."""
    words = [word for word in _WORD.findall(text) if _LOWER.search(word)]
    return any(not set(word.upper()) <= set("ABCDEF") for word in words)


def _is_variable(char: str) -> bool:
    return char.isalnum() and char not in "ºª"


def _variable(text: str) -> str:
    """RETURNS (str): What is replaced, folded to A-Z and 0-9: letters and digits, one for each."""
    return "".join(map(_plain, filter(_is_variable, text)))


def _plain(char: str) -> str:
    folded = fold_alnum(char).upper()[:1]
    if char.isdigit():
        return folded if folded in DIGITS and folded else "0"
    return folded if folded in LETTERS and folded else "X"


def fill(text: str, new: str) -> str:
    """RETURNS (str): The text with its letters and digits replaced in order, case kept."""
    chars = iter(new)
    return "".join(
        (next(chars).lower() if char.islower() else next(chars)) if _is_variable(char) else char
        for char in text
    )


def draw(
    alphabets: Sequence[str], secret: Secret, purpose: str, value: str, n: int = MAX_TRIES
) -> Iterator[str]:
    """Draw strings.

    alphabets (Sequence[str]): What each place may be.
    value (str): What the keyed draws depend on, beside the purpose.
    YIELDS (str): n strings, always the same ones in the same order.
    """
    seed = secret.derive(purpose, value)
    width = 2 * len(alphabets)
    for i in range(n):
        noise = hashlib.shake_256(seed + i.to_bytes(4, "big")).digest(width)
        yield "".join(
            chars[(noise[2 * j] << 8 | noise[2 * j + 1]) % len(chars)]
            for j, chars in enumerate(alphabets)
        )


def _candidates(old: str, wanted: frozenset[str], secret: Secret, purpose: str) -> Iterator[str]:
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
    for new in draw(alphabets, secret, purpose, old):
        for repair in repairs:
            new = repair(new, old)
        yield new


# What a number must have to pass a check that few numbers pass by chance.


def _repair_province(new: str, old: str) -> str:
    return f"{int(new[:2]) % N_PROVINCES + 1:02d}{new[2:]}"


def _repair_licence(new: str, old: str) -> str:
    """Spanish doctors: the province twice, "28 28 57941"."""
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
    """RETURNS (str): Six digits turned into year, month and day."""
    return f"{digits[:2]}{int(digits[2:4]) % 12 + 1:02d}{int(digits[4:]) % 28 + 1:02d}"


_REPAIRS: dict[str, Callable[[str, str], str]] = {
    "es_nass": _repair_nass,
    "iban": _repair_iban,
    "es_cadastre": _repair_cadastre,
    "mx_curp": _repair_curp,
    "mx_rfc": _repair_rfc,
}

_EXTENSION = re.compile(r"\s*(?:ext(?:ensi[óo]n|ension)?|x)[\s.:]*\d+\s*$", re.IGNORECASE)


def make_phone(
    value: str, secret: Secret, lang: str, forbidden: Collection[str] = ()
) -> str | None:
    """Make another telephone number of the same kind, written in the same way.

    The first digit of the national number stays (mobile, landline); a number that exists in its
    country becomes another one of the same type (phonenumbers). American ones become numbers that
    are kept for fiction. With and without the country's prefix a number has one surrogate.

    lang (str): "en": numbers without a prefix are American, else Spanish.
    RETURNS (str | None): None if there is no digit.
    """
    value = compose(value)
    found = _EXTENSION.search(value)
    main = value[: found.start()] if found else value
    tail = value[len(main) :]
    if found:
        digits = "".join(filter(str.isdigit, tail))
        new = next(
            x for x in draw([DIGITS] * len(digits), secret, "extension", digits) if x != digits
        )
        tail = _fill_digits(tail, new)
    number = _make_number(main, secret, lang, forbidden)
    return None if number is None else number + tail


def _make_number(text: str, secret: Secret, lang: str, forbidden: Collection[str]) -> str | None:
    digits = "".join(_plain(char) for char in text if char.isdigit())
    if not digits:
        return None
    parsed = _parse(text, lang)
    national = "" if parsed is None else str(parsed.national_number)
    if parsed is None or not digits.endswith(national):
        alphabets = [digits[0] if len(digits) > 2 else NON_ZERO] + [DIGITS] * (len(digits) - 1)
        drawn = draw(alphabets, secret, "phone", digits)
        new = next((x for x in drawn if x != digits and x not in forbidden), "")
        return _fill_digits(text, new) if new else None
    kind = phonenumbers.number_type(parsed)
    alphabets = [national[0]] + [DIGITS] * (len(national) - 1)
    if parsed.country_code == 1:
        alphabets = [NON_ZERO[1:], DIGITS, DIGITS, *US_FICTION, DIGITS, DIGITS]
    key = f"{parsed.country_code} {national}"
    for new in draw(alphabets, secret, "phone", key):
        other = phonenumbers.PhoneNumber(parsed.country_code, int(new))
        if new == national or new in forbidden or phonenumbers.number_type(other) != kind:
            continue
        filled = digits[: -len(national)] + new
        if filled not in forbidden:
            return _fill_digits(text, filled)
    return None


def _parse(text: str, lang: str) -> phonenumbers.PhoneNumber | None:
    """RETURNS (PhoneNumber | None): None if there is no such number."""
    try:
        parsed = phonenumbers.parse(text, "US" if lang == "en" else "ES")
    except phonenumbers.NumberParseException:
        return None
    return parsed if phonenumbers.is_valid_number(parsed) else None


def _fill_digits(text: str, new: str) -> str:
    digits = iter(new)
    return "".join(next(digits) if char.isdigit() else char for char in text)
