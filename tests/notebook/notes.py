"""Notes that the tests of this folder share."""

from functools import cache

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_bioclin.spans import set_spans

NOTE = "AF: madre con diabetes.\nEA: niega fiebre & <b>tos</b>. TA 120/80.\n"


@cache
def make_nlp() -> Language:
    """Make a pipeline of rules."""
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    for name in ("sentences", "sections", "context", "measurements"):
        nlp.add_pipe(f"bioclin_{name}")
    return nlp


def make_note() -> Doc:
    """Make a note with a mention of the family, a negated one, and a measurement."""
    doc = make_nlp()(NOTE)
    ents = [find(doc, "diabetes", "DISEASE", "DOID:9351"), find(doc, "fiebre", "SYMPTOM")]
    set_spans(doc, None, ents, [0.9, 0.6])
    return doc


def find(doc: Doc, text: str, label: str, kb_id: str = "") -> Span:
    """Make the span of a text in a Doc."""
    start = doc.text.index(text)
    span = doc.char_span(start, start + len(text), label=label, kb_id=kb_id)
    assert span is not None
    return span
