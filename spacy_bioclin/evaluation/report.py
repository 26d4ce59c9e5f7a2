"""Render an evaluation as one self-contained HTML page, without scripts, fonts or links."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ..pages import render_template
from ..types import CharSpan
from .confusion import ErrorExample, LayerDoc, worst_errors

TEMPLATE = Path(__file__).with_name("report.html.jinja")
CONTEXT = 60  # characters on either side of an error
LONGEST = 400  # characters of a piece of text; the middle of longer ones is left out
N_KINDS = 20
N_EXAMPLES = 4

EXPLANATIONS = {
    "missed": "nothing was predicted here",
    "spurious": "the corpus has nothing here",
    "label": "right place, wrong label",
    "boundary": "right label, wrong place",
    "both": "overlapping, but label and place are wrong",
}


class Piece(NamedTuple):
    """A piece of text that is in the gold span, in the predicted span, in both or in neither."""

    text: str
    gold: bool
    predicted: bool


class Snippet(NamedTuple):
    """An error in its context."""

    doc_id: str
    pieces: list[Piece]
    gold: CharSpan | None
    predicted: CharSpan | None


class Matrix(NamedTuple):
    """The confusion matrix of labels. None is the label of a span without partner.

    rows, columns (list[str | None]): Reference and predicted labels, None last.
    cells (list[list[tuple[int, float]]]): Count, and its share of the row, from 0 to 1.
    """

    rows: list[str | None]
    columns: list[str | None]
    cells: list[list[tuple[int, float]]]


def render_report(
    metrics: Mapping[str, Any], layers: Mapping[str, Sequence[LayerDoc]], *, with_text: bool
) -> str:
    """Render the page.

    metrics (Mapping[str, Any]): What `bioclin evaluate` writes.
    layers (Mapping[str, Sequence[LayerDoc]]): Layer -> documents that were scored.
    with_text (bool): Show errors in context. If False, the page has only labels and numbers, but no
        text and no document id.
    RETURNS (str): The HTML. All values in it are escaped.
    """
    errors = {
        layer: [
            (kind, count, [make_snippet(example) for example in examples] if with_text else [])
            for kind, count, examples in worst_errors(docs, n_kinds=N_KINDS, n_examples=N_EXAMPLES)
        ]
        for layer, docs in layers.items()
    }
    return render_template(
        TEMPLATE,
        filters={"visible": _visible, "score": _show_score},
        metrics={"relations": {}, "categories": {}, "published": None, **metrics},
        matrices={layer: make_matrix(metrics["layers"][layer]["confusion"]) for layer in layers},
        errors=errors,
        explanations=EXPLANATIONS,
        with_text=with_text,
    )


def make_snippet(example: ErrorExample) -> Snippet:
    """Extract an error from its document, with `CONTEXT` characters around it."""
    doc, (gold, predicted) = example
    spans = [span for span in (gold, predicted) if span]
    edges = {edge for start, end, _ in spans for edge in (start, end)}
    first = max(0, min(edges) - CONTEXT)
    last = min(len(doc.text), max(edges) + CONTEXT)
    cuts = sorted({first, last, *edges})
    pieces = []
    for start, end in pairwise(cuts):
        inside = [span is not None and span[0] <= start < span[1] for span in (gold, predicted)]
        pieces.append(Piece(_shorten(doc.text[start:end]), *inside))
    return Snippet(doc.id, pieces, gold, predicted)


def _shorten(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} […] {text[-half:]}"


def _visible(text: str) -> str:
    """Show where lines end, without ending the line of the page."""
    return text.replace("\r", "").replace("\n", " ↵ ").replace("\t", " ⇥ ")


def _show_score(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value)


def make_matrix(confusion: Sequence[tuple[str | None, str | None, int]]) -> Matrix:
    """Arrange confusion counts as a matrix of the labels that occur, sorted by name."""
    counts = {(reference, predicted): count for reference, predicted, count in confusion}
    rows, columns = (
        sorted({cell[side] for cell in counts}, key=lambda label: (label is None, label or ""))
        for side in (0, 1)
    )
    cells = []
    for row in rows:
        of_row = [counts.get((row, column), 0) for column in columns]
        cells.append([(count, count / max(sum(of_row), 1)) for count in of_row])
    return Matrix(rows, columns, cells)
