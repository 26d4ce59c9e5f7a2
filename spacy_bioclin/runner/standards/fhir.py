"""A Bundle of FHIR R4B for each note: the note as DocumentReference, and what was found in it.

Sources: the pages of FHIR R4B (4.3.0, https://hl7.org/fhir/R4B) for Bundle, DocumentReference,
Condition, Observation, MedicationStatement, AllergyIntolerance and FamilyMemberHistory; the
extension derivation-reference for the place in the text; the code AIAST of HL7 Terminology, by
which a reader knows that a machine found it.

The bundles are plain dicts. Ids are made of the note's id and the place in it: the same note gives
the same ids again, so a server that gets a bundle twice stores it once.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid5

from pydantic import Field
from spacy.tokens import Doc

from ...context.medication.record import Medication
from ...linking.references import BROAD, SEVERAL
from .dosage import make_dosages, make_observed_value
from .mapping import CodeSettings, Namespaces
from .mentions import Counts, Mention, read_mentions
from .relatives import find_relative
from .results import make_observation, read_results

Json = dict[str, Any]
Kind = Literal["Condition", "Observation", "MedicationStatement"]

# Labels that are written, and as what; others are left out and counted.
RESOURCES: dict[str, Kind | None] = {
    "DISEASE": "Condition",
    "PROBLEM": "Condition",
    "TUMOR_MORPHOLOGY": "Condition",
    "SYMPTOM": "Observation",
    "DRUG": "MedicationStatement",
    "CHEMICAL": "MedicationStatement",
}
_TERMINOLOGY = "http://terminology.hl7.org/CodeSystem"
_EXTENSION = "http://hl7.org/fhir/StructureDefinition"
_MACHINE = {
    "system": f"{_TERMINOLOGY}/v3-ObservationValue",
    "code": "AIAST",
    "display": "Artificial Intelligence asserted",
}
# Status of `ent._.medication` -> status of a MedicationStatement.
STATUSES = {
    "taking": "active",
    "stopped": "stopped",
    "held": "on-hold",
    "past": "completed",
    "not_taken": "not-taken",
    "unknown": "unknown",
}
_UNKNOWN = [{"url": f"{_EXTENSION}/data-absent-reason", "valueCode": "unknown"}]
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class FhirSettings(CodeSettings):
    """Settings of the resources, beside those of `CodeSettings`.

    resources (dict[str, str | None]): "Condition", "Observation" or "MedicationStatement" by label,
        added to `RESOURCES`; None leaves a label out.
    note_system (str | None): URI that says whose the ids of notes are.
    bundle (str): "transaction", which a server carries out as a whole, or "collection".
    words (bool): Write the words of mentions as text of their codes. Without them, a mention that
        has no code is left out.
    attach_text (bool): Put the text of the note into its DocumentReference.
    affirmed (str): verificationStatus of a Condition that is neither negated nor uncertain.
    uncertain (str): verificationStatus of an uncertain one.
    family (bool): Write what relatives have, as FamilyMemberHistory; otherwise it is left out.
    """

    resources: dict[str, Kind | None] = Field(default_factory=dict)
    note_system: str | None = None
    bundle: Literal["transaction", "collection"] = "transaction"
    words: bool = True
    attach_text: bool = False
    affirmed: Literal["confirmed", "unconfirmed"] = "confirmed"
    uncertain: Literal["provisional", "differential", "unconfirmed"] = "provisional"
    family: bool = True


def to_bundle(
    doc: Doc,
    *,
    note_id: str,
    settings: FhirSettings,
    subject: str | None = None,
    counts: Counts | None = None,
) -> Json:
    """Make the Bundle of a note.

    doc (Doc): The annotated note. It is not changed.
    note_id (str): Identifier of the note; it is written.
    subject (str | None): Reference to the patient, such as "Patient/17"; None if unknown.
    counts (Counter | None): Resources by type, and what was left out, are added to it.
    RETURNS (dict): A Bundle as plain JSON: first the note, then the mentions in order of the text,
        then the results of tests.
    """
    counts = Counter() if counts is None else counts
    namespaces = Namespaces(settings)
    patient: Json = {"reference": subject} if subject else {"extension": _UNKNOWN}
    note = _make_note(doc, note_id, settings, patient if subject else None)
    found = [note]
    kinds = {**RESOURCES, **settings.resources}
    drugs = [label for label, kind in kinds.items() if kind == "MedicationStatement"]
    observed: list[tuple[int, int]] = []
    for mention in read_mentions(doc, settings, counts, drugs):
        resource = _make_resource(mention, namespaces, settings, counts)
        if resource is not None:
            place = mention.start, mention.end, mention.label, mention.number
            resource["id"] = _make_id(note_id, settings, resource["resourceType"], *place)
            if resource["resourceType"] == "Observation":
                observed.append((mention.start, mention.end))
            found.append(_complete(resource, mention, patient, note["id"]))
    for mention, one in read_results(doc, settings.spans_key):
        if any(start <= mention.start < end for start, end in observed):
            continue  # "fiebre 38,2" has its value
        code = _make_code(mention, namespaces, settings, counts)
        if code is None:
            counts["left out, neither code nor words"] += 1
            continue
        resource = make_observation(doc, one, code)
        place = mention.start, mention.end, "result", mention.number
        resource["id"] = _make_id(note_id, settings, "Observation", *place)
        found.append(_complete(resource, mention, patient, note["id"]))
    counts.update(f"{each['resourceType']} written" for each in found)
    return {
        "resourceType": "Bundle",
        "id": _make_id(note_id, settings, "Bundle"),
        "type": settings.bundle,
        "entry": [_make_entry(each, settings) for each in found],
    }


def _make_id(note_id: str, settings: FhirSettings, *parts: str | int) -> str:
    """Make an id of what it names, a UUID of version 5."""
    name = json.dumps(["spacy-bioclin", settings.note_system, note_id, *parts])
    return str(uuid5(NAMESPACE_URL, name))


def _make_entry(resource: Json, settings: FhirSettings) -> Json:
    entry: Json = {"fullUrl": f"urn:uuid:{resource['id']}", "resource": resource}
    if settings.bundle == "transaction":
        url = f"{resource['resourceType']}/{resource['id']}"
        entry["request"] = {"method": "PUT", "url": url}
    return entry


def _make_note(doc: Doc, note_id: str, settings: FhirSettings, patient: Json | None) -> Json:
    text = doc.text.encode("utf-8")
    attachment: Json = {"contentType": "text/plain; charset=utf-8", "size": len(text)}
    if doc.lang_:
        attachment["language"] = doc.lang_
    if settings.attach_text and text:
        attachment["data"] = base64.b64encode(text).decode("ascii")
    identifier = {"value": note_id}
    if settings.note_system:
        identifier = {"system": settings.note_system, **identifier}
    note: Json = {
        "resourceType": "DocumentReference",
        "id": _make_id(note_id, settings, "DocumentReference"),
        "identifier": [identifier],
        "status": "current",
    }
    if patient is not None:
        note["subject"] = patient
    return {**note, "content": [{"attachment": attachment}]}


def _complete(resource: Json, mention: Mention, patient: Json, note: str) -> Json:
    """Add what all resources have: who found it, where, of whom, and how sure."""
    source = {"reference": f"urn:uuid:{note}"}
    place = {
        "url": f"{_EXTENSION}/derivation-reference",
        "extension": [
            {"url": "reference", "valueReference": source},
            {"url": "offset", "valueInteger": mention.start},
            {"url": "length", "valueInteger": mention.end - mention.start},
        ],
    }
    kind = resource.pop("resourceType")
    has_patient = kind in ("FamilyMemberHistory", "AllergyIntolerance")
    whose: Json = {"patient" if has_patient else "subject": patient}
    if kind == "Condition":
        whose["evidence"] = [{"detail": [source]}]
    elif not has_patient:
        whose["derivedFrom"] = [source]
    return {
        "resourceType": kind,
        "id": resource.pop("id"),
        "meta": {"security": [_MACHINE]},
        "extension": [place],
        **resource,
        **whose,
        "note": [{"text": ", ".join(_describe(mention))}],
    }


def _describe(mention: Mention) -> Iterator[str]:
    """Say what is known of a mention, without its words."""
    yield f"label {mention.label}"
    if mention.kb_id:
        yield f"id {mention.kb_id}"
    for code in mention.codes:
        if code.match == BROAD:
            yield f"broader code {code.system}:{code.code}"
    yield from sorted(mention.context or ())
    if mention.section:
        yield f"section {mention.section}"
    if mention.probability is not None:
        yield f"probability {mention.probability:.4f}"


def _make_resource(
    mention: Mention, namespaces: Namespaces, settings: FhirSettings, counts: Counts
) -> Json | None:
    """Make what is particular to a resource; None if the mention is left out, which is counted."""
    kind = {**RESOURCES, **settings.resources}.get(mention.label)
    if kind is None:
        counts[f"left out, label {mention.label}"] += 1
        return None
    context = mention.context
    if context is not None and "hypothetical" in context:
        counts["left out, hypothetical"] += 1
        return None
    of_family = context is not None and "family" in context
    if of_family and (reason := _refuse_family(mention, kind, settings)):
        counts[f"left out, family: {reason}"] += 1
        return None
    code = _make_code(mention, namespaces, settings, counts)
    if code is None:
        counts["left out, neither code nor words"] += 1
        return None
    if of_family:
        return _make_family(code, find_relative(mention.span))
    if kind == "Condition":
        status = _make_concept(f"{_TERMINOLOGY}/condition-ver-status", _verify(context, settings))
        return {"resourceType": kind, "verificationStatus": status, "code": code}
    if kind == "Observation":
        value = _make_value(mention)
        return {"resourceType": kind, "status": "preliminary", "code": code, **value}
    assert mention.medication is not None  # the labels of drugs
    if mention.medication.status == "allergy":
        return _make_allergy(code, context, settings)
    return _make_statement(code, mention.medication, settings, counts)


def _make_statement(
    code: Json, medication: Medication, settings: FhirSettings, counts: Counts
) -> Json:
    status = STATUSES[medication.status]
    statement: Json = {"resourceType": "MedicationStatement", "status": status}
    reason = medication.reason if settings.words and not medication.as_needed else None
    if reason and status in ("stopped", "on-hold"):
        statement["statusReason"] = [{"text": reason}]
    statement["medicationCodeableConcept"] = code
    if reason and "statusReason" not in statement:
        statement["reasonCode"] = [{"text": reason}]
    if dosages := make_dosages(medication, counts, words=settings.words):
        statement["dosage"] = dosages
    return statement


def _make_allergy(code: Json, context: frozenset[str] | None, settings: FhirSettings) -> Json:
    verified = _verify(context, settings)
    verified = verified if verified in ("confirmed", "refuted") else "unconfirmed"
    system = f"{_TERMINOLOGY}/allergyintolerance"
    clinical = "inactive" if verified == "refuted" else "active"
    return {
        "resourceType": "AllergyIntolerance",
        "clinicalStatus": _make_concept(f"{system}-clinical", clinical),
        "verificationStatus": _make_concept(f"{system}-verification", verified),
        "category": ["medication"],
        "code": code,
    }


def _make_concept(system: str, code: str) -> Json:
    return {"coding": [{"system": system, "code": code}]}


def _make_code(
    mention: Mention, namespaces: Namespaces, settings: FhirSettings, counts: Counts
) -> Json | None:
    """Make the CodeableConcept of a mention; None without code and words."""
    concept: Json = {}
    if mention.kb_id:
        code = namespaces.split(mention.kb_id)
        if code.system is None:
            counts["ids of a terminology without a system"] += 1
        else:
            coding = {"system": code.system, "code": code.value}
            concept["coding"] = [{**coding, "display": mention.name} if mention.name else coding]
        for other in mention.codes:
            translated = namespaces.normalize(other.system, other.code)
            # Of several codes, the note does not say which is meant.
            if translated.system and other.match != SEVERAL and translated != code:
                coding = {"system": translated.system, "code": translated.value}
                concept.setdefault("coding", []).append(coding)
    else:
        counts["mentions without an id"] += 1
    if settings.words:
        concept["text"] = " ".join(_CONTROL.sub(" ", mention.text).split())
    return concept or None


def _verify(context: frozenset[str] | None, settings: FhirSettings) -> str:
    """Find the verificationStatus. Without context nobody knows whether it is negated."""
    if context is None or {"negated", "uncertain"} <= context:
        return "unconfirmed"
    if "negated" in context:
        return "refuted"
    return settings.uncertain if "uncertain" in context else settings.affirmed


def _make_value(mention: Mention) -> Json:
    """Make the value of an Observation: its measurement, or whether it is there."""
    context = mention.context
    if context is None or "uncertain" in context:
        return {"dataAbsentReason": _make_concept(f"{_TERMINOLOGY}/data-absent-reason", "unknown")}
    if "negated" in context:
        return {"valueBoolean": False}
    return make_observed_value(mention) or {"valueBoolean": True}


def _refuse_family(mention: Mention, kind: Kind, settings: FhirSettings) -> str:
    """Say why a FamilyMemberHistory cannot hold what is said of a relative; "" if it can."""
    context = mention.context or frozenset()
    if not settings.family:
        return "set to be left out"
    if kind == "MedicationStatement":
        return "drug"
    return next((name for name in ("negated", "uncertain") if name in context), "")


def _make_family(code: Json, relative: str) -> Json:
    """Make the history of a relative."""
    return {
        "resourceType": "FamilyMemberHistory",
        "status": "partial",
        "relationship": _make_concept(f"{_TERMINOLOGY}/v3-RoleCode", relative),
        "condition": [{"code": code}],
    }
