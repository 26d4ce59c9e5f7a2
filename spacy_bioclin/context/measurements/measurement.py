"""A measurement of a text, with its value as numbers."""

from typing import NamedTuple

from ...errors import BioclinError
from .convert import convert

KINDS = (
    "quantity",
    "range",
    "blood_pressure",
    "size",
    "duration",
    "age",
    "frequency",
    "date",
)
COMPARATORS = ("<", "<=", ">", ">=", "~")
# UCUM's units of time -> ISO 8601: whether they stand after "T", and their letter.
_ISO = {
    "s": ("T", "S"),
    "min": ("T", "M"),
    "h": ("T", "H"),
    "d": ("", "D"),
    "wk": ("", "W"),
    "mo": ("", "M"),
    "a": ("", "Y"),
}


class Measurement(NamedTuple):
    """A quantity, a time or a date in a text.

    kind (str): One of `KINDS`.
    value (float | tuple[float, ...] | str): The number as the text has it, not converted; of a
        "size" all numbers, of a "frequency" how many times in one `unit` of time, of a "date" ISO
        8601 as precise as the text ("2014-03-12", "2011-05", "2009").
    high (float | None): The second number of a range ("3-5 cm", "2 or 3 days"), the diastolic one
        of a "blood_pressure".
    comparator (str | None): "<", "<=", ">", ">=" or "~" (about).
    unit (str | None): In UCUM; None if the text has no unit.
    start_char (int): Code points of the untouched text.
    end_char (int): Exclusive.
    """

    kind: str
    value: float | tuple[float, ...] | str
    high: float | None
    comparator: str | None
    unit: str | None
    start_char: int
    end_char: int

    @property
    def iso_duration(self) -> str | None:
        """The duration or age as ISO 8601 ("P3D", "PT8H"); None for other kinds and ranges."""
        if self.kind not in ("duration", "age") or self.unit not in _ISO or self.high is not None:
            return None
        before, letter = _ISO[self.unit]
        return f"P{before}{self.value:.10g}{letter}"

    def to(self, unit: str) -> "Measurement":
        """Convert to another unit. Needs the extra `units` (pint and ucumvert).

        unit (str): A UCUM code.
        RETURNS (Measurement): The same with other numbers and the new unit.
        RAISES (BioclinError): The extra is not installed, or the units do not fit.
        """
        if self.unit is None or isinstance(self.value, str):
            raise BioclinError(f"A {self.kind} without a unit cannot be converted to {unit!r}")
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        numbers = values if self.high is None else (*values, self.high)
        changed = convert(numbers, self.unit, unit)
        return self._replace(
            value=tuple(changed[: len(values)]) if isinstance(self.value, tuple) else changed[0],
            high=None if self.high is None else changed[-1],
            unit=unit,
        )
