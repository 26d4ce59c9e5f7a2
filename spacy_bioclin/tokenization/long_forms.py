"""Choose what a short form means where it stands: "FA" is an arrhythmia, and an enzyme in labs.

A meaning counts for more if its kind goes with the span's label, then if more of its cues are near;
of equal ones the lexicon's first is chosen.
"""

import re

from spacy.tokens import Doc, Span

from .short_forms import ShortForm, fold_short, load_short_forms

# Labels of the tagger that go with the kind of a short form.
LABELS_OF_KIND = {
    "disease": ("DISEASE", "SYMPTOM", "TUMOR_MORPHOLOGY", "PROBLEM"),
    "symptom": ("SYMPTOM", "DISEASE", "PROBLEM"),
    "procedure": ("PROCEDURE", "TEST"),
    "test": ("TEST", "PROCEDURE", "PROTEIN", "DRUG"),
    "drug": ("DRUG",),
    "anatomy": ("ANATOMY",),
    "device": ("DEVICE",),
    "route": ("ROUTE",),
    "frequency": ("FREQUENCY",),
    "dose": ("DOSE",),
    "unit": ("DOSE",),
    "time": ("DURATION", "FREQUENCY"),
}
SECTIONS = {  # a cue of the lexicon -> categories of bioclin_sections
    "@history": ("past_history", "surgical_history", "family_history", "problem_list"),
    "@labs": ("laboratory", "tests"),
    "@exam": ("physical_exam", "vital_signs", "objective"),
    "@medications": ("home_medication", "treatment", "discharge_treatment"),
}
NEAR = 60  # characters before and behind a short form that are searched for cues
_NUMBER = re.compile(r"\W{0,3}\d")
_DOSE = re.compile(r"\W{0,3}\d[\d.,]* ?(?:mg|g|mcg|µg|ug|ui|u|ml|comp|cp|tab|puff)", re.IGNORECASE)
_FOLLOWS = {">number": _NUMBER, ">dose": _DOSE}


def find_meaning(span: Span) -> ShortForm | None:
    """Find what a span means that is one short form of the lexicon of its language.

    RETURNS (ShortForm | None): None if it is no short form.
    """
    meanings = load_short_forms(span.doc.lang_).get(fold_short(span.text))
    if not meanings or (not span.label and span.text.islower()):
        return None  # "the cat" is no tomography
    near = _read_near(span)

    def rank(form: ShortForm) -> tuple[bool, int]:
        cues = sum(_holds(cue, span, near) for cue in form.cues)
        return span.label_ in LABELS_OF_KIND.get(form.kind, ()), cues

    return max(meanings, key=rank)


def make_long_form(span: Span) -> Span | None:
    """Make a Doc of what a short form means, and return the whole of it.

    RETURNS (Span | None): None if the lexicon does not have it.
    """
    meaning = find_meaning(span)
    if meaning is None:
        return None
    doc = Doc(span.vocab, words=meaning.long[0].split())
    return doc[:]


def _read_near(span: Span) -> str:
    """Read the text around a span, without it, in lower case."""
    text = span.doc.text
    before = text[max(0, span.start_char - NEAR) : span.start_char]
    return f"{before} {text[span.end_char : span.end_char + NEAR]}".lower()


def _holds(cue: str, span: Span, near: str) -> bool:
    """Check a cue of the lexicon."""
    if cue.startswith(">"):
        return bool(_FOLLOWS[cue].match(span.doc.text, span.end_char))
    if cue.startswith("@"):
        return Span.has_extension("section") and span._.section in SECTIONS[cue]
    return bool(re.search(rf"(?<![^\W\d_]){re.escape(cue)}", near))
