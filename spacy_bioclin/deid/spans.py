"""What a detector says about a stretch of text."""

from typing import NamedTuple

# Detector of a span that does not name one: the neural component.
NEURAL = "ner"


class PhiSpan(NamedTuple):
    """A stretch of text that may be protected health information.

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
