"""Colours of labels: the same label has the same colour in every note and every run.

A colour never stands alone: the label is always written beside it.
"""

from zlib import crc32

from ..context.rules.attributes import CUE
from ..deid.labels import phi_type_of

# Behind black text: a contrast of 14 to 1.
TINTS = (
    "#ffcfc8",  # red
    "#ffd1af",  # orange
    "#f1d7a2",  # yellow
    "#d2e0a9",  # lime
    "#b5e6be",  # green
    "#9de8dd",  # teal
    "#a0e4fa",  # cyan
    "#badeff",  # blue
    "#dbd5ff",  # violet
    "#f7ccf9",  # pink
)
# Lines, and behind black text: at least 3 to 1 on white and on black pages, and 4.5 to the text.
LINES = (
    "#d8716b",
    "#ce7a3b",
    "#b48811",
    "#839830",
    "#47a15f",
    "#00a193",
    "#009cc1",
    "#5591dd",
    "#9283dc",
    "#bc76c0",
)
# Positions in both lists.
RED, ORANGE, YELLOW, LIME, GREEN, TEAL, CYAN, BLUE, VIOLET, PINK = range(10)
FIXED = {
    "DISEASE": RED,
    "SYMPTOM": ORANGE,
    "TEST": YELLOW,
    "TEST_VALUE": YELLOW,
    "LAB_VALUE": YELLOW,
    "DEVICE": LIME,
    "ANATOMY": LIME,
    "PROCEDURE": GREEN,
    "PROTEIN": TEAL,
    "GENE": TEAL,
    "DOSE": CYAN,
    "DOSAGE": CYAN,
    "DRUG": BLUE,
    "TUMOR_MORPHOLOGY": VIOLET,
    "SPECIES": PINK,
    "negated": RED,
    "uncertain": YELLOW,
    "historical": TEAL,
    "hypothetical": VIOLET,
    "family": BLUE,
}
# Types of PHI, see `spacy_bioclin.deid.labels`.
PHI = {
    RED: ("patient_name", "relative"),
    PINK: ("staff_name",),
    LIME: ("age", "sex", "profession"),
    YELLOW: ("date",),
    BLUE: ("hospital", "health_centre", "organization"),
    CYAN: ("street", "city", "state", "postcode", "country", "other_place", "cadastre"),
    VIOLET: ("phone", "fax", "email", "url", "ip_address", "user_name"),
    GREEN: ("record_id", "national_id", "contact_id", "insurance_id", "health_plan_id"),
    TEAL: ("licence_id", "staff_id", "account", "vehicle", "device", "other_id"),
    ORANGE: ("biometric", "photo", "other"),
}
OF_TYPE = {phi_type: position for position, types in PHI.items() for phi_type in types}


def choose_tint(label: str) -> str:
    """Choose the colour behind the text of a label."""
    return TINTS[_find_position(label)]


def choose_line(label: str) -> str:
    """Choose the colour of the line below the text of a label."""
    return LINES[_find_position(label)]


def _find_position(label: str) -> int:
    """Find the position of a label: labels of PHI have that of their type, in every scheme."""
    kind = label.removesuffix(CUE)
    if kind in FIXED:
        return FIXED[kind]
    phi_type = phi_type_of(label)
    return OF_TYPE[phi_type] if phi_type else crc32(label.encode("utf-8")) % len(TINTS)
