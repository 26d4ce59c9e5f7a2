"""Label schemes for protected health information (PHI), and the mapping between them."""

from functools import cache, lru_cache
from pathlib import Path

import srsly

from ..errors import BioclinError
from ..text import fold_alnum

LABELS = Path(__file__).with_name("labels.yml")
ALIASES = Path(__file__).with_name("label_aliases.yml")
OTHER = "other"
SCHEMES = ("meddocan", "i2b2", "hipaa")


@cache
def load_types() -> dict[str, dict[str, str]]:
    """Load labels.yml: PHI type -> scheme -> label."""
    return srsly.read_yaml(LABELS)


@cache
def load_aliases() -> dict[str, str]:
    """Load label_aliases.yml: folded label of another scheme -> PHI type."""
    return {fold_alnum(label): phi_type for label, phi_type in srsly.read_yaml(ALIASES).items()}


def check_scheme(scheme: str) -> None:
    """Check that a scheme exists; else raise a BioclinError."""
    if scheme not in SCHEMES:
        raise BioclinError(f"scheme = {scheme!r}: want one of {', '.join(SCHEMES)}")


def scheme_labels(scheme: str) -> tuple[str, ...]:
    """List the labels of a scheme, in the order of the types."""
    check_scheme(scheme)
    return tuple(dict.fromkeys(labels[scheme] for labels in load_types().values()))


def label_of(phi_type: str, scheme: str) -> str:
    """Find the label of a PHI type in a scheme.

    RAISES (BioclinError): There is no such type or scheme.
    """
    check_scheme(scheme)
    types = load_types()
    if phi_type not in types:
        raise BioclinError(f"PHI type {phi_type!r}: want one of {', '.join(types)}")
    return types[phi_type][scheme]


@lru_cache(maxsize=1024)
def type_of(label: str, scheme: str | None = None) -> str | None:
    """Find the PHI type of a label.

    label (str): Label of any scheme, or an alias (label_aliases.yml).
    scheme (str | None): Its scheme; None for any, and for aliases.
    RETURNS (str | None): The first PHI type with this label; None if there is none.
    """
    for phi_type, labels in load_types().items():
        if label == labels.get(scheme, "") if scheme else label in labels.values():
            return phi_type
    return None if scheme else load_aliases().get(fold_alnum(label))


def map_label(label: str, scheme: str) -> str:
    """Map a label to a scheme.

    label (str): Label of any scheme, alias (label_aliases.yml) or PHI type.
    scheme (str): The target scheme.
    RETURNS (str): The label there. An unknown label becomes that of the type "other".
    """
    if label in scheme_labels(scheme):
        return label
    return label_of(phi_type_of(label) or OTHER, scheme)


@lru_cache(maxsize=1024)
def possible_labels(label: str, scheme: str) -> frozenset[str]:
    """List the labels of a scheme that a label may mean: "NAME" is a patient's or staff's.

    label (str): Label of any scheme.
    scheme (str): The target scheme.
    RETURNS (frozenset[str]): The label itself if the scheme has it; empty if no scheme has it.
    """
    if label in scheme_labels(scheme):
        return frozenset({label})
    types = load_types().values()
    return frozenset(labels[scheme] for labels in types if label in labels.values())


def phi_type_of(label: str, scheme: str | None = None) -> str | None:
    """Find the PHI type of a label, in its scheme first; a PHI type means itself."""
    return label if label in load_types() else type_of(label, scheme) or type_of(label)


def find_phi_type(label: str, scheme: str, value: str) -> str | None:
    """Find the PHI type of a span by its label, and by its text if the label has several."""
    phi_type = phi_type_of(label, scheme)
    if phi_type == "city" and sum(char.isdigit() for char in value) >= 4:
        return "postcode"  # MEDDOCAN has one label for both
    return phi_type
