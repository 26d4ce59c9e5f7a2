"""Numbers with units in FHIR R4B: values of observations, and how a drug is given.

Source: the pages of FHIR R4B for Quantity, Range, Timing and Dosage. Units are UCUM.
"""

from typing import Any

from ...context.measurements.measurement import Measurement
from ...context.medication.record import get_medication
from .mentions import Counts, Mention, find_measurement

Json = dict[str, Any]
UCUM = "http://unitsofmeasure.org"
_COMPARATORS = ("<", "<=", ">=", ">")  # FHIR has none for "about"
_PERIODS = ("s", "min", "h", "d", "wk", "mo", "a")


def make_quantity(value: float, unit: str | None, comparator: str | None = None) -> Json:
    """Make a Quantity."""
    quantity: Json = {"value": _shorten(value)}
    if comparator in _COMPARATORS:
        quantity["comparator"] = comparator
    if unit is not None:
        quantity.update({"unit": unit, "system": UCUM, "code": unit})
    return quantity


def _shorten(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _is_range(one: Measurement) -> bool:
    ordered = isinstance(one.value, float) and one.high is not None and one.value <= one.high
    return one.kind == "range" and ordered


def _make_range(one: Measurement) -> Json:
    assert not isinstance(one.value, str | tuple) and one.high is not None  # a range has two
    return {"low": make_quantity(one.value, one.unit), "high": make_quantity(one.high, one.unit)}


def make_observed_value(mention: Mention) -> Json | None:
    """Make value[x] of the measurement within a mention: a quantity or a range.

    RETURNS (dict | None): None if there is no measurement, or one of another kind.
    """
    one = find_measurement(mention)
    if one is None or isinstance(one.value, str | tuple):
        return None
    if _is_range(one):
        return {"valueRange": _make_range(one)}
    if one.kind == "quantity" and one.high is None:
        return {"valueQuantity": make_quantity(one.value, one.unit, one.comparator)}
    return None


def make_dosage(mention: Mention, counts: Counts) -> Json | None:
    """Make the Dosage of a drug from dose, route, frequency and duration of its sentence.

    counts (Counter): Frequencies that a Timing cannot hold are added to it.
    RETURNS (dict | None): None if nothing is known, or the Doc has no sentences.
    """
    doc = mention.span.doc
    medication = get_medication(mention.span) if doc.has_annotation("SENT_START") else None
    if medication is None:
        return None
    dosage: Json = {}
    repeat = {
        **_make_repeat(medication.frequency, counts),
        **_make_bounds(medication.duration),
    }
    if repeat:
        dosage["timing"] = {"repeat": repeat}
    if medication.route is not None:
        dosage["route"] = {"text": medication.route}
    if (dose := _make_dose(medication.dose)) is not None:
        dosage["doseAndRate"] = [dose]
    return dosage or None


def _make_dose(dose: Measurement | None) -> Json | None:
    """Make dose or rate: how much each time, or how much in a unit of time ("mg/d")."""
    if dose is None or not isinstance(dose.value, float):
        return None
    is_rate = dose.unit is not None and dose.unit.rpartition("/")[2] in _PERIODS
    if _is_range(dose):
        return {"rateRange" if is_rate else "doseRange": _make_range(dose)}
    if dose.high is not None:
        return None
    quantity = make_quantity(dose.value, dose.unit)
    return {"rateQuantity" if is_rate else "doseQuantity": quantity}


def _make_bounds(duration: Measurement | None) -> Json:
    """Make the bounds of a Timing: for how long a drug is given."""
    if duration is None or not isinstance(duration.value, float) or duration.unit not in _PERIODS:
        return {}
    low = make_quantity(duration.value, duration.unit)
    if duration.high is None:
        return {"boundsDuration": low}
    return {"boundsRange": {"low": low, "high": make_quantity(duration.high, duration.unit)}}


def _make_repeat(frequency: Measurement | None, counts: Counts) -> Json:
    """Make the frequency of a Timing: whole times in one unit, or once in several units."""
    if frequency is None or not isinstance(frequency.value, float):
        return {}
    times, unit = frequency.value, frequency.unit
    if unit in _PERIODS and frequency.high is None and times > 0:
        if abs(times - round(times)) < 1e-6:
            return {"frequency": round(times), "period": 1, "periodUnit": unit}
        if abs(1 / times - round(1 / times)) < 1e-2:
            return {"frequency": 1, "period": round(1 / times), "periodUnit": unit}
    counts["frequencies that a Timing cannot hold"] += 1
    return {}
