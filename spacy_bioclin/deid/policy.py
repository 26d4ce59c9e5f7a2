"""What is to be done with each kind of PHI: a policy, from YAML or a component's config."""

import difflib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from ..errors import BioclinError
from .labels import SCHEMES, label_of, load_types, scheme_labels, type_of

# What may be done with a PHI span; operators.py says how.
OPERATORS = (
    *("keep", "redact", "mask", "mask_number"),
    *("generalize", "hash", "encrypt", "surrogate"),
)
KEYED = ("hash", "encrypt", "surrogate")
OVERLAPS = ("confident", "longest")
SETTINGS = ("scheme", "default", "operators", "keep_weekdays", "overlaps")


class Policy(NamedTuple):
    """A de-identification policy.

    scheme (str): Label scheme of the output: meddocan, i2b2 or hipaa.
    default (str): Operator for what `operators` does not name.
    operators (dict[str, str]): Label of any scheme, or PHI type (labels.yml) -> operator. A type
        goes before a label.
    keep_weekdays (bool): Dates move by whole weeks.
    overlaps (str): Which of two overlapping spans gives the label: the most "confident" or the
        "longest". Either way every character of both is treated.
    """

    scheme: str
    default: str
    operators: dict[str, str]
    keep_weekdays: bool
    overlaps: str

    def operator_for(self, label: str, phi_type: str | None) -> str:
        """RETURNS (str): Name of the operator for a span."""
        if phi_type in self.operators:
            return self.operators[phi_type]
        if label in self.operators:
            return self.operators[label]
        if phi_type is not None:
            for scheme in SCHEMES:
                operator = self.operators.get(label_of(phi_type, scheme))
                if operator is not None:
                    return operator
        return self.default

    @property
    def needs_key(self) -> bool:
        """RETURNS (bool): Some operator derives from the secret key."""
        return any(operator in KEYED for operator in (self.default, *self.operators.values()))

    @property
    def hash(self) -> str:
        """RETURNS (str): Says in an audit which policy it was: 16 hexadecimal digits."""
        content = json.dumps(self._asdict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode("ascii")).hexdigest()[:16]


def make_policy(settings: Mapping[str, Any] | None, *, lang: str, source: str) -> Policy:
    """Check the settings of a policy. The defaults stand here: mask, the most confident.

    settings (Mapping | None): Fields of `Policy` as YAML gives them; None for a type mask of
        everything.
    lang (str): Decides the scheme where the settings name none: meddocan for Spanish, else i2b2.
    source (str): File or component, for messages.
    RAISES (BioclinError): A setting, label or operator that does not exist.
    """
    settings = {} if settings is None else dict(settings)
    for key in settings:
        _check(key, SETTINGS, f"{source}: setting")
    scheme = settings.get("scheme") or ("meddocan" if lang == "es" else "i2b2")
    _check(scheme, SCHEMES, f"{source}: scheme")
    default = settings.get("default", "mask")
    _check(default, OPERATORS, f"{source}: default")
    operators = settings.get("operators") or {}
    if not isinstance(operators, Mapping):
        raise BioclinError(f"{source}: operators is no table; write one LABEL: OPERATOR a line")
    known = [*load_types(), *(label for name in SCHEMES for label in scheme_labels(name))]
    for label, operator in operators.items():
        _check(label, known, f"{source}: label")
        _check(operator, OPERATORS, f"{source}: operators.{label}")
    overlaps = settings.get("overlaps", "confident")
    _check(overlaps, OVERLAPS, f"{source}: overlaps")
    keep_weekdays = settings.get("keep_weekdays", False)
    if not isinstance(keep_weekdays, bool):
        raise BioclinError(f"{source}: keep_weekdays = {keep_weekdays!r}: want true or false")
    return Policy(scheme, default, dict(operators), keep_weekdays, overlaps)


def load_policy(path: Path, *, lang: str) -> Policy:
    """Read a policy from a YAML file.

    RAISES (BioclinError): The file cannot be read, is no YAML table, or says what does not exist.
    """
    try:
        settings = srsly.yaml_loads(path.read_text("utf-8"))
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise BioclinError(f"{path}: not YAML; see docs/deidentification.md for a policy") from None
    if settings is not None and not isinstance(settings, Mapping):
        raise BioclinError(f"{path}: no table of settings: want {', '.join(SETTINGS)}")
    return make_policy(settings, lang=lang, source=str(path))


def phi_type_of(label: str, scheme: str) -> str | None:
    """RETURNS (str | None): PHI type of a label; of a type, itself. The scheme goes first."""
    return label if label in load_types() else type_of(label, scheme) or type_of(label)


def find_phi_type(label: str, scheme: str, value: str) -> str | None:
    """RETURNS (str | None): PHI type of a span: by its label, and by its text where the label means
    several."""
    phi_type = phi_type_of(label, scheme)
    if phi_type == "city" and sum(char.isdigit() for char in value) >= 4:
        return "postcode"  # MEDDOCAN has one label for both
    return phi_type


def _check(value: Any, known: Any, what: str) -> None:
    if value not in known:
        close = difflib.get_close_matches(str(value), list(known), n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}? " if close else ""
        raise BioclinError(f"{what} {value!r} is unknown: {hint}Known: {', '.join(known)}")
