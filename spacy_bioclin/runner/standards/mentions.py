"""Read the mentions of a Doc with all that the components say of them."""

from collections import Counter
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ...context.measurements.measurement import Measurement
from ...context.measurements.store import measurements_between
from ...context.rules.attributes import SPANS_KEY as CONTEXT_KEY
from ...context.rules.attributes import has_kind
from ...context.rules.rule_data import KINDS
from ...context.sections.result import get_section, get_sections
from ...linking.docs import get_candidates, list_codes
from ...linking.kb.concepts import AND
from ...linking.references import Code
from ...spans import get_probabilities, get_spans, is_annotated

Counts = Counter[str]


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
    number: int


def read_mentions(doc: Doc, spans_key: str | None, counts: Counts) -> list[Mention]:
    """Read the mentions of a layer.

    A composite mention is one mention for each of its ids. The same span twice is one mention.

    spans_key (str | None): A key of `doc.spans`, or None for `doc.ents`.
    counts (Counter): What is left out is added to it by reason.
    RETURNS (list[Mention]): In order of start, end, label and id.
    """
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
                context=_read_context(span) if has_context else None,
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
