"""A plausible value in the place of a real one, for each type of PHI.

All derives from the secret key, the patient and the value: there is no table, and another run or
another machine gives the same as long as its Faker has the same lists (constraints.txt).
"""

from collections.abc import Callable, Collection

from ...text import fold_alnum
from ..secret import Secret
from .addresses import make_institution, make_street
from .dates import DateShift, shift_dates, shift_days
from .identifiers import make_identifier, make_phone
from .online import make_email, make_ip_address, make_url, make_user_name
from .persons import make_name
from .places import make_country, make_place, make_postcode, make_profession

# (value, secret, language, forbidden) -> surrogate.
Maker = Callable[[str, Secret, str, Collection[str]], str | None]


def _identifier(value: str, secret: Secret, lang: str, forbidden: Collection[str]) -> str | None:
    # One purpose for all: which number it is, is not always told in the same way.
    return make_identifier(value, "identifier", secret, forbidden)


def _institution(kind: str) -> Maker:
    def make(value: str, secret: Secret, lang: str, forbidden: Collection[str]) -> str | None:
        return make_institution(value, kind, secret, lang, forbidden)

    return make


MAKERS: dict[str, Maker] = {
    "patient_name": make_name,
    "staff_name": make_name,
    "profession": make_profession,
    "user_name": lambda value, secret, _, forbidden: make_user_name(value, secret, forbidden),
    "hospital": _institution("hospital"),
    "health_centre": _institution("health_centre"),
    "organization": _institution("organization"),
    "street": make_street,
    "city": make_place,
    "state": lambda value, secret, lang, words: make_place(value, secret, lang, words, True),
    "other_place": make_place,
    "postcode": make_postcode,
    "country": make_country,
    "phone": make_phone,
    "fax": make_phone,
    "email": lambda value, secret, _, forbidden: make_email(value, secret, forbidden),
    "url": lambda value, secret, _, forbidden: make_url(value, secret, forbidden),
    "ip_address": lambda value, secret, _, forbidden: make_ip_address(value, secret, forbidden),
    **dict.fromkeys(
        (
            *("cadastre", "record_id", "national_id", "contact_id", "insurance_id", "licence_id"),
            *(
                "health_plan_id",
                "staff_id",
                "account",
                "vehicle",
                "device",
                "biometric",
                "other_id",
            ),
        ),
        _identifier,
    ),
}
# Longer values are mistakes of a detector; patterns may need quadratic time for them.
MAX_CHARS = 500
# What is free text, or stands in no list: it is masked.
WITHOUT_SURROGATE = ("relative", "age", "sex", "photo", "other")


def make_surrogate(
    value: str,
    phi_type: str,
    secret: Secret,
    *,
    lang: str,
    forbidden: Collection[str] = (),
    dates: DateShift | None = None,
) -> str | None:
    """Make the value that takes the place of a real one.

    value (str): As it stands in the note.
    phi_type (str): Type of labels.yml.
    secret (Secret): What it is derived from: equal values of a patient have equal surrogates.
    lang (str): Language of the note: "en", else as in Spanish.
    forbidden (Collection[str]): Folded words (evaluation.leaks.fold) that must not come out.
    dates (DateShift | None): How dates move; None for the patient's offset, weekdays not kept.
    RETURNS (str | None): In the form of the original, and never it; None if it cannot be done: the
        type has none (WITHOUT_SURROGATE), or the value is not what its type says.
    """
    if len(value) > MAX_CHARS:
        return None
    if phi_type == "date":
        return shift_dates(value, dates or DateShift(shift_days(secret, False)), lang)
    make = MAKERS.get(phi_type)
    surrogate = None if make is None else make(value, secret, lang, forbidden)
    # Where there is no choice left (initials, the number of a house), a mask is better.
    if (
        surrogate is None
        or fold_alnum(surrogate) == fold_alnum(value)
        or fold_alnum(surrogate) in forbidden
    ):
        return None
    return surrogate
