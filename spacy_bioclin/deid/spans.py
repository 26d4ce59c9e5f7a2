"""PHI as the detectors find it, and as spans of a Doc."""

from math import isnan
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..spans import get_probabilities, get_spans

# Detector of a span that does not name one: the neural component.
NEURAL = "ner"
# Detector of the less certain spans that `doubtful_from` of `bioclin_ner` adds.
DOUBTFUL = "doubtful"
# Detector of the patient's own data (`doc._.patient`).
KNOWN_PATIENT = "known_patient"


class PhiSpan(NamedTuple):
    """Part of a text that may be protected health information.

    start (int): Code points of the untouched text.
    end (int): Exclusive.
    label (str): PHI type or label of a scheme (labels.yml).
    confidence (float): From 0 to 1.
    detector (str): What found it: kind of a rule ("es_dni"), "ner", "known_patient", "repeat";
        several are joined by "+".
    """

    start: int
    end: int
    label: str
    confidence: float
    detector: str


def get_phi(doc: Doc, spans_key: str) -> list[PhiSpan]:
    """Read a group of PHI spans; a span without a confidence, or with NaN, counts as certain."""
    pairs = zip(get_spans(doc, spans_key), get_probabilities(doc, spans_key), strict=True)
    return [
        PhiSpan(
            span.start_char,
            span.end_char,
            span.label_,
            1.0 if confidence is None or isnan(confidence) else confidence,
            span.id_ or NEURAL,
        )
        for span, confidence in pairs
    ]


def make_span(doc: Doc, phi: PhiSpan) -> Span:
    """Make the span of whole tokens that covers PHI; `span.id_` is its detector."""
    span: Span | None = doc.char_span(
        phi.start, phi.end, label=phi.label, span_id=phi.detector, alignment_mode="expand"
    )
    assert span is not None  # the offsets are those of the Doc's text
    return span
