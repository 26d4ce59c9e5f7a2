"""Draw relations as arcs with displaCy, spaCy's visualizer."""

from bisect import bisect_right
from html import escape
from typing import Any

from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..annotations.relations import get_relations


def make_displacy_arcs(doc: Doc, relations_key: str | None = None) -> dict[str, Any]:
    """Make what `spacy.displacy.render(data, style="dep", manual=True)` draws.

    Each entity that has a relation is one word of the drawing, with its label below; so is the text
    between two of them. An arrow leads from the head of a relation to its child. A drawing can have
    no words that overlap: of such entities the longest is shown, and the arcs of the others start
    or end there. An arc that would start and end at one word is not drawn; see
    `count_hidden_arcs`.

    doc (Doc): A Doc with relations; it holds text of the note, and so does the drawing.
    relations_key (str | None): Relations of one component only; None for all.
    RETURNS (dict[str, Any]): "words", "arcs" and "settings" of displaCy.
    """
    words, arcs = _lay_out(doc, relations_key)
    drawn = [arc for arc in arcs if arc["start"] != arc["end"]]
    return {"words": words, "arcs": drawn, "settings": {"lang": doc.lang_, "direction": "ltr"}}


def count_hidden_arcs(doc: Doc, relations_key: str | None = None) -> int:
    """Count the relations between overlapping entities, which `make_displacy_arcs` cannot draw.

    doc (Doc): A Doc with relations.
    relations_key (str | None): Relations of one component only; None for all.
    """
    _, arcs = _lay_out(doc, relations_key)
    return sum(arc["start"] == arc["end"] for arc in arcs)


def _lay_out(
    doc: Doc, relations_key: str | None
) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Cut the text into words, and find the words of each relation."""
    relations = get_relations(doc, relations_key)
    shown = filter_spans([span for one in relations for span in (one.head, one.child)])
    words: list[dict[str, str]] = []
    place: dict[int, int] = {}  # first token of an entity -> its word
    done = 0
    for span in shown:
        _add_text(words, doc[done : span.start])
        place[span.start] = len(words)
        # displaCy escapes the text, but no labels.
        words.append({"text": _join_lines(span), "tag": escape(span.label_)})
        done = span.end
    _add_text(words, doc[done:])
    arcs = []
    starts = [span.start for span in shown]
    for one in relations:
        head, child = (_find_word(span, shown, starts, place) for span in (one.head, one.child))
        start, end = sorted((head, child))
        direction = "right" if head <= child else "left"
        arcs.append({"start": start, "end": end, "label": escape(one.label), "dir": direction})
    return words, arcs


def _add_text(words: list[dict[str, str]], between: Span) -> None:
    if text := _join_lines(between):
        words.append({"text": text, "tag": ""})


def _join_lines(span: Span) -> str:
    return " ".join(span.text.split())


def _find_word(span: Span, shown: list[Span], starts: list[int], place: dict[int, int]) -> int:
    """Find the word of an entity, or of the first one that overlaps with it."""
    index = max(bisect_right(starts, span.start) - 1, 0)
    if shown[index].end <= span.start:
        index += 1
    return place[shown[index].start]
