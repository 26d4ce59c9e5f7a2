"""Numbers with units in FHIR R4B: values of observations, and how a drug is given.

Source: the pages of FHIR R4B for Quantity, Range, Timing and Dosage. Units are UCUM.
"""

from typing import Any

from ...context.measurements.measurement import Measurement
from ...context.medication.record import Medication
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


def make_dosages(medication: Medication, counts: Counts, *, words: bool) -> list[Json]:
    """Make the Dosages of a drug: one, or one for each amount of "1 al desayuno y medio a la cena".

    counts (Counter): Frequencies that a Timing cannot hold are added to it.
    words (bool): Write the reason of what is given as needed, in words of the note.
    RETURNS (list[dict]): Empty if nothing is known.
    """
    common: Json = {}
    if medication.taper:
        common["additionalInstruction"] = [{"text": "in decreasing doses"}]
    if medication.as_needed:
        reason = medication.reason if words else None
        common |= (
            {"asNeededCodeableConcept": {"text": reason}} if reason else {"asNeededBoolean": True}
        )
    if medication.route is not None:
        common["route"] = {"text": medication.route}
    bounds = _make_bounds(medication.duration)
    if any(each.amount is not None for each in medication.when):
        return [
            _make_dosage(
                common,
                {**bounds, "frequency": 1, "period": 1, "periodUnit": "d", "when": [each.code]},
                None if each.amount is None else _count(each.amount, each.unit),
                medication.dose if each.unit is None else None,
            )
            for each in medication.when
        ]
    repeat = {**_make_repeat(medication.frequency, counts), **bounds}
    if medication.when:
        repeat["when"] = [each.code for each in medication.when]
    amount = medication.amount
    if amount is None or amount.value == 1:
        dosage = _make_dosage(common, repeat, _make_dose(medication.dose), None)
    else:  # two tablets of 500 mg
        dosage = _make_dosage(common, repeat, _make_dose(amount), medication.dose)
    return [dosage] if dosage else []


def _make_dosage(
    common: Json, repeat: Json, dose: Json | None, strength: Measurement | None
) -> Json:
    """Make a Dosage. FHIR has no place for the strength of what is counted but its text."""
    dosage: Json = {}
    if strength is not None and isinstance(strength.value, float):
        dosage["text"] = f"{strength.value:.10g} {strength.unit or ''}".rstrip()
    if repeat:
        dosage["timing"] = {"repeat": repeat}
    dosage |= {key: value for key, value in common.items() if key not in dosage}
    if dose is not None:
        dosage["doseAndRate"] = [dose]
    return dosage


def _count(amount: float, unit: str | None) -> Json:
    return {"doseQuantity": make_quantity(amount, unit)}


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
    if unit is None:  # so many times in all
        return {"count": round(times)}
    if unit in _PERIODS and frequency.high is None and times > 0:
        if abs(times - round(times)) < 1e-6:
            return {"frequency": round(times), "period": 1, "periodUnit": unit}
        if abs(1 / times - round(1 / times)) < 1e-2:
            return {"frequency": 1, "period": round(1 / times), "periodUnit": unit}
    counts["frequencies that a Timing cannot hold"] += 1
    return {}
