"""Render suggestions as one HTML page, without scripts, fonts or links."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ..evaluation.report import Piece, make_snippet
from ..pages import render_template
from .gold import MEANINGS, Doubt
from .suggest import Suggestion

TEMPLATE = Path(__file__).with_name("page.html.jinja")
CONTEXT = 40  # characters on either side of a place


class Row(NamedTuple):
    """A suggestion on the page.

    cells (Sequence[str]): What is in the columns.
    snippets (Sequence[Sequence[Piece]]): Pieces of the note.
    """

    cells: Sequence[str]
    snippets: Sequence[Sequence[Piece]]


def render_notes(suggestions: Sequence[Suggestion], *, with_text: bool) -> str:
    """Render the notes to annotate next.

    suggestions (Sequence[Suggestion]): The notes, the best first.
    with_text (bool): Show the places of which the pipeline is least sure.
    RETURNS (str): The HTML. All values in it are escaped.
    """
    rows = [
        Row(
            (
                str(rank),
                each.id,
                f"{each.uncertainty:.3f}",
                f"{each.distance:.3f}",
                f"{each.n_words:,}",
            ),
            [_cut(each.text, *place) for place in each.places] if with_text else [],
        )
        for rank, each in enumerate(suggestions, start=1)
    ]
    return render_template(
        TEMPLATE,
        filters={"visible": _visible},
        title="Notes to annotate next",
        intro="Marked is where the pipeline is least sure.",
        columns=("", "note", "uncertainty", "distance", "words"),
        legend=(),
        rows=rows,
        with_text=with_text,
    )


def render_doubts(doubts: Sequence[Doubt], *, with_text: bool) -> str:
    """Render the gold spans that look wrong.

    doubts (Sequence[Doubt]): The places, the most doubtful first.
    with_text (bool): Show them in their context.
    RETURNS (str): The HTML. All values in it are escaped.
    """
    rows = []
    for rank, doubt in enumerate(doubts, start=1):
        gold, predicted = doubt.example.pair
        labels = [span[2] if span else "" for span in (gold, predicted)]
        cells = (str(rank), doubt.example.doc.id, doubt.layer, doubt.kind, *labels)
        snippets = [make_snippet(doubt.example).pieces] if with_text else []
        rows.append(Row((*cells, f"{doubt.confidence:.3f}"), snippets))
    return render_template(
        TEMPLATE,
        filters={"visible": _visible},
        title="Gold spans that look wrong",
        intro="The pipeline disagrees with these spans, and is sure of itself.",
        columns=("", "note", "layer", "kind", "gold", "pipeline", "confidence"),
        legend=tuple(MEANINGS.items()),
        rows=rows,
        with_text=with_text,
    )


def _cut(text: str, start: int, end: int) -> list[Piece]:
    """Cut a place with its context out of a note."""
    edges = [max(0, start - CONTEXT), start, end, min(len(text), end + CONTEXT)]
    pieces = pairwise(edges)
    return [Piece(text[a:b], False, number == 1) for number, (a, b) in enumerate(pieces)]


def _visible(text: str) -> str:
    """Show where lines end, without ending the line of the page."""
    return text.replace("\r", "").replace("\n", " ↵ ").replace("\t", " ⇥ ")
