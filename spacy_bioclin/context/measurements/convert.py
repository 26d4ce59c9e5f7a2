"""Convert measurements between units with pint and ucumvert, if they are installed."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...errors import BioclinError, first_line, without_context

_COUNTED = re.compile(r"\{[^{}]*\}")
MISSING = (
    "Converting units needs the extra 'units': pip install 'spacy-bioclin[units]' (pint and "
    "ucumvert)"
)


@without_context()
def convert(numbers: Sequence[float], old: str, new: str) -> list[float]:
    """Convert numbers from one unit to another.

    old (str): A UCUM code.
    new (str): A UCUM code.
    RAISES (BioclinError): The extra is not installed, or the units do not fit.
    """
    if sorted(_COUNTED.findall(old)) != sorted(_COUNTED.findall(new)):
        raise BioclinError(f"{old} and {new} count different things")
    registry, source, target = _registry(), _find_unit(old), _find_unit(new)
    try:
        return [float(registry.Quantity(each, source).to(target).magnitude) for each in numbers]
    except Exception as error:
        raise BioclinError(f"{old} cannot be converted to {new}: {first_line(error)}") from None


def _find_unit(code: str) -> Any:
    """Read a UCUM code; what is in braces is a comment that says what is counted."""
    registry = _registry()
    bare = re.sub(r"(?:^|\.)\{[^{}]*\}|\{[^{}]*\}", "", code)
    if not bare:
        return registry.dimensionless
    try:
        found = registry.from_ucum(bare)
        return found.units if hasattr(found, "units") and found.magnitude == 1 else found
    except Exception as error:
        raise BioclinError(f"{code!r} is not a unit of UCUM: {first_line(error)}") from None


@lru_cache(maxsize=1)
def _registry() -> Any:
    try:
        from ucumvert import PintUcumRegistry
    except ImportError:
        raise BioclinError(MISSING) from None
    return PintUcumRegistry()
