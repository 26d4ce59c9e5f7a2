"""`ent._.medication`: how a drug is given, and whether it is taken."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...errors import BioclinError
from ..measurements.measurement import Measurement
from ..measurements.rules.lexicon import LANGS
from ..measurements.rules.numbers import read_digits
from ..measurements.rules.units import DOSE_FORMS, TIMES
from ..measurements.store import get_settings, measurements_between
from ..sections.result import get_section
from .actions import MAX_DRUGS_BEFORE, Drug, Reader, find_done, is_small
from .parts import When, read_reason
from .status import find_status, is_allergy
from .words import Words, get_words

STATUSES = ("taking", "stopped", "held", "past", "not_taken", "allergy", "unknown")
ACTIVE_SECTIONS = ("home_medication", "discharge_treatment")
ALLERGY_SECTIONS = ("allergies",)
# Events of one time a day: the others ("C", "AC", "PC") do not say how often.
ONCE_A_DAY = frozenset(
    "MORN NOON AFT EVE NIGHT HS CM CD CV ACM ACD ACV PCM PCD PCV".split()  # noqa: SIM905
)
_ACTIONS = ("start", "stop", "hold", "change", "continue")
AROUND = 120  # tokens of the sentence before and after a drug
_TWO_DRUGS = re.compile(r"(\d{1,4}(?:[.,]\d{1,3})?)\s?/\s?$")  # of "875/125 mg"
_COUNT = re.compile(r"(?i)(?<![\w.,/])(\d(?:[.,]5)?|1/2|½)\s$")


class Medication(NamedTuple):
    """How a drug is given, and whether it is taken, as its sentence says.

    dose (Measurement | None): How much, each time or per day; without a unit where the order has
        none ("enalapril 5").
    route (str | None): "oral", "intravenous", …
    frequency (Measurement | None): How often; without a unit, that many times in all.
    duration (Measurement | None): For how long.
    amount (Measurement | None): How many tablets, … of that dose.
    form (str | None): "tablet", "ampule", "inhaler", …
    when (tuple[When, ...]): Meals and times of the day.
    as_needed (bool): Only where it is needed.
    reason (str | None): What for, or why it was stopped, in the words of the note.
    taper (bool): The dose goes down.
    action (str | None): What is done with it: "start", "stop", "hold", "change" or "continue".
    status (str): One of `STATUSES`.
    """

    dose: Measurement | None
    route: str | None
    frequency: Measurement | None
    duration: Measurement | None
    amount: Measurement | None = None
    form: str | None = None
    when: tuple[When, ...] = ()
    as_needed: bool = False
    reason: str | None = None
    taper: bool = False
    action: str | None = None
    status: str = "unknown"

    def to_dict(self) -> dict[str, Any]:
        """Describe it in plain values, ready for JSON; what is not known is left out."""
        found: dict[str, Any] = {"status": self.status}
        for name in ("action", "form", "route", "as_needed", "reason", "taper"):
            if value := getattr(self, name):
                found[name] = value
        for name in ("dose", "amount", "frequency", "duration"):
            one: Measurement | None = getattr(self, name)
            if one is not None:
                values = {"value": one.value, "high": one.high, "unit": one.unit}
                found[name] = {key: value for key, value in values.items() if value is not None}
        if self.when:
            found["when"] = [
                {key: value for key, value in each._asdict().items() if value is not None}
                for each in self.when
            ]
        return found


def install_extensions() -> None:
    """Register `span._.medication`."""
    if not Span.has_extension("medication"):
        Span.set_extension("medication", getter=get_medication)


def is_drug(ent: Span) -> bool:
    """Check whether a span has one of the labels of drugs of the component that read its Doc."""
    return ent.label_.lower() in get_settings(ent.doc).get("drug_labels", ())


def get_medication(ent: Span) -> Medication | None:
    """Get `ent._.medication`: what the sentence of a drug says of it.

    RETURNS (Medication | None): None for a span whose label is not one of `drug_labels`.
    RAISES (BioclinError): The Doc has no sentences.
    """
    if not is_drug(ent):
        return None
    if not ent.doc.has_annotation("SENT_START"):
        raise BioclinError(
            "ent._.medication needs sentences: add 'bioclin_sentences' before the component that "
            "finds the drugs"
        )
    return read_medication(ent)


def read_medication(
    ent: Span,
    *,
    labels: Collection[str] = (),
    active_sections: Collection[str] = ACTIVE_SECTIONS,
    allergy_sections: Collection[str] = ALLERGY_SECTIONS,
) -> Medication:
    """Read what the sentence of a drug says of it; without sentences, its line.

    Without `bioclin_measurements` there are no doses and times, and without `bioclin_context` a
    drug that no verb goes with is "unknown".

    labels (Collection[str]): Further labels of drugs, in lower case.
    active_sections (Collection[str]): Sections whose drugs are taken.
    allergy_sections (Collection[str]): Sections whose drugs are allergies, unless an order or a
        verb says that they are taken.
    """
    doc: Doc = ent.doc
    settings = get_settings(doc)
    labels = {*settings.get("drug_labels", ()), *labels, ent.label_.lower()}
    langs = tuple(lang for lang in settings.get("langs") or [doc.lang_] if lang in LANGS) or LANGS
    text: str = doc.text
    words, around = get_words(langs), _find_around(ent)
    start, end = around.start_char, around.end_char
    places = _find_drugs(ent, around, labels)
    at = places.index((ent.start_char, ent.end_char))
    if at + 2 < len(places):  # the next two say what ends its order, and join it
        end = places[at + 2][0]
    if at > MAX_DRUGS_BEFORE:
        start = places[at - MAX_DRUGS_BEFORE - 1][1]
        places, at = places[at - MAX_DRUGS_BEFORE :], MAX_DRUGS_BEFORE
    places = places[: at + 2]
    measured = measurements_between(doc, start, end)
    strict = not any(part in ent.label_.lower() for part in ("drug", "medic", "farmac"))
    drugs = Reader(text, start, end, measured, words, langs[0], strict).read(places)
    drug = drugs[at]
    floor = drugs[at - 1].last if at else start  # "Nolotil si dolor, Adiro 100"
    done = find_done(text, drugs, at, words)
    found = _read_order(text, floor, drug, done, words, langs[0])
    if is_allergy(ent, text, start, drugs, at, done, allergy_sections, words):
        return found._replace(status="allergy", action=None)
    action = done if done in _ACTIONS else None
    status = find_status(
        ent,
        done,
        as_needed=found.as_needed,
        is_ordered=_is_ordered(found),
        is_active=get_section(ent) in active_sections,
    )
    return found._replace(action=action, status=status)


def _find_around(ent: Span) -> Span:
    """Find what is around a drug: its sentence, or its line in a Doc without sentences."""
    doc = ent.doc
    first, last = max(0, ent.start - AROUND), min(len(doc), ent.end + AROUND)
    if doc.has_annotation("SENT_START"):
        starts = [token.i for token in doc[first + 1 : last] if token.is_sent_start]
    else:
        starts = [token.i + 1 for token in doc[first : last - 1] if "\n" in token.text]
    start = max([first, *(each for each in starts if each <= ent.start)])
    return doc[start : min([last, *(each for each in starts if each >= ent.end)])]


def _find_drugs(ent: Span, around: Span, labels: Collection[str]) -> list[tuple[int, int]]:
    """Find the drugs around a span, and the span itself, which need not be in `doc.ents`."""
    places: list[tuple[int, int]] = []
    for token in around:
        if token.ent_type_.lower() not in labels:
            continue
        end = token.idx + len(token)
        if token.ent_iob_ == "B" or not places:
            places.append((token.idx, end))
        else:
            places[-1] = places[-1][0], end
    own = ent.start_char, ent.end_char
    return sorted({place for place in places if place[1] <= own[0] or place[0] >= own[1]} | {own})


def _read_order(
    text: str, floor: int, drug: Drug, done: str | None, words: Words, lang: str
) -> Medication:
    """Put the parts of an order together."""
    whens = [each for part in drug.parts if part.kind == "when" for each in part.value]
    dose, amount, form = _find_amounts(text, drug, done, words, lang)
    if dose is not None and sum(each.amount is not None for each in whens) == 1:
        whens = [When(each.code) for each in whens]  # the amount is the dose
    whens += [each for part in drug.parts if part.kind == "schedule" for each in part.value]
    forms = [part.value for part in drug.parts if part.kind == "form"]
    routes = [part.value for part in drug.parts if part.kind == "route"]
    routes += [words.form_routes[each] for each in forms if each in words.form_routes]
    if not routes and any(one and one.unit == "{puff}" for one in (dose, amount)):
        routes = ["inhaled"]
    reason = next((part.value for part in drug.after if part.kind == "reason"), None)
    needed = drug.has("needed")
    if reason is None and (before := _find_reason_before(text, floor, drug, words)):
        reason, is_condition = before
        needed = needed or is_condition
    if done in ("if", "avoid"):  # the condition is that of stopping it
        needed, reason = False, None
    return Medication(
        dose=dose,
        route=routes[0] if routes else None,
        frequency=_find_frequency(drug, whens),
        duration=next((part.value for part in drug.after if part.kind == "duration"), None),
        amount=amount,
        form=words.form_name(form) if form else None,
        when=tuple(whens),
        as_needed=needed,
        reason=text[slice(*reason)] if reason else None,
        taper=_is_taper(text, floor, drug, words),
    )


def _find_amounts(
    text: str, drug: Drug, done: str | None, words: Words, lang: str
) -> tuple[Measurement | None, Measurement | None, str | None]:
    """Find the dose, how many forms of it, and the form."""
    doses = [part.value for part in drug.after if part.kind in ("dose", "bare")]
    doses += [part.value for part in drug.before if part.kind == "dose"]
    forms = next((part.value for part in drug.parts if part.kind == "form"), None)
    counts = [_per_day(one) for one in doses if (one.unit or "").split("/")[0] in DOSE_FORMS]
    strengths = [one for one in doses if (one.unit or "").split("/")[0] not in DOSE_FORMS]
    if len(strengths) > 1 and text[strengths[0].end_char : strengths[1].start_char].strip() == "/":
        del strengths[: 2 if len(strengths) > 2 else 1]  # "250 mg/5 ml: 7 ml"
    if len(strengths) + len(counts) > 1 and strengths and strengths[0].unit == "%":
        del strengths[0]  # a concentration
    if not counts and forms in words.form_units and strengths:
        counts = _count_before(text, drug, words.form_units[forms], lang)
    if not strengths:
        return (counts[0] if counts else None), None, forms
    dose = _first_of_two(text, strengths[0], lang)
    if dose.high is not None and words.old.search(text[: dose.start_char]):
        dose = dose._replace(kind="quantity", value=dose.high, high=None)  # "de 50 a 100 mg"
    return dose, (counts[0] if counts else None), forms


def _per_day(one: Measurement) -> Measurement:
    """Read "1 comp al día" as one tablet; its frequency is found apart."""
    form, _, unit = (one.unit or "").partition("/")
    return one._replace(unit=form) if unit in TIMES and one.value == 1 and not one.high else one


def _count_before(text: str, drug: Drug, unit: str, lang: str) -> list[Measurement]:
    """Find the count of "comprimidos: 1 cada 8 horas": a number right before a frequency."""
    for part in drug.after:
        if part.kind == "frequency":
            found = _COUNT.search(text, drug.end, part.start)
            value = read_digits(found[1], lang) if found else None
            if found and value:
                return [Measurement("quantity", value, None, None, unit, *found.span(1))]
    return []


def _first_of_two(text: str, dose: Measurement, lang: str) -> Measurement:
    """Read the first number of "875/125 mg", which is of the drug that is named first."""
    found = _TWO_DRUGS.search(text, max(0, dose.start_char - 12), dose.start_char)
    value = read_digits(found[1], lang) if found else None
    if found is None or value is None:
        return dose
    return dose._replace(value=value, start_char=found.start())


def _find_frequency(drug: Drug, whens: Sequence[When]) -> Measurement | None:
    """Find how often: as written, "1 comp al día", or by the times of the day."""
    written = next((part.value for part in drug.parts if part.kind == "frequency"), None)
    events = {each.code for each in whens if each.code in ONCE_A_DAY}
    is_daily = written is not None and (written.value, written.unit) == (1, "d")
    if written is not None and not (is_daily and len(events) > 1):
        return written
    if events:
        part = next(part for part in drug.parts if part.kind in ("when", "schedule"))
        return Measurement("frequency", float(len(events)), None, None, "d", part.start, part.end)
    for part in drug.parts:
        if part.kind == "dose":
            form, _, unit = (part.value.unit or "").partition("/")
            is_one = part.value.value == 1 and part.value.high is None
            if form in DOSE_FORMS and unit in TIMES and is_one:
                return part.value._replace(kind="frequency", unit=unit)
    return None


def _find_reason_before(
    text: str, floor: int, drug: Drug, words: Words
) -> tuple[tuple[int, int], bool] | None:
    """Find the reason of "Si dolor: metamizol", and whether it is a condition."""
    start = max(floor, drug.start - 80)
    end = min([drug.start, *(part.start for part in drug.before)])
    for pattern, is_condition in ((words.condition_before, True), (words.purpose_before, False)):
        if found := pattern.search(text, start, end):
            reason = read_reason(text, found.start("reason"), end, (), words)
            if reason is not None:
                return reason, is_condition
    return None


def _is_taper(text: str, floor: int, drug: Drug, words: Words) -> bool:
    """Check whether the dose goes down: by a word, or from one dose to the next."""
    if drug.has("taper"):
        return True
    for found in words.taper.finditer(text, floor, drug.start):
        if is_small(text, found.end(), drug.start, words):
            return True
    doses = [part.value for part in drug.after if part.kind == "dose"]
    values = [one.value for one in doses if one.unit == doses[0].unit]
    is_falling = len(values) > 1 and all(a > b for a, b in pairwise(values))
    n_times = sum(part.kind == "duration" for part in drug.after)
    return is_falling and (n_times > 1 or bool(words.then.search(text, drug.end, drug.last)))


def _is_ordered(found: Medication) -> bool:
    """Check whether an order has times: more than a single dose."""
    if found.duration or found.when or found.as_needed or found.taper:
        return True
    rate = found.dose.unit if found.dose and found.dose.unit else ""
    is_single = found.frequency is None or found.frequency.unit is None
    return rate.endswith("/d") or not is_single
