"""Results of tests in FHIR R4B and OMOP: Observations, and rows of the table MEASUREMENT.

Sources: the pages of FHIR R4B for Observation and its vital signs
(https://hl7.org/fhir/R4B/observation-vitalsigns.html, which names the LOINC codes of the two blood
pressures); OMOP CDM 5.4, MEASUREMENT, https://ohdsi.github.io/CommonDataModel/cdm54.html#measurement.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, NamedTuple

from spacy.tokens import Doc

from ...context.measurements.results.doc import get_name_span, get_results, is_vital
from ...context.measurements.results.result import Result
from ...context.sections.result import get_section
from ...spans import get_spans, is_annotated
from .dosage import make_quantity
from .mapping import CodeSettings, ConceptMap, Namespaces, Target
from .mentions import Counts, Mention

Json = dict[str, Any]
LABEL = "TEST"
_TERMINOLOGY = "http://terminology.hl7.org/CodeSystem"
_SNOMED = "http://snomed.info/sct"
_QUALIFIERS = {"positive": "10828004", "negative": "260385009", "normal": "17621005"}
_PRESSURES = (("8480-6", "Systolic blood pressure"), ("8462-4", "Diastolic blood pressure"))
# Concepts of OMOP that stand for themselves: operators, the type "NLP".
_OPERATORS = {"<": 4171756, "<=": 4171754, ">": 4172704, ">=": 4171755}
_TYPE_NLP = 32858
_SOURCE_VALUE = 50  # characters of the columns *_source_value


def read_results(doc: Doc, spans_key: str | None) -> Iterator[tuple[Mention, Result]]:
    """Read the results of a Doc, each with a mention that stands for it.

    spans_key (str | None): Layer of the mentions, whose ids a name has; None for `doc.ents`.
    YIELDS (tuple[Mention, Result]): The mention is at the value, and has the words of the name.
    """
    found = get_results(doc)
    layer = get_spans(doc, spans_key) if found and is_annotated(doc, spans_key) else ()
    ids = {token.i: span.kb_id_ for span in layer if span.label_.upper() == LABEL for token in span}
    numbers: Counter[tuple[int, int]] = Counter()
    for one in found:
        name = get_name_span(doc, one)
        place = one.start_char, one.end_char
        yield (
            Mention(
                span=name,
                start=one.start_char,
                end=one.end_char,
                text=one.name,
                label=LABEL,
                kb_id=next((ids[token.i] for token in name if ids.get(token.i)), ""),
                name=None,
                codes=(),
                probability=None,
                section=get_section(name),
                loinc=None,
                context=None,
                medication=None,
                number=numbers[place],
            ),
            one,
        )
        numbers[place] += 1


def make_observation(doc: Doc, one: Result, code: Json) -> Json:
    """Make what is particular to the Observation of a result.

    code (dict): CodeableConcept of its name.
    """
    resource: Json = {"resourceType": "Observation", "status": "preliminary"}
    if is_vital(doc, one):
        category = {"system": f"{_TERMINOLOGY}/observation-category", "code": "vital-signs"}
        resource["category"] = [{"coding": [category]}]
    resource["code"] = code
    if one.date is not None:
        resource["effectiveDateTime"] = one.date
    resource.update(_make_value(one))
    if one.flag is not None:
        system = f"{_TERMINOLOGY}/v3-ObservationInterpretation"
        resource["interpretation"] = [{"coding": [{"system": system, "code": one.flag}]}]
    limits = {"low": one.low_limit, "high": one.high_limit}
    if any(limit is not None for limit in limits.values()):
        resource["referenceRange"] = [
            {
                side: make_quantity(limit, one.unit)
                for side, limit in limits.items()
                if limit is not None
            }
        ]
    return resource


def _make_value(one: Result) -> Json:
    if isinstance(one.value, str):
        if (snomed := _QUALIFIERS.get(one.value)) is None:
            return {"valueString": one.value}
        coding = {"system": _SNOMED, "code": snomed}
        return {"valueCodeableConcept": {"coding": [coding], "text": one.value}}
    if isinstance(one.value, tuple):
        return {"valueString": "/".join(f"{number:.10g}" for number in one.value)}
    if one.high is None:
        return {"valueQuantity": make_quantity(one.value, one.unit, one.comparator)}
    both = make_quantity(one.value, one.unit), make_quantity(one.high, one.unit)
    if one.kind == "range":
        return {"valueRange": {"low": both[0], "high": both[1]}}
    return {
        "component": [
            {
                "code": {"coding": [{"system": "http://loinc.org", "code": code, "display": name}]},
                "valueQuantity": quantity,
            }
            for (code, name), quantity in zip(_PRESSURES, both, strict=True)
        ]
    }


class MeasurementRow(NamedTuple):
    """A row of MEASUREMENT; the columns in the order of the CDM. Ids that nobody knows are None."""

    measurement_id: int
    person_id: int
    measurement_concept_id: int
    measurement_date: date
    measurement_datetime: datetime | None
    measurement_time: str | None
    measurement_type_concept_id: int
    operator_concept_id: int | None
    value_as_number: float | None
    value_as_concept_id: int | None
    unit_concept_id: int | None
    range_low: float | None
    range_high: float | None
    provider_id: int | None
    visit_occurrence_id: int | None
    visit_detail_id: int | None
    measurement_source_value: str | None
    measurement_source_concept_id: int | None
    unit_source_value: str | None
    unit_source_concept_id: int | None
    value_source_value: str | None
    measurement_event_id: int | None
    meas_event_field_concept_id: int | None


def to_measurements(
    doc: Doc,
    *,
    person_id: int,
    first_id: int,
    note_date: date,
    settings: CodeSettings,
    concepts: ConceptMap | None = None,
    counts: Counts | None = None,
) -> list[MeasurementRow]:
    """Make the rows of MEASUREMENT of a note, one for each number of its results.

    A blood pressure has two rows, whose source values say which; so has a range. Units are looked
    up in the table of concepts as codes of UCUM, "positive" and "negative" as codes of SNOMED CT.

    doc (Doc): The annotated note. It is not changed.
    first_id (int): The measurement_id of the first row; the others follow.
    note_date (date): Date of results that have none of their own.
    concepts (ConceptMap | None): Concepts by code; None if there is no table.
    counts (Counter | None): Rows, and what was not mapped, are added to it.
    RETURNS (list[MeasurementRow]): In order of the text. `measurement_source_value` holds words of
        the note.
    """
    counts = Counter() if counts is None else counts
    namespaces, concepts = Namespaces(settings), concepts or ConceptMap({})

    def find(namespace: str, code: str) -> int:
        found = concepts.find(namespaces.normalize(namespace, code))
        return found[0].concept_id if found else 0

    rows: list[MeasurementRow] = []
    for mention, one in read_results(doc, settings.spans_key):
        found = concepts.find(namespaces.split(mention.kb_id)) if mention.kb_id else ()
        target = found[0] if found else Target(0, 0)
        day = date.fromisoformat(one.date) if one.date else note_date
        for part, number, written in _list_numbers(one):
            concept = find("LOINC", part) if part and not target.concept_id else target.concept_id
            snomed = _QUALIFIERS.get(one.value) if isinstance(one.value, str) else None
            counts["measurements without a concept"] += concept == 0
            rows.append(
                MeasurementRow(
                    measurement_id=first_id + len(rows),
                    person_id=person_id,
                    measurement_concept_id=concept,
                    measurement_date=day,
                    measurement_datetime=None,
                    measurement_time=None,
                    measurement_type_concept_id=_TYPE_NLP,
                    operator_concept_id=_OPERATORS.get(one.comparator or ""),
                    value_as_number=number,
                    value_as_concept_id=find("SNOMEDCT", snomed) if snomed else None,
                    unit_concept_id=find("UCUM", one.unit) if one.unit else None,
                    range_low=one.low_limit,
                    range_high=one.high_limit,
                    provider_id=None,
                    visit_occurrence_id=None,
                    visit_detail_id=None,
                    measurement_source_value=one.name[:_SOURCE_VALUE],
                    measurement_source_concept_id=target.source_concept_id,
                    unit_source_value=one.unit,
                    unit_source_concept_id=None,
                    value_source_value=written[:_SOURCE_VALUE],
                    measurement_event_id=None,
                    meas_event_field_concept_id=None,
                )
            )
    counts["measurement rows"] += len(rows)
    return rows


def _list_numbers(one: Result) -> Iterator[tuple[str | None, float | None, str]]:
    """List the numbers of a result: LOINC code of the part, number, and how it is written."""
    if isinstance(one.value, str):
        yield None, None, one.value
        return
    numbers = one.value if isinstance(one.value, tuple) else (one.value,)
    if one.high is not None:
        numbers = (*numbers, one.high)
    is_pressure = one.kind == "blood_pressure"
    for at, number in enumerate(numbers):
        written = f"{one.comparator or ''}{number:.10g}"
        if is_pressure:
            written = f"{('systolic', 'diastolic')[at]} {written}"
        yield _PRESSURES[at][0] if is_pressure else None, number, written
