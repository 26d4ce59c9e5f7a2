"""Render what the components of this folder found as one HTML page."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..pages import render_template
from ..spans import get_spans
from .measurements.measurement import Measurement
from .measurements.store import get_measurements
from .rules.attributes import CUE, SPANS_KEY, get_modifiers
from .rules.rule_data import KINDS
from .sections.result import find_key, get_sections

TEMPLATE = Path(__file__).with_name("page.html.jinja")


class Piece(NamedTuple):
    """A piece of text within which nothing begins or ends.

    text (str): Its characters.
    classes (str): Classes of the page's style.
    title (str): What shows when the pointer is over it.
    """

    text: str
    classes: str
    title: str


class Block(NamedTuple):
    """A section, or what is outside of all sections.

    category (str): Category of the section; "" outside.
    pieces (list[Piece]): Its text.
    """

    category: str
    pieces: list[Piece]


class _Mark(NamedTuple):
    """What is shown of some characters, [start, end)."""

    start: int
    end: int
    classes: str
    title: str


def render_context(
    docs: Mapping[str, Doc], *, spans_key: str | None = None, title: str = "Context"
) -> str:
    """Render notes as one HTML page that shows what a mention means.

    Sections have their categories beside them. Mentions are struck through where negated, grey
    where historical or of the family, and have a dotted line below where uncertain or hypothetical.
    Measurements are in a box; the pointer shows their values and units, and why a mention is
    negated. What no component has found is not shown. The page has the whole text of the notes, so
    it needs the same protection as they do.

    docs (Mapping[str, Doc]): Name of a note -> its Doc, in order.
    spans_key (str | None): The mentions are in `doc.spans[spans_key]`; None for `doc.ents`.
    title (str): Title of the page.
    RETURNS (str): The HTML. All text in it is escaped; it loads nothing and has no script.
    """
    notes = {name: list(_make_blocks(doc, spans_key)) for name, doc in docs.items()}
    return render_template(TEMPLATE, title=title, notes=notes, kinds=KINDS)


def describe_measurement(one: Measurement) -> str:
    """Write a measurement in words: "quantity: <0.5 mg/dL", "date: 2014-03-12"."""
    if isinstance(one.value, str):
        value = one.value
    elif isinstance(one.value, tuple):
        value = " × ".join(f"{each:.10g}" for each in one.value)
    else:
        value = f"{one.value:.10g}"
    if one.high is not None:
        value += f"{'/' if one.kind == 'blood_pressure' else '–'}{one.high:.10g}"
    unit = one.unit or ""
    if one.kind == "frequency":
        unit = f"per {unit}"
    return f"{one.kind.replace('_', ' ')}: {one.comparator or ''}{value} {unit}".rstrip()


def _make_blocks(doc: Doc, spans_key: str | None) -> Iterator[Block]:
    """Divide a note into its sections and what is between them."""
    key = find_key(doc)
    bounds, place = [], 0
    for span in doc.spans[key] if key else ():
        bounds += [(place, span.start_char, ""), (span.start_char, span.end_char, span.label_)]
        place = span.end_char
    bounds.append((place, len(doc.text), ""))
    pieces = _cut(doc.text, _find_marks(doc, spans_key), {start for start, _, _ in bounds})
    following = next(pieces, None)
    for _, end, category in bounds:
        block = Block(category, [])
        while following is not None and following[0] < end:
            block.pieces.append(following[1])
            following = next(pieces, None)
        if any(piece.text.strip() for piece in block.pieces):
            yield block


def _find_marks(doc: Doc, spans_key: str | None) -> list[_Mark]:
    marks = [
        _Mark(section.title.start_char, section.title.end_char, "heading", "")
        for section in get_sections(doc)
        if section.title is not None
    ]
    for cue in doc.spans.get(SPANS_KEY, ()):
        if cue.label_.endswith(CUE):
            kind = cue.label_.removesuffix(CUE)
            marks.append(_Mark(cue.start_char, cue.end_char, "cue", f"{kind}: {cue.id_}"))
    for one in get_measurements(doc):
        place = one.start_char, one.end_char
        marks.append(_Mark(*place, "measurement", describe_measurement(one)))
    return marks + [_mark_mention(span) for span in get_spans(doc, spans_key)]


def _mark_mention(span: Span) -> _Mark:
    modifiers = get_modifiers(span) if SPANS_KEY in span.doc.spans else []
    kinds = dict.fromkeys(modifier.kind for modifier in modifiers)
    reasons = [f"{modifier.kind} ({modifier.cue.text})" for modifier in modifiers]
    title = ", ".join([span.label_, *dict.fromkeys(reasons)])
    return _Mark(span.start_char, span.end_char, " ".join(["mention", *kinds]), title)


def _cut(text: str, marks: list[_Mark], edges: set[int]) -> Iterator[tuple[int, Piece]]:
    """Cut a text at some edges, and wherever a mark begins or ends.

    RETURNS (Iterator[tuple[int, Piece]]): Where each piece begins, and the piece with all marks
        that are over it.
    """
    places = {0, len(text), *edges}
    for mark in marks:
        places.update((mark.start, mark.end))
    waiting = sorted(marks, reverse=True)
    over: list[_Mark] = []
    for start, end in pairwise(sorted(places)):
        while waiting and waiting[-1].start <= start:
            over.append(waiting.pop())
        over = [mark for mark in over if mark.end > start]
        classes = dict.fromkeys(each for mark in over for each in mark.classes.split())
        titles = dict.fromkeys(mark.title for mark in over if mark.title)
        yield start, Piece(text[start:end], " ".join(classes), "; ".join(titles))
