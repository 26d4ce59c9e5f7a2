"""Read cases of one line: "Hb ⟦11,5 g/dl → 11.5 g/dL⟧, ⟦3 días → duration 3 d⟧"."""

import re

from spacy_bioclin.context.measurements.measurement import Measurement
from spacy_bioclin.context.measurements.rules.find import find_measurements

MARKED = re.compile(r"⟦([^⟧]*) → ([^⟧]*)⟧")


def show(one: Measurement) -> str:
    """Write the value of a measurement as "duration >=2..3 wk"; of a quantity without its kind."""
    if isinstance(one.value, str):
        value = one.value
    elif isinstance(one.value, tuple):
        value = "x".join(f"{number:g}" for number in one.value)
    else:
        value = f"{one.value:.10g}"
    kind = "" if one.kind == "quantity" else one.kind
    high = "" if one.high is None else f"..{one.high:g}"
    return f"{kind} {one.comparator or ''}{value}{high} {one.unit or ''}".strip()


def check(lang: str, marked: str) -> None:
    """Compare what is found in the text with what is in brackets."""
    text = MARKED.sub(r"\1", marked)
    shown, place = "", 0
    for one in find_measurements(text, lang):
        found = text[one.start_char : one.end_char]
        shown += f"{text[place : one.start_char]}⟦{found} → {show(one)}⟧"
        place = one.end_char
    assert shown + text[place:] == marked
