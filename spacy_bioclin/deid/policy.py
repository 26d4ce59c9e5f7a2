"""What to do with each kind of PHI: a policy, from YAML or from a component's config."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field

from ..settings import Settings, check_choice, read_settings, read_yaml
from .labels import SCHEMES, label_of, load_types, scheme_labels

# What may be done with a PHI span; operators.py says how.
Operator = Literal[
    "keep", "redact", "mask", "mask_number", "generalize", "hash", "encrypt", "surrogate"
]
OPERATORS = get_args(Operator)
KEYED = ("hash", "encrypt", "surrogate")


@cache
def _label_names() -> tuple[str, ...]:
    return (*load_types(), *(label for scheme in SCHEMES for label in scheme_labels(scheme)))


Label = Annotated[str, AfterValidator(lambda label: check_choice(label, _label_names()))]


class Policy(Settings):
    """A de-identification policy.

    scheme (str): Label scheme of the output: meddocan, i2b2 or hipaa.
    default (str): Operator for labels that are not in `operators`.
    operators (dict[str, str]): Label of any scheme, or PHI type (labels.yml) -> operator. A type
        takes precedence over a label.
    keep_weekdays (bool): Dates move by whole weeks.
    overlaps (str): Which of two overlapping spans gives the label: the most "confident" or the
        "longest". Either way every character of both is treated.
    """

    scheme: Literal["meddocan", "i2b2", "hipaa"]
    default: Operator = "mask"
    operators: dict[Label, Operator] = Field(default_factory=dict)
    keep_weekdays: bool = False
    overlaps: Literal["confident", "longest"] = "confident"

    def operator_for(self, label: str, phi_type: str | None) -> str:
        """Choose the operator for a span, by its PHI type, its label, or that of another scheme."""
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
        """Whether some operator derives from the secret key."""
        return any(operator in KEYED for operator in (self.default, *self.operators.values()))

    @property
    def hash(self) -> str:
        """Hash of the settings, which identifies the policy in an audit: 16 hexadecimal digits."""
        content = json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode("ascii")).hexdigest()[:16]


def make_policy(settings: Mapping[str, Any] | None, *, lang: str, source: str) -> Policy:
    """Check the settings of a policy and fill in the defaults.

    settings (Mapping | None): Fields of `Policy`; null counts as left out. None masks everything.
    lang (str): Decides the scheme if the settings name none: meddocan for Spanish, else i2b2.
    source (str): File or component, for messages.
    RAISES (BioclinError): A setting, label or operator that does not exist.
    """
    if settings is None or isinstance(settings, Mapping):
        given = {key: value for key, value in (settings or {}).items() if value is not None}
        settings = {"scheme": "meddocan" if lang == "es" else "i2b2", **given}
    return read_settings(Policy, settings, where=source)


def load_policy(path: Path, *, lang: str) -> Policy:
    """Read a policy from a YAML file.

    RAISES (BioclinError): The file cannot be read, is not YAML, or has a mistake in it.
    """
    return make_policy(read_yaml(path), lang=lang, source=str(path))
