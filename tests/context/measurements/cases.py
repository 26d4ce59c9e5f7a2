"""Read cases of one line each: "Hb ⟦11,5 g/dl → 11.5 g/dL⟧, ⟦3 días → duration 3 d⟧"."""

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


def mark(lang: str, marked: str) -> str:
    """Mark what is found in a marked text once its brackets are away."""
    text = MARKED.sub(r"\1", marked)
    shown, place = "", 0
    for one in find_measurements(text, lang):
        found = text[one.start_char : one.end_char]
        shown += f"{text[place : one.start_char]}⟦{found} → {show(one)}⟧"
        place = one.end_char
    return shown + text[place:]


def check(lang: str, lines: list[str]) -> None:
    """Compare what is found in the texts of lines with what is in their brackets."""
    wrong = [(line, shown) for line in lines if (shown := mark(lang, line)) != line]
    assert not wrong, wrong
