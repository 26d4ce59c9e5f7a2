"""Arguments for `spacy.displacy.render`: entities, spans that overlap, and relations."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..context.rules.attributes import CUE, SCOPE, SPANS_KEY, get_modifiers
from ..errors import BioclinError
from ..relations.arcs import make_displacy_arcs
from ..spans import get_probabilities, get_spans
from .colours import choose_line, choose_tint

SEPARATOR = " · "
BETWEEN = 32  # characters of the text between two entities that are shown
CHARACTER = 8.5  # width, in pixels
GAP = 30  # between two words, in pixels


def view_entities(
    docs: Doc | Iterable[Doc], spans_key: str | None = None, *, min_probability: float = 0.0
) -> dict[str, Any]:
    """Show entities in the text, with their attributes and concept ids beside their labels.

    Of spans that overlap, the longest is shown; `view_spans` shows all.

    docs (Doc | Iterable[Doc]): One Doc or several. They hold text of notes, and so does the view.
    spans_key (str | None): A key of `doc.spans`, such as "phi"; None for `doc.ents`.
    min_probability (float): Leave out what is less probable. What has no probability is shown.
    RETURNS (dict[str, Any]): For `spacy.displacy.render(**view_entities(doc))`.
    RAISES (BioclinError): No Doc has the key.
    """
    docs = _to_list(docs, spans_key)
    colours: dict[str, str] = {}
    shown = []
    for doc in docs:
        ents = []
        for span in filter_spans(_keep_probable(doc, spans_key, min_probability)):
            label = escape(SEPARATOR.join(_describe(span)))
            colours[label] = choose_tint(span.label_)
            ents.append({"start": span.start_char, "end": span.end_char, "label": label})
        shown.append({"text": doc.text, "ents": ents, "settings": _make_settings(doc)})
    return {"docs": shown, "style": "ent", "manual": True, "options": {"colors": colours}}


def view_spans(docs: Doc | Iterable[Doc], spans_key: str) -> dict[str, Any]:
    """Show spans that may overlap, each with a line below its text.

    What `bioclin_context` found has one line from each cue to the end of its scope, and one below
    the cue.

    docs (Doc | Iterable[Doc]): One Doc or several. They hold text of notes, and so does the view.
    spans_key (str): A key of `doc.spans`: "sections", "context", "measurements", "clinical" or
        another.
    RETURNS (dict[str, Any]): For `spacy.displacy.render(**view_spans(doc, "context"))`.
    RAISES (BioclinError): No Doc has the key.
    """
    docs = _to_list(docs, spans_key)
    colours: dict[str, str] = {}
    shown = []
    for doc in docs:
        spans = []
        for start, end, label in _list_spans(doc, spans_key):
            colours[escape(label)] = choose_line(label)
            spans.append({"start_token": start, "end_token": end, "label": escape(label)})
        tokens = [token.text for token in doc]
        settings = _make_settings(doc)
        shown.append({"text": doc.text, "tokens": tokens, "spans": spans, "settings": settings})
    return {"docs": shown, "style": "span", "manual": True, "options": {"colors": colours}}


def view_relations(docs: Doc | Iterable[Doc], relations_key: str | None = None) -> dict[str, Any]:
    """Show relations as arcs from head to child: a drawing for each stretch of text with relations.

    Long text between two entities is cut. Relations between entities that overlap are not drawn,
    see `spacy_bioclin.relations.arcs.count_hidden_arcs`.

    docs (Doc | Iterable[Doc]): One Doc or several. They hold text of notes, and so does the view.
    relations_key (str | None): Relations of one component only; None for all.
    RETURNS (dict[str, Any]): For `spacy.displacy.render(**view_relations(doc))`. It draws nothing
        if there are no relations.
    """
    docs = [docs] if isinstance(docs, Doc) else list(docs)
    drawings = [
        drawing for doc in docs for drawing in _cut_drawing(make_displacy_arcs(doc, relations_key))
    ]
    words = [word for drawing in drawings for word in drawing["words"]]
    longest = max((max(len(word["text"]), len(word["tag"])) for word in words), default=0)
    options = {
        "compact": True,
        "distance": round(longest * CHARACTER) + GAP,
        "color": "#1c2430",
        "bg": "#ffffff",
        "font": "system-ui, sans-serif",
    }
    return {"docs": drawings, "style": "dep", "manual": True, "options": options}


def _to_list(docs: Doc | Iterable[Doc], spans_key: str | None) -> Sequence[Doc]:
    docs = [docs] if isinstance(docs, Doc) else list(docs)
    check_key(docs, spans_key)
    return docs


def check_key(docs: Sequence[Doc], spans_key: str | None) -> None:
    """Check that one of some Docs has a key of `doc.spans`.

    RAISES (BioclinError): None has it.
    """
    if spans_key is None or not docs or any(spans_key in doc.spans for doc in docs):
        return
    known = sorted({key for doc in docs for key in doc.spans})
    raise BioclinError(
        f"no Doc has spans under {spans_key!r}: want {', '.join(known)}"
        if known
        else f"no Doc has spans under {spans_key!r}, nor under any other key: run a pipeline first"
    )


def _list_spans(doc: Doc, spans_key: str) -> Iterator[tuple[int, int, str]]:
    """List the first token, the token after the last, and the label of what is shown."""
    spans = get_spans(doc, spans_key)
    if spans_key != SPANS_KEY:
        yield from ((span.start, span.end, span.label_) for span in spans)
        return
    cues = {(span.label_.removesuffix(CUE), span.id_): span for span in spans}
    for span in spans:
        kind = span.label_.removesuffix(SCOPE)
        if span.label_.endswith(SCOPE):
            # Beside each other, the label of the scope would hide that of a short cue.
            cue = cues.get((kind, span.id_), span)
            yield min(cue.start, span.start), max(cue.end, span.end), kind
        else:
            yield span.start, span.end, span.label_


def _keep_probable(doc: Doc, spans_key: str | None, least: float) -> list[Span]:
    pairs = zip(get_spans(doc, spans_key), get_probabilities(doc, spans_key), strict=True)
    return [span for span, probability in pairs if probability is None or probability >= least]


def _describe(span: Span) -> list[str]:
    """List what is known of a span: its label, its attributes, its concept."""
    modifiers = get_modifiers(span) if SPANS_KEY in span.doc.spans else []
    kinds = dict.fromkeys(modifier.kind for modifier in modifiers)
    return [span.label_, *kinds, *filter(None, [span.kb_id_])]


def _make_settings(doc: Doc) -> dict[str, str]:
    return {"lang": doc.lang_, "direction": doc.vocab.writing_system["direction"]}


def _cut_drawing(data: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Cut a drawing where no arc is over the text, and leave out the text without arcs."""
    stretches: list[list[int]] = []
    for start, end in sorted((arc["start"], arc["end"]) for arc in data["arcs"]):
        if stretches and start <= stretches[-1][1]:
            stretches[-1][1] = max(end, stretches[-1][1])
        else:
            stretches.append([start, end])
    for first, last in stretches:
        words = data["words"][first : last + 1]
        yield {
            "words": [word if word["tag"] else _shorten(word) for word in words],
            "arcs": [
                {**arc, "start": arc["start"] - first, "end": arc["end"] - first}
                for arc in data["arcs"]
                if first <= arc["start"] <= last
            ],
            "settings": data["settings"],
        }


def _shorten(word: dict[str, str]) -> dict[str, str]:
    """Keep the beginning and the end of a long text between two entities."""
    text = word["text"]
    if len(text) > BETWEEN:
        half = (BETWEEN - 3) // 2
        first = text[: half + 1].rpartition(" ")[0] or text[:half]
        last = text[-half - 1 :].partition(" ")[2] or text[-half:]
        text = f"{first} … {last}"
    return {**word, "text": text}
