"""Read the mentions of a Doc with all that the components say of them."""

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...context.measurements.component import DRUG_LABELS
from ...context.measurements.measurement import Measurement
from ...context.measurements.store import measurements_between
from ...context.medication.record import Medication, is_drug, read_medication
from ...context.rules.attributes import SPANS_KEY as CONTEXT_KEY
from ...context.rules.attributes import has_kind
from ...context.rules.rule_data import KINDS
from ...context.sections.result import get_section, get_sections
from ...linking.docs import get_candidates, list_codes
from ...linking.kb.concepts import AND
from ...linking.references import Code
from ...spans import get_probabilities, get_spans, is_annotated
from .mapping import CodeSettings

Counts = Counter[str]
_DRUG_LABELS = frozenset(label.lower() for label in DRUG_LABELS)
# A drug that is taken is given, whatever a cue makes of its sentence: "no suspender enalapril",
# "profilaxis con enoxaparina", "si dolor, paracetamol".
_NOT_GIVEN = frozenset(["negated", "historical", "hypothetical"])


class Mention(NamedTuple):
    """A mention, or one part of a composite mention.

    span (Span): Its place in the Doc.
    start (int): Code points of the untouched text.
    end (int): Exclusive.
    text (str): Its words.
    label (str): Its label.
    kb_id (str): Id of the concept that it means; "" if it has none.
    name (str | None): Name of the concept in the terminology, if a linker has found it.
    codes (tuple[Code, ...]): Those of the concept in other terminologies.
    probability (float | None): Of the mention, not of the link.
    section (str | None): Category of the section it begins in; None before the first heading, or
        if no component looked for headings.
    loinc (str | None): LOINC code of the section.
    context (frozenset[str] | None): "negated" and the other attributes that it has; None if
        `bioclin_context` did not run, so that nothing is known.
    medication (Medication | None): How a drug is given, and whether it is taken; None for others.
    number (int): Counts mentions with the same place and label, from 0.
    """

    span: Span
    start: int
    end: int
    text: str
    label: str
    kb_id: str
    name: str | None
    codes: tuple[Code, ...]
    probability: float | None
    section: str | None
    loinc: str | None
    context: frozenset[str] | None
    medication: Medication | None
    number: int


def read_mentions(
    doc: Doc, settings: CodeSettings, counts: Counts, drug_labels: Collection[str] = ()
) -> list[Mention]:
    """Read the mentions of a layer.

    A composite mention is one mention for each of its ids. The same span twice is one mention.

    settings (CodeSettings): The layer, and what sections say of drugs.
    drug_labels (Collection[str]): Labels of drugs beside those of `bioclin_measurements`.
    counts (Counter): What is left out is added to it by reason.
    RETURNS (list[Mention]): In order of start, end, label and id.
    """
    spans_key = settings.spans_key
    drug_labels = {*_DRUG_LABELS, *(label.lower() for label in drug_labels)}
    if not is_annotated(doc, spans_key) and len(doc):
        counts["notes without the layer of mentions"] += 1
        return []
    loincs = {section.category: section.loinc for section in get_sections(doc)}
    has_context = CONTEXT_KEY in doc.spans
    found: dict[tuple[int, int, str, str], tuple[Span, float | None]] = {}
    spans = zip(get_spans(doc, spans_key), get_probabilities(doc, spans_key), strict=True)
    for span, probability in spans:
        if not span.text.strip():
            counts["mentions without words"] += 1
            continue
        for kb_id in span.kb_id_.split(AND):
            key = span.start_char, span.end_char, span.label_, kb_id
            if key in found:
                counts["mentions found twice"] += 1
            else:
                found[key] = span, probability
    mentions: list[Mention] = []
    numbers: Counter[Any] = Counter()
    for key in sorted(found):
        (start, end, label, kb_id), (span, probability) = key, found[key]
        section = get_section(span)
        context = _read_context(span) if has_context else None
        medication = None
        if label.lower() in drug_labels or is_drug(span):
            medication = read_medication(
                span,
                labels=drug_labels,
                active_sections=settings.active_sections,
                allergy_sections=settings.allergy_sections,
            )
            if context is not None and medication.status == "taking":
                context -= _NOT_GIVEN
        mentions.append(
            Mention(
                span=span,
                start=start,
                end=end,
                text=span.text,
                label=label,
                kb_id=kb_id,
                name=_find_name(span, kb_id),
                codes=tuple(code for code in list_codes(span) if code.kb_id == kb_id),
                probability=probability,
                section=section,
                loinc=loincs.get(section) if section else None,
                context=context,
                medication=medication,
                number=numbers[key[:3]],
            )
        )
        numbers[key[:3]] += 1
    if mentions and not has_context:
        counts["notes without context"] += 1
    return mentions


def _read_context(span: Span) -> frozenset[str]:
    return frozenset(kind for kind in KINDS if has_kind(span, kind))


def _find_name(span: Span, kb_id: str) -> str | None:
    if not kb_id:
        return None
    names = (one.name for one in get_candidates(span) if one.kb_id == kb_id)
    return next(names, None) or None


def find_measurement(mention: Mention) -> Measurement | None:
    """Find the first measurement that is within a mention; None if there is none."""
    found = measurements_between(mention.span.doc, mention.start, mention.end)
    return next((one for one in found if one.end_char <= mention.end), None)
