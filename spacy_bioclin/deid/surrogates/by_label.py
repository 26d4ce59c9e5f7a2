"""Replace a value with a plausible other one, for each type of PHI.

Everything is derived from the secret key, the patient and the value: there is no lookup table, and
another run or another machine gives the same as long as its Faker has the same lists
(constraints.txt).
"""

from collections.abc import Callable
from functools import partial

from ...text import drop_invisible, fold_alnum
from .addresses import make_address
from .context import SurrogateContext
from .dates import shift_dates
from .identifiers import make_identifier, make_phone
from .online import make_email, make_ip_address, make_url, make_user_name
from .persons import make_name
from .places import make_country, make_place, make_postcode, make_profession

MAKERS: dict[str, Callable[[str, SurrogateContext], str | None]] = {
    "patient_name": make_name,
    "staff_name": make_name,
    "user_name": make_user_name,
    "profession": make_profession,
    "hospital": partial(make_address, kind="hospital"),
    "health_centre": partial(make_address, kind="health_centre"),
    "organization": partial(make_address, kind="organization"),
    "street": partial(make_address, kind="street"),
    "city": make_place,
    "state": partial(make_place, is_area=True),
    "other_place": make_place,
    "postcode": make_postcode,
    "country": make_country,
    "phone": make_phone,
    "fax": make_phone,
    "email": make_email,
    "url": make_url,
    "ip_address": make_ip_address,
    # One purpose for all identifiers: detectors do not always agree on which number it is.
    "cadastre": make_identifier,
    "record_id": make_identifier,
    "national_id": make_identifier,
    "contact_id": make_identifier,
    "insurance_id": make_identifier,
    "licence_id": make_identifier,
    "health_plan_id": make_identifier,
    "staff_id": make_identifier,
    "account": make_identifier,
    "vehicle": make_identifier,
    "device": make_identifier,
    "biometric": make_identifier,
    "other_id": make_identifier,
}
# Longer values are mistakes of a detector; patterns may need quadratic time for them.
MAX_CHARS = 500
# Free text, or values of which there is no list: they are masked.
WITHOUT_SURROGATE = ("relative", "age", "sex", "photo", "other")


def make_surrogate(value: str, phi_type: str, context: SurrogateContext) -> str | None:
    """Make the value that replaces a real one.

    value (str): The text in the note.
    phi_type (str): Type of labels.yml.
    RETURNS (str | None): In the form of the original, and never equal to it; None if the type has
        no surrogates (WITHOUT_SURROGATE), or the value is not what its type says.
    """
    if len(value) > MAX_CHARS:
        return None
    key = phi_type, value
    if key not in context.made:
        context.made[key] = _make(value, phi_type, context)
    return context.made[key]


def _make(value: str, phi_type: str, context: SurrogateContext) -> str | None:
    value = drop_invisible(value)
    if phi_type == "date":
        return shift_dates(value, context)  # it may be another date of the note
    make = MAKERS.get(phi_type)
    surrogate = None if make is None else make(value, context)
    folded = fold_alnum(surrogate or "")
    # Without a choice (initials, the number of a house), a mask is better.
    return None if folded == fold_alnum(value) or folded in context.forbidden else surrogate
