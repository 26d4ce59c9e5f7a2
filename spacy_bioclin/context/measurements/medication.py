"""Read dose, route, frequency and duration of a drug from its sentence."""

import re
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ...errors import BioclinError
from .measurement import Measurement
from .rules.numbers import read_digits
from .rules.units import DOSE_FORMS, TIMES
from .store import get_settings, measurements_between

# Written routes of administration -> SNOMED-like plain names.
ROUTES = {
    "oral": "v.o. vo p.o. po oral orally oralmente vía_oral via_oral by_mouth",
    "intravenous": "i.v. iv e.v. ev intravenoso intravenosa intravenous intravenously endovenoso"
    " endovenosa",
    "subcutaneous": "s.c. sc subcutáneo subcutánea subcutaneo subcutanea subcutaneous subq sq"
    " subcutaneously",
    "intramuscular": "i.m. im intramuscular intramuscularly",
    "inhaled": "inh inhaler inhalador inhalado inhalada inhaled nebulizado"
    " nebulizada nebulized inhalatoria",
    "sublingual": "s.l. sl sublingual",
    "topical": "tópico tópica topico topica topical topically cutánea",
    "transdermal": "transdérmico transdérmica transdermal parche parches patch",
    "rectal": "rectal p.r. pr",
    "ophthalmic": "oftálmico oftálmica ophthalmic colirio both_eyes each_eye"
    " ambos_ojos cada_ojo ou",
    "nasal": "nasal intranasal",
    "vaginal": "vaginal",
    "intrathecal": "intratecal intrathecal",
    "epidural": "epidural peridural",
}
_BY_FORM = {
    form.replace("_", " "): route for route, forms in ROUTES.items() for form in forms.split()
}
_ROUTE = re.compile(
    r"(?i)(?<![\w.])(?:"
    + "|".join(re.escape(form) for form in sorted(_BY_FORM, key=len, reverse=True))
    + r")(?!\w)"
)
_DOSE_UNITS = (
    "g",
    "mg",
    "ug",
    "ng",
    "kg",
    "mL",
    "cm3",
    "L",
    "uL",
    "[IU]",
    "U",
    "meq",
    "mmol",
    "m[IU]",
    "k[IU]",
    "%",
    "[tsp_us]",
    "[tbs_us]",
)
_FORM_BEFORE = re.compile(r"(?i)(?<!\w)(colirio|parche|patch|inhalador)\s(?:de|of)\s$")
_TWO_DRUGS = re.compile(r"(\d{1,4}(?:[.,]\d{1,3})?)\s?/\s?$")  # of "875/125 mg"
_DIRECTLY_BEFORE = re.compile(r"(?i)\s{0,2}(?:de|of)?\s{0,2}")


class Medication(NamedTuple):
    """How a drug is given, as its sentence says.

    dose (Measurement | None): How much, each time or per day.
    route (str | None): "oral", "intravenous", …
    frequency (Measurement | None): How often.
    duration (Measurement | None): For how long.
    """

    dose: Measurement | None
    route: str | None
    frequency: Measurement | None
    duration: Measurement | None


def install_extensions() -> None:
    """Register `span._.medication`."""
    if not Span.has_extension("medication"):
        Span.set_extension("medication", getter=get_medication)


def get_medication(ent: Span) -> Medication | None:
    """Get `ent._.medication`: what follows a drug in its sentence, up to the next drug.

    RETURNS (Medication | None): None for a span whose label is not one of `drug_labels`, or with
        nothing found.
    RAISES (BioclinError): The Doc has no sentences.
    """
    doc: Doc = ent.doc
    labels = get_settings(doc).get("drug_labels", ())
    if ent.label_.lower() not in labels:
        return None
    if not doc.has_annotation("SENT_START"):
        raise BioclinError(
            "ent._.medication needs sentences: add 'bioclin_sentences' before the component that "
            "finds the drugs"
        )
    sentence = ent.sent
    end = _next_drug(ent, sentence, labels)
    text: str = doc.text
    after = measurements_between(doc, ent.end_char, end)
    doses = [one for one in after if _is_dose(one)]
    if len(doses) > 1 and doses[0].unit == "%":  # a concentration
        del doses[0]
    dose = doses[0] if doses else _dose_before(ent, sentence)
    frequency = next((one for one in after if one.kind == "frequency"), _find_daily(doses))
    duration = next((one for one in after if one.kind == "duration"), None)
    route = _ROUTE.search(text, ent.end_char, end)
    form = _FORM_BEFORE.search(text, max(sentence.start_char, ent.start_char - 16), ent.start_char)
    written = (route and route[0]) or (form and form[1])
    if dose is not None:
        dose = _first_of_two(text, dose, doc.lang_)
    found = Medication(dose, _BY_FORM[written.lower()] if written else None, frequency, duration)
    return found if any(found) else None


def _next_drug(ent: Span, sentence: Span, labels: list[str]) -> int:
    """Find where the next drug of the sentence begins, or its end."""
    for token in ent.doc[ent.end : sentence.end]:
        if token.ent_iob_ == "B" and token.ent_type_.lower() in labels:
            return int(token.idx)
    return int(sentence.end_char)


def _is_dose(one: Measurement) -> bool:
    if one.kind not in ("quantity", "range") or one.unit is None:
        return False
    first = one.unit.split("/")[0]
    return first in _DOSE_UNITS or first in DOSE_FORMS


def _find_daily(doses: list[Measurement]) -> Measurement | None:
    """Find the frequency of "1 comprimido al día": the only dose of a day."""
    for one in doses:
        form, _, unit = (one.unit or "").partition("/")
        if form in DOSE_FORMS and unit in TIMES and one.value == 1 and one.high is None:
            return one._replace(kind="frequency", unit=unit)
    return None


def _first_of_two(text: str, dose: Measurement, lang: str) -> Measurement:
    """Read the first number of "875/125 mg", which is of the drug that is named first."""
    found = _TWO_DRUGS.search(text, max(0, dose.start_char - 12), dose.start_char)
    value = read_digits(found[1], lang) if found else None
    if found is None or value is None:
        return dose
    return dose._replace(value=value, start_char=found.start())


def _dose_before(ent: Span, sentence: Span) -> Measurement | None:
    """Find the dose of "500 mg de paracetamol"."""
    before = measurements_between(ent.doc, sentence.start_char, ent.start_char)
    if not before or not _is_dose(before[-1]):
        return None
    between = ent.doc.text[before[-1].end_char : ent.start_char]
    return before[-1] if _DIRECTLY_BEFORE.fullmatch(between) else None
